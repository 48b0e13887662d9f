#include "ivf/search/list_steps_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/last_block.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/stored_key_cuda.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 512;
constexpr int kTogether = kThreads / kRowThreads;  // vectors at a time
constexpr int kRun = 4 * kTogether;                // of neighbouring vectors that one block looks at,
constexpr int kSiftRun = 4 * kThreads;             // the same where most are ruled out first
constexpr int kSlotsTogether = 32;                 // lists tested for skipping at a time
constexpr uint32_t kSkipped = 0xFFFFFFFFu;
constexpr int64_t kSpareEntries = 4096;            // list entries beyond the k that are kept
constexpr int64_t kMostParts = 32;
constexpr int64_t kListSharedBytes = int64_t{160} << 10;

int64_t list_room(int64_t k) { return k + kSpareEntries; }

// Parts whose lists of k can be brought together in the lists of one block.
int64_t parts_for(int64_t k) { return std::clamp<int64_t>(1 + kSpareEntries / k, 1, kMostParts); }

bool needs_lists(int64_t k, int64_t cols) { return 8 * (list_room(k) + padded_cols(cols)) > kListSharedBytes; }

int64_t direct_blocks(int64_t k, int64_t cols, int multiprocessors) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  if (!needs_lists(k, cols)) return 2 * multiprocessors;
  return std::max<int64_t>(1, std::min<int64_t>(multiprocessors, kMostBytes / (8 * list_room(k))));
}

// Scaled distance of the query from the origin of the list's fp16 values, computed by a warp. `query` is in shared
// memory, unscaled; for distances only.
__device__ double origin_distance(const ListRerankTask& task, const double* query, uint32_t list, double scale) {
  const auto cols = static_cast<int>(task.lists.codec.format.cols);
  const bool has_origin = task.lists.has_origin();
  double square = 0;
  for (int col = static_cast<int>(threadIdx.x) % 32; col < cols; col += 32) {
    const double origin = has_origin ? task.lists.centres[static_cast<int64_t>(list) * cols + col] : 0.0f;
    const double difference = query[col] - origin;
    square = fma(difference, difference, square);
  }
  return sqrt(warp_sum(square)) * scale;
}

// Whether a list may have vectors within the query's reach. Yes where anything is NaN or infinite. The slack is for the
// roundings of the distance.
__device__ bool may_reach(const ListMaxima& maxima, double distance, double reach) {
  const double nearest = distance - static_cast<double>(maxima.norm) - maxima.residual;
  return !(nearest > reach + distance * 0x1p-30);
}

// The same of one vector x, where bounds are by row: it is |x - c| from the list's origin, and no nearer to the query
// than what that differs from the query's own distance. With what rounding moved the vector by, r, and e = kRowShare
//   (1 - e) |b|^2 - r^2 / e <= |x - c|^2 <= (1 + e) (|b|^2 + r^2 / e),
// and row_slack(), which both terms have, is more than r^2 / e. Of half of all squares; the small shares are for the
// terms' roundings.
__device__ bool row_may_reach(const PreparedLists& prepared, int64_t position, double distance, double reach) {
  const double upper = prepared.upper_terms[position];
  const double lower = prepared.lower_terms[position];
  const double farthest = 2 * upper * (1 + kRowShare + 0x1p-20);
  const double nearest = 2 * (lower - (kRowShare + 0x1p-20) * upper);
  const double within = distance * (1 - 0x1p-30) - reach;  // a vector must be as far from the origin as that,
  const double beyond = distance * (1 + 0x1p-30) + reach;  // and no farther than that
  return !(within > 0 && farthest < within * within) && !(nearest > beyond * beyond);
}

// Collects those of positions first .. end - 1 (at most kSiftRun) whose vectors may be within reach; returns their
// number. One thread per vector; `count` must be 0.
__device__ int sift_rows(const ListRerankTask& task, int64_t first, int64_t end, double distance, double reach,
                         uint32_t* sifted, int* count) {
  bool near[kSiftRun / kThreads];
  KITH_UNROLL
  for (int i = 0; i < kSiftRun / kThreads; ++i) {  // all loads are under way together
    const int64_t position = first + i * kThreads + static_cast<int>(threadIdx.x);
    near[i] = position < end && row_may_reach(task.prepared, position, distance, reach);
  }
  KITH_UNROLL
  for (int i = 0; i < kSiftRun / kThreads; ++i) {
    if (near[i]) sifted[atomicAdd(count, 1)] = static_cast<uint32_t>(first + i * kThreads) + threadIdx.x;
  }
  __syncthreads();
  return *count;
}

struct DirectCut {
  int room;   // capacity of a block's list
  int parts;  // blocks that share one of the first queries
  bool all;   // all queries, not only the undecided ones
  int table;  // codeword values copied to shared memory; 0: none
};

// Where a thread reads codewords one value at a time, at places that have nothing to do with its neighbours', shared
// memory gives them several times as fast, where there is enough of it beside `other_bytes`.
int64_t table_values(const CodeFormat& format, int64_t other_bytes) {
  const int64_t values = has_triples(format) ? format.parts * format.codewords() * format.part_cols() : 0;
  return other_bytes + 4 * values <= kListSharedBytes ? values : 0;
}

// The nearest entries so far; sorted and cut to k whenever the list may be full.
template <typename Reader>
__global__ void __launch_bounds__(kThreads) list_direct_kernel(const __grid_constant__ ListRerankTask task,
                                                               DirectMemory given, int64_t code_bytes, DirectCut cut) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ int listed;
  __shared__ uint32_t numbers[kSlotsTogether];
  __shared__ double distances[kSlotsTogether];
  __shared__ uint32_t sifted[kSiftRun];
  __shared__ int sifted_count;
  auto* const values = vectors<double>(memory);
  uint64_t* const list = given.lists == nullptr ? memory + padded_cols(task.lists.codec.format.cols)
                                                : given.lists + static_cast<int64_t>(blockIdx.x) * cut.room;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto k = static_cast<int>(task.k);
  CodecView codec = task.lists.codec;
  ptx::wait_for_kernel_before();
  const double scale = task.prepared.largest == nullptr ? 1.0 : operand_scale(*task.prepared.largest);
  const ListKey key_of_lists = task.lists.key();
  // Whether lists are prepared, and a key is a reach.
  const bool reaches = task.reaches != nullptr && key_of_lists.has_distances() && !key_of_lists.unit;
  const bool by_row = reaches && key_of_lists.by_row;
  const int run_rows = by_row ? kSiftRun : kRun;
  const int64_t count = cut.all ? task.query_count : int64_t{*task.left.count};
  if (cut.table > 0 && count > 0) {
    uint64_t* const behind = memory + padded_cols(codec.format.cols) + (given.lists == nullptr ? cut.room : 0);
    auto* const table = vectors<float>(behind);
    for (int i = thread; i < cut.table; i += kThreads) table[i] = codec.codewords[i];
    codec.codewords = table;  // the barrier before the first query is before their use
  }
  const Reader reader(codec, task.lists.codes);
  const int64_t shared_queries = cut.parts == 1 ? 0 : count < kSharedQueries ? count : kSharedQueries;
  const int64_t shared_work = shared_queries * cut.parts;
  for (int64_t work = blockIdx.x; work < shared_work + count - shared_queries; work += gridDim.x) {
    const bool shares = work < shared_work;
    const int64_t i = shares ? work / cut.parts : shared_queries + work - shared_work;
    const int part = shares ? static_cast<int>(work % cut.parts) : 0;
    const int parts = shares ? cut.parts : 1;
    const int64_t query = cut.all ? i : int64_t{task.left.queries[i]};
    __syncthreads();
    if (thread == 0) listed = sifted_count = 0;
    const double inverse_q = load_query(keys_of(task.lists), task.queries + query * task.query_stride, values);
    int run = 0;
    const bool bounded = task.reaches != nullptr && key_of_lists.has_distances() && task.unsure[query] == 0;
    double reach = bounded ? task.reaches[query] : HUGE_VAL;
    uint64_t* const out = task.neighbors + query * task.k;
    uint64_t bound = task.elsewhere.of(query);
    if (task.begun && out[k - 1] < bound) bound = out[k - 1];
    if (reaches && bound != kPadding) reach = fmin(reach, reach_of(key_of_lists, bound, scale));
    if (task.begun) {
      for (int at = thread; part == 0 && at < k; at += kThreads) {
        if (out[at] != kPadding) list[atomicAdd(&listed, 1)] = out[at];
      }
    }
    for (int64_t slot = 0; slot < task.slots; ++slot) {
      if (slot % kSlotsTogether == 0) {
        __syncthreads();
        for (int next = thread / 32; next < kSlotsTogether; next += kThreads / 32) {
          const uint64_t probe = slot + next < task.slots ? task.probes[query * task.slots + slot + next] : kPadding;
          uint32_t number = kSkipped;
          if (probe != kPadding && row_of(probe) < task.lists.lists) number = row_of(probe);
          double distance = 0;
          if (number != kSkipped && (bounded || reaches)) {
            distance = origin_distance(task, values, number, scale);
            if (!may_reach(task.prepared.maxima[number], distance, reach)) number = kSkipped;
          }
          if (thread % 32 == 0) {
            numbers[next] = number;
            distances[next] = distance;
          }
        }
        __syncthreads();
      }
      const uint32_t number = numbers[slot % kSlotsTogether];
      if (number == kSkipped) continue;
      const double distance = distances[slot % kSlotsTogether];
      const int64_t end = task.lists.offsets[number + 1];
      const auto add = [&](int64_t position) {
        if (task.kept != nullptr && !is_kept(task.kept, task.lists.rows[position])) return;
        const float key =
            stored_key(task.lists, reader, values, inverse_q, code_bytes, static_cast<uint32_t>(position), number);
        const uint64_t entry = pack_neighbor(ordered_key(key), task.lists.rows[position]);
        if (thread % kRowThreads == 0 && entry < bound) list[atomicAdd(&listed, 1)] = entry;
      };
      for (int64_t begin = task.lists.offsets[number]; begin < end; begin += run_rows) {
        if (run++ % parts != part) continue;
        const int64_t run_end = begin + run_rows < end ? begin + run_rows : end;
        if (by_row) {
          const int near = sift_rows(task, begin, run_end, distance, reach, sifted, &sifted_count);
          for (int at = thread / kRowThreads; at < near; at += kTogether) add(sifted[at]);
        } else {
          for (int64_t position = begin + thread / kRowThreads; position < run_end; position += kTogether) add(position);
        }
        __syncthreads();
        const int have = listed;
        if (thread == 0) sifted_count = 0;
        __syncthreads();
        // Where that rules vectors out, as soon as k are known, and then whenever as many more came as are sorted quickly.
        const bool tells = by_row && have >= (bound == kPadding ? k : k + kRun);
        if (have + run_rows <= cut.room && !tells) continue;
        sort_in_place(list, have);
        if (have >= k) {
          bound = list[k - 1];
          if (reaches) reach = fmin(reach, reach_of(key_of_lists, bound, scale));
          if (thread == 0) listed = k;
        }
        __syncthreads();
      }
    }
    __syncthreads();
    sort_in_place(list, listed);
    if (shares) {
      uint64_t* const lists = given.parts + i * cut.parts * k;
      for (int at = thread; at < k; at += kThreads) lists[part * k + at] = at < listed ? list[at] : kPadding;
      if (!arrives_last(&given.arrived[i], static_cast<uint32_t>(cut.parts - 1))) continue;
      if (thread == 0) listed = 0;
      __syncthreads();
      for (int at = thread; at < cut.parts * k; at += kThreads) {
        const uint64_t entry = __ldcg(lists + at);
        if (entry != kPadding) list[atomicAdd(&listed, 1)] = entry;
      }
      __syncthreads();
      sort_in_place(list, listed);
    }
    for (int at = thread; at < k; at += kThreads) out[at] = at < listed ? list[at] : kPadding;
  }
}

}  // namespace

int64_t direct_part_entries(int64_t k) { return parts_for(k) == 1 ? 0 : kSharedQueries * parts_for(k) * k; }

int64_t direct_list_entries(int64_t k, int64_t cols, int multiprocessors) {
  return needs_lists(k, cols) ? direct_blocks(k, cols, multiprocessors) * list_room(k) : 0;
}

void launch_list_direct(const ListRerankTask& task, const DirectMemory& memory, cudaStream_t stream) {
  if (task.query_count == 0) return;
  if (suits_list_short(task)) return launch_list_short(task, memory, stream);
  const CodeFormat& format = task.lists.codec.format;
  const bool lists = needs_lists(task.k, format.cols);
  const int64_t bytes = 8 * (padded_cols(format.cols) + (lists ? 0 : list_room(task.k)));
  DirectMemory given = memory;
  if (!lists) given.lists = nullptr;
  const int64_t table = table_values(format, bytes);
  const DirectCut cut{static_cast<int>(list_room(task.k)), static_cast<int>(parts_for(task.k)),
                      task.candidates.entries == nullptr, static_cast<int>(table)};
  visit_reader(format, [&](auto tag) {
    const auto kernel = list_direct_kernel<typename decltype(tag)::type>;
    allow_all_shared_memory(kernel);
    const int64_t most = direct_blocks(task.k, format.cols, task.multiprocessors);
    const int64_t blocks = table > 0 ? std::min<int64_t>(most, task.multiprocessors) : most;
    launch(kernel, Grid::of(blocks, kThreads).with_shared(bytes + 4 * table).chained(), stream, task, given, format.bytes(), cut);
  });
}

}  // namespace kith
