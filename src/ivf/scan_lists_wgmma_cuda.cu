// The scan of lists with Hopper's products of warpgroups.
//
// Two blocks of two warpgroups stay on a multiprocessor and take item after item, whichever is next. A warpgroup
// decodes 64 vectors at a time to halves in registers, the products' left operand, and multiplies them with up to 64
// queries at a time, the right operand, from shared memory. While one decodes or looks at its products the others
// multiply. Shared memory is what is short: a tile of vectors takes 340 to 400 of its cycles to decode from tables, and
// two for each query, where the products of a query take four of the matrix units'.
#include "ivf/scan_engines_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/chained_launch.hpp"
#include "cuda/ptx_hopper.hpp"
#include "cuda/shared_memory.hpp"
#include "ivf/scan_decoders_cuda.hpp"
#include "ivf/scan_queries_cuda.hpp"
#include "ivf/warp_hits_cuda.hpp"
#include "kernels/distance/kept_rows_cuda.hpp"

#include <type_traits>

namespace kith {
namespace {

constexpr int kGroupThreads = 128;
constexpr int kGroups = 2;
constexpr int kThreads = kGroups * kGroupThreads;
constexpr int kBlocks = 2;           // of a multiprocessor
constexpr int kTileRows = 64;        // of a warpgroup at a time
constexpr int kWarpRows = 16;        // of these
constexpr int kChunkSteps = 4;       // of 16 halves in a row of 128 bytes
constexpr int kRowBytes = 128;
constexpr int kChunkBytes = kNarrowQueries * kRowBytes;

// What is loaded of queries is used up when the scan begins and has hits instead.
struct BlockLayout {
  int64_t operands, table, origin, hits, queries, limits, item, listed, bytes;

  KITH_HOST_DEVICE BlockLayout(int64_t table_bytes, int steps) {
    constexpr int64_t kLoadedBytes = kNarrowQueries * static_cast<int64_t>(sizeof(LoadedQuery));
    constexpr int64_t kHitBytes = kThreads / 32 * kWarpHits * static_cast<int64_t>(sizeof(uint2));
    constexpr int64_t kShared = kHitBytes > kLoadedBytes ? kHitBytes : kLoadedBytes;
    operands = 0;
    table = (steps + kChunkSteps - 1) / kChunkSteps * kChunkBytes;
    origin = table + table_bytes;
    hits = origin + kNarrowSteps * 64;
    queries = hits + kShared;
    limits = queries + kNarrowQueries * static_cast<int64_t>(sizeof(ScanQuery));
    item = limits + kNarrowQueries * 4;
    listed = item + static_cast<int64_t>(sizeof(ScanItem));
    bytes = listed + 16;
  }
};

// The queries' halves, as the matrix units read them: rows of 128 bytes, four steps each, in units of 16 bytes that are
// swizzled by the row's number modulo 8. Of a step's 16 halves a quarter has two in either unit.
class WarpgroupOperands {
 public:
  __device__ WarpgroupOperands(std::byte* data, int steps, bool apart) : data_(data), steps_(steps), apart_(apart) {}

  __device__ int steps() const { return steps_; }
  __device__ void store(int unit, int place, uint2 halves) const {
    const int step = step_of_unit(apart_, unit);
    std::byte* const row = data_ + step / kChunkSteps * kChunkBytes + place * kRowBytes + 4 * quarter_of_unit(apart_, unit);
    const int sixteen = step % kChunkSteps * 2;
    *reinterpret_cast<uint32_t*>(row + 16 * (sixteen ^ (place % 8))) = halves.x;
    *reinterpret_cast<uint32_t*>(row + 16 * ((sixteen + 1) ^ (place % 8))) = halves.y;
  }
  __device__ void fence() const { ptx::shared_writes_fence(); }

  // Of one step, from query `first` on, a multiple of eight.
  __device__ uint64_t descriptor(uint64_t start, int first, int step) const {
    return ptx::descriptor_after(start, first * kRowBytes + step / kChunkSteps * kChunkBytes + step % kChunkSteps * 32);
  }
  __device__ uint64_t start() const { return ptx::operand_descriptor(data_); }

 private:
  std::byte* data_;
  int steps_;
  bool apart_;
};

// The vectors of a tile, ahead of their use: codes and terms. What is past the last, or left out by a filter, has NaN
// for a term, which is below nothing.
template <typename Decoder>
struct HeldTile {
  HeldCodes<Decoder, 2> codes;
  float terms[2];
};

// What a thread does with its sums: of its warp's 16 vectors it has lane / 4 and the one 8 further on, of every eight
// queries 2 (lane % 4) and the next.
template <bool kFirst>
class TileEnd {
 public:
  __device__ TileEnd(const ScanListsTask& task, const ScanItem& item, int queries, const ScanMemory& memory,
                     uint2* hits)
      : task_(task),
        memory_(memory),
        rows_(static_cast<uint32_t>(item.rows)),
        first_row_(item.first_row),
        queries_(queries),
        cosine_(task.lists.kind == KeyKind::cosine),
        hits_(task, item, memory.queries, hits) {
    if constexpr (kFirst) {
      KITH_UNROLL
      for (int j = 0; j < 2; ++j) eight_[j] = target(2 * (static_cast<int>(threadIdx.x) % 4) + j);
    }
  }

  __device__ bool cosine() const { return cosine_; }

  // `row` is of the item, of the first of this thread's two vectors.
  template <int kQueries>
  __device__ void tile(float (&sums)[kQueries / 2], const float (&terms)[2], uint32_t row, int first_query) {
    const int first = first_query + 2 * (static_cast<int>(threadIdx.x) % 4);
    if (cosine_) {
      KITH_UNROLL
      for (int i = 0; i < kQueries / 2; ++i) {
        const PairBounds& bounds = memory_.queries[first + i / 4 * 8 + i % 2].bounds;
        sums[i] = terms[i % 4 / 2] * fmaf(sums[i], bounds.gain, bounds.offset);
      }
    }
    KITH_UNROLL
    for (int eight = 0; eight < kQueries / 8; ++eight) {
      const int place = first + 8 * eight;
      if constexpr (kFirst) {
        KITH_UNROLL
        for (int j = 0; j < 2; ++j) {
          const Target to = eight == 0 && first_query == 0 ? eight_[j] : target(place + j);
          if (to.values == nullptr) continue;
          KITH_UNROLL
          for (int i = 0; i < 2; ++i) {
            if (row + 8 * i < rows_) to.values[row + 8 * i] = fmaf(sums[4 * eight + 2 * i + j], to.scale, to.shift);
          }
        }
      } else {
        const float2 limits = *reinterpret_cast<const float2*>(memory_.limits + place);
        const float four[4] = {sums[4 * eight], sums[4 * eight + 1], sums[4 * eight + 2], sums[4 * eight + 3]};
        const bool any = four[0] <= limits.x || four[1] <= limits.y || four[2] <= limits.x || four[3] <= limits.y;
        if (__any_sync(0xFFFFFFFFu, any)) {
          hits_.add(four[0] <= limits.x, row, place, four[0]);
          hits_.add(four[1] <= limits.y, row, place + 1, four[1]);
          hits_.add(four[2] <= limits.x, row + 8, place, four[2]);
          hits_.add(four[3] <= limits.y, row + 8, place + 1, four[3]);
        }
      }
    }
    __syncwarp();  // matrix units want all lanes together
  }

  __device__ void finish() {
    if (!kFirst) hits_.flush();
  }

 private:
  // Where the first pass's estimates of a query go; nowhere past the last query.
  struct Target {
    float* values;
    float scale;
    float shift;
  };
  __device__ Target target(int place) const {
    if (place >= queries_) return {nullptr, 0, 0};
    const ScanQuery& query = memory_.queries[place];
    float* const values =
        task_.values + static_cast<int64_t>(query.query) * task_.value_stride + query.value_start + first_row_;
    return {values, query.bounds.scale, query.bounds.shift};
  }

  const ScanListsTask& task_;
  const ScanMemory& memory_;
  Target eight_[2];  // of the first eight queries: often there are no more
  uint32_t rows_;
  uint32_t first_row_;
  int queries_;
  bool cosine_;
  WarpHits hits_;
};

// 64 vectors with kQueries of the queries.
template <int kQueries, int kSteps, bool kFirst>
__device__ inline void multiply_tile(const uint32_t (&vectors)[kSteps][1][4], const float (&terms)[2], uint32_t row,
                                     const WarpgroupOperands& operands, uint64_t start, int first_query,
                                     TileEnd<kFirst>& end) {
  float sums[kQueries / 2];
  // Sums start from the terms, which spares their addition, except cosine's, which are factors.
  const float from[2] = {end.cosine() ? 0.0f : terms[0], end.cosine() ? 0.0f : terms[1]};
  KITH_UNROLL
  for (int i = 0; i < kQueries / 2; ++i) sums[i] = from[i % 4 / 2];
  ptx::warpgroup_fence();
  KITH_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    ptx::multiply_rows(sums, vectors[step][0], operands.descriptor(start, first_query, step));
  }
  ptx::warpgroup_commit();
  ptx::warpgroup_wait<0>();
  ptx::keep_sums(sums);
  end.template tile<kQueries>(sums, terms, row, first_query);
}

template <typename Decoder, int kSteps, bool kFirst>
__device__ inline void scan_item(const ScanListsTask& task, const ScanItem& item, int queries, int64_t code_bytes,
                                 const Decoder& decoder, const WarpgroupOperands& operands, const ScanMemory& memory,
                                 uint2* hits) {
  const int tiles_of_queries = (queries + kTileQueries - 1) / kTileQueries;
  const int64_t list_start = task.lists.offsets[item.list];
  const uint8_t* const codes = task.lists.codes + list_start * code_bytes;
  const int warp_row = static_cast<int>(threadIdx.x) % kGroupThreads / 32 * kWarpRows;
  const int lane_row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4;
  const auto hold = [&](int tile) {
    tile = min(tile, (item.rows - 1) / kTileRows);
    const uint32_t number = item.first_row + static_cast<uint32_t>(tile * kTileRows);
    const uint32_t start = kFirst ? task.cut.first_row_at(number) : number;
    const int last = item.rows - 1 - tile * kTileRows;  // of the tile's
    const int begin = min(warp_row, last);
    HeldTile<Decoder> held{HeldCodes<Decoder, 2>(decoder, codes + (start + static_cast<uint32_t>(begin)) * code_bytes,
                                                 code_bytes, last - begin),
                           {NAN, NAN}};
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int row = lane_row + 8 * i;
      const int64_t position = list_start + start + row;
      if (row > last) continue;
      if (task.kept != nullptr && !is_kept(task.kept, task.lists.rows[position])) continue;
      held.terms[i] = task.prepared.terms == nullptr ? 0.0f : __ldg(task.prepared.terms + position);
    }
    return held;
  };
  TileEnd<kFirst> end(task, item, queries, memory, hits);
  const bool full = decoder.full(kSteps);
  const uint64_t start = operands.start();
  int tile = static_cast<int>(threadIdx.x) / kGroupThreads;
  HeldTile<Decoder> held = hold(tile);
  for (; tile * kTileRows < item.rows; tile += kGroups) {
    uint32_t vectors[kSteps][1][4];
    if (full) {
      held.codes.template decode_all<true>(decoder, vectors);
    } else {
      held.codes.template decode_all<false>(decoder, vectors);
    }
    const float terms[2] = {held.terms[0], held.terms[1]};
    held = hold(tile + kGroups);
    __syncwarp();
    const auto row = static_cast<uint32_t>(tile * kTileRows + lane_row);
    int at = 0;
    int left = tiles_of_queries;
    for (; left >= 8; left -= 8, at += 64) {
      multiply_tile<64, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
    }
    if (left >= 4) {
      multiply_tile<32, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
      left -= 4;
      at += 32;
    }
    if (left >= 2) {
      multiply_tile<16, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
      left -= 2;
      at += 16;
    }
    if (left >= 1) multiply_tile<8, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
  }
  end.finish();
}

template <typename Decoder, int kSteps, bool kFirst>
__global__ void __launch_bounds__(kThreads, kBlocks)
    scan_lists_wgmma_kernel(const __grid_constant__ ScanListsTask task, int64_t code_bytes, int64_t table_bytes) {
  extern __shared__ __align__(1024) std::byte shared[];
  const BlockLayout layout(table_bytes, kSteps);
  const ScanMemory memory{shared + layout.table,
                          shared + layout.operands,
                          reinterpret_cast<float*>(shared + layout.origin),
                          reinterpret_cast<LoadedQuery*>(shared + layout.hits),
                          reinterpret_cast<ScanQuery*>(shared + layout.queries),
                          reinterpret_cast<float*>(shared + layout.limits),
                          reinterpret_cast<ScanItem*>(shared + layout.item),
                          reinterpret_cast<int*>(shared + layout.listed)};
  const WarpgroupOperands operands(memory.operands, kSteps, units_apart(task.lists.codec.format));
  // The table is older than the kernel before.
  if (Decoder::kHasTable) {
    const auto* const from = reinterpret_cast<const uint4*>(task.prepared.table);
    for (int64_t i = threadIdx.x; i < table_bytes / 16; i += kThreads) {
      reinterpret_cast<uint4*>(memory.table)[i] = from[i];
    }
  }
  const float scale = operand_scale(*task.prepared.largest);
  ptx::wait_for_kernel_before();
  const uint32_t all_items = task.items[task.lists.lists];
  const Decoder decoder(DecoderInput{task.lists, task.prepared, scale, memory.origin, memory.table});
  const auto take = [&] {  // by a warp
    const ScanItem item = take_item<kFirst>(task, all_items);
    if (threadIdx.x % 32 == 0) *memory.item = item;
    __syncwarp();
  };
  if (threadIdx.x < 32) take();
  for (;;) {
    __syncthreads();
    const ScanItem item = *memory.item;
    if (item.queries == 0) return;
    load_origin(task, item, scale, kSteps, memory.origin);
    if (threadIdx.x == 0) *memory.listed = 0;
    __syncthreads();
    const int queries = load_queries<kFirst>(task, item, scale, operands, memory);
    if (threadIdx.x >= kThreads - 32) take();  // the next one, while the others begin
    if (queries > 0) {
      scan_item<Decoder, kSteps, kFirst>(task, item, queries, code_bytes, decoder, operands, memory,
                                         reinterpret_cast<uint2*>(shared + layout.hits));
    }
    __syncthreads();  // all have read what the next item replaces
  }
}

template <typename Decoder, int kSteps, bool kFirst>
void launch(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  const int64_t table_bytes = Decoder::kHasTable ? table_steps(format) * kTableStepBytes : 0;
  const auto kernel = scan_lists_wgmma_kernel<Decoder, kSteps, kFirst>;
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  launch_chained({kBlocks * task.multiprocessors, kThreads, BlockLayout(table_bytes, kSteps).bytes, stream},
                 "launch of scan_lists_wgmma_kernel", kernel, task, format.bytes(), table_bytes);
}

template <bool kFirst>
void launch_pass(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  visit_scan_decoder(format, [&](auto tag) {
    using Decoder = typename decltype(tag)::type;
    if constexpr (std::is_same_v<Decoder, WordDecoder>) {
      if (table_steps(format) <= 5) return launch<Decoder, 5, kFirst>(task, stream);
    }
    launch<Decoder, kNarrowSteps, kFirst>(task, stream);
  });
}

}  // namespace

void launch_scan_wgmma(const ScanListsTask& task, bool first, cudaStream_t stream) {
  if (first) return launch_pass<true>(task, stream);
  launch_pass<false>(task, stream);
}

}  // namespace kith
