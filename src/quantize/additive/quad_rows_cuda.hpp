// One thread's part of the rows of a warpgroup in the search by products (icm_products_kernel_cuda.hpp): a quarter of
// each of two rows. Four lanes, a quad, share a row's residual: of each 16 columns lane t has 4 t to 4 t + 3, in memory
// private to it: shared memory for the first chunks, device memory for the others (ProductLayout).
#pragma once

#include "core/slot.hpp"
#include "cuda/ptx_hopper.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "quantize/additive/icm_task_cuda.hpp"

#include <cstdint>
#include <type_traits>

namespace kith::icm {

// A block of the search by products (icm_products_kernel_cuda.hpp): its threads, its shared memory, and the warpgroup
// that copies books into a ring, chunk by chunk.

inline constexpr int kGroups = 2;
inline constexpr int kGroupThreads = 128;
inline constexpr int kSearchers = kGroups * kGroupThreads;
inline constexpr int kThreads = kSearchers + kGroupThreads;  // the last warpgroup copies, and gives up its registers
inline constexpr int kSearcherRegisters = 240;               // all start with 168
inline constexpr int kCopierRegisters = 24;
inline constexpr int kGroupRows = 64;
inline constexpr int kHalfTile = 128;  // codewords of one product
inline constexpr int kChunkSteps = 4;  // of 16 columns

struct Barriers {
  uint64_t full[kProductMostStages];
  uint64_t empty[kProductMostStages];
};

// The stages of a step, in order.
enum class Stage : int { wait, operand, product, choice, settle, replace, rest, count };

// Stages of the ring are handed over by barriers in shared memory alone: a warp that has read one arrives, and the
// copier overwrites it once all have. racecheck reports these accesses as hazards. To see that it only does not
// understand such barriers, a Watch with kBlockBarriers also synchronises copier and searchers by a barrier of the
// block after each step (`lsq_cuda_bench --parts race`).
inline constexpr int kMeetingBarrier = 1;
inline constexpr int kMeetingThreads = kSearchers + 32;

// Assigns the time since the last call to a stage.
struct NoWatch {
  static constexpr bool kBlockBarriers = false;
  __device__ void begin() {}
  __device__ void ends(Stage) {}
  __device__ void finish() {}
};

// Shared memory of a block: stages of the ring first.
struct SharedSlots {
  Slot<float> terms;       // of each stage's book, where it has the first chunk of one
  Slot<float4> residuals;  // private parts of the threads
  Slot<Barriers> barriers;
  Slot<uint8_t> codes;  // the best so far, those that are worked with, and the next ones

  __host__ __device__ SharedSlots(const ProductLayout& layout, int64_t books)
      : terms{int64_t{layout.stages} * kProductChunkBytes, layout.stages * kProductWords},
        residuals{terms.offset + terms.bytes(), layout.shared_chunks * kSearchers * 2 * kChunkSteps},
        barriers{residuals.offset + residuals.bytes(), 1},
        codes{barriers.offset + barriers.bytes(), 3 * kProductTileRows * books} {}

  int bytes() const { return static_cast<int>(1024 + codes.offset + codes.bytes()); }
};

// A stage of the ring, and the phase of its barriers.
struct Place {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance(int stages) {
    stage = stage + 1 == stages ? 0 : stage + 1;
    parity ^= stage == 0 ? 1u : 0u;
  }
};

// By the first thread of a warp; with barriers of the block, by all of it.
template <bool kBlockBarriers>
__device__ void copy_books(const IcmBooks& books, const IcmRun& run, const ProductLayout& layout, std::byte* shared) {
  const SharedSlots slots(layout, books.books);
  Barriers* const barriers = slots.barriers.in(shared);
  Place place;
  int64_t brought = 0;
  const auto bring = [&](int64_t book, int chunk) {
    if constexpr (kBlockBarriers) {
      if (brought++ >= layout.stages) ptx::turn_wait(kMeetingBarrier, kMeetingThreads);
      if (threadIdx.x % 32 != 0) return;
    }
    uint64_t* const full = &barriers->full[place.stage];
    ptx::barrier_wait(&barriers->empty[place.stage], place.parity ^ 1);
    ptx::barrier_arrive_and_expect(full, kProductChunkBytes + (chunk == 0 ? kProductWords * 4 : 0));
    if (chunk == 0) {
      ptx::copy_bulk(slots.terms.in(shared) + place.stage * kProductWords, books.terms + book * kProductWords,
                     kProductWords * 4, full);
    }
    const std::byte* const from = books.tiles + (book * layout.chunks + chunk) * kProductChunkBytes;
    for (int part = 0; part < 2; ++part) {
      constexpr int kPart = kProductChunkBytes / 2;
      ptx::copy_bulk(shared + place.stage * kProductChunkBytes + part * kPart, from + part * kPart, kPart, full);
    }
    place.advance(layout.stages);
  };
  const auto bring_book = [&](int64_t book) {
    for (int chunk = 0; chunk < layout.chunks; ++chunk) bring(book, chunk);
  };
  if (run.start == IcmStart::greedy) {
    for (int64_t k = 0; k < books.books; ++k) bring_book(k);
  }
  for (int round = 0; round < run.rounds; ++round) {
    const IcmStep* const steps = run.schedule + static_cast<int64_t>(round) * run.schedule_stride;
    for (int i = 0; i < run.steps; ++i) bring_book(steps[i].book);
  }
  if constexpr (kBlockBarriers) {
    for (int64_t last = 0; last < min(brought, int64_t{layout.stages}); ++last)
      ptx::turn_wait(kMeetingBarrier, kMeetingThreads);
  }
}

// The sum of a quad's canonical lanes, 4 t to 4 t + 3 in its lane t: the tree of canonical_tree(), the same in all
// four.
template <typename Sum>
__device__ inline Sum quad_tree(Sum (&lanes)[4]) {
#pragma unroll
  for (int apart = 2; apart > 0; --apart) {
#pragma unroll
    for (int i = 0; i < 4; ++i) lanes[i] += __shfl_xor_sync(kAllLanes, lanes[i], apart);
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

template <typename Sum>
__device__ inline void add_squares(const float4& differences, Sum (&lanes)[4]) {
  const float each[4] = {differences.x, differences.y, differences.z, differences.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto wide = static_cast<Sum>(each[i]);
    lanes[i] = fma(wide, wide, lanes[i]);
  }
}

// kShared: there are one or two chunks, and what is left of the rows is in shared memory, whose own instructions then
// read it.
template <bool kShared>
class QuadRows {
 public:
  __device__ QuadRows(const IcmBooks& books, const IcmRows& rows, const ProductLayout& layout, std::byte* shared)
      : books_(books), rows_(rows), layout_(layout), shared_(shared) {
#pragma unroll
    for (int h = 0; h < 2; ++h) there_[h] = row(h) < rows.count && rows.fits[row(h)] != 0;
  }

  static __device__ int quarter() { return static_cast<int>(threadIdx.x % 4); }
  __device__ bool there(int h) const { return there_[h]; }
  __device__ int code(int h, int book) const { return current(h)[book]; }
  // Sets the codes of both rows; all lanes of a warp take part.
  __device__ void set_codes(int book, const int (&found)[2]) const {
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (quarter() == 0) current(h)[book] = static_cast<uint8_t>(found[h]);
    }
    __syncwarp();
  }

  // The residual of a row in a chunk: the first value of 16 columns; the next ones follow at a distance of kSearchers.
  __device__ float4* residual(int chunk, int h) const {
    float4* const in_shared =
        SharedSlots(layout_, books_.books).residuals.in(shared_) + place_of(chunk, h) + threadIdx.x;
    const int device_chunk = chunk - layout_.shared_chunks;
    if (kShared || device_chunk < 0) return in_shared;
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * place_of(layout_.chunks - layout_.shared_chunks, 0);
    return vectors<float4>(rows_.residuals) + tile + place_of(device_chunk, h) + threadIdx.x;
  }

  // The first codes of the search, except for a greedy start, which has yet to find them.
  __device__ void start_codes(const IcmRun& run) const {
    const auto m = static_cast<int>(books_.books);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int k = quarter(); k < m; k += 4) {
        current(h)[k] = there_[h] && run.start == IcmStart::given ? rows_.codes[row(h) * m + k] : uint8_t{0};
      }
      __syncwarp();
      if (quarter() == 0 && there_[h] && run.start == IcmStart::random) {
        draw_codes(run.perturbation.seed, rows_.numbers[row(h)], m, books_.bits, current(h));
      }
    }
    __syncwarp();
  }

  // Makes the current codes the best so far, for the rows that want it.
  __device__ void keep(bool first, bool second) const {
    __syncwarp();
    const bool wanted[2] = {first, second};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int k = quarter(); wanted[h] && k < static_cast<int>(books_.books); k += 4) best(h)[k] = current(h)[k];
    }
    __syncwarp();
  }

  // Writes the best codes so far, perturbed, to the next codes. Each of 16 lanes takes a row of the warp.
  __device__ void perturb(const Perturbation& perturbation, int64_t round) const {
    const auto m = static_cast<int>(books_.books);
    const auto lane = static_cast<int>(threadIdx.x % 32);
    if (lane < 16) {
      const int local = first_row() + lane;
      const uint8_t* const from = codes(0) + local * m;
      uint8_t* const to = codes(2 - now_) + local * m;
      for (int k = 0; k < m; ++k) to[k] = from[k];
      const int64_t row = static_cast<int64_t>(blockIdx.x) * kProductTileRows + local;
      if (row < rows_.count) perturb_codes(perturbation, rows_.numbers[row], round, m, books_.bits, to);
    }
    __syncwarp();
  }

  // Makes the next codes current and updates the residuals: by two codewords for each code that differs, or by all of
  // the row's codewords if these are fewer. Sums are exact, so both give the same residuals.
  __device__ void take_next() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint64_t differ = differing_books(h);
      if (there_[h] && differ != 0) follow(h, differ);
    }
    now_ = 1 - now_;
    __syncwarp();
  }

  // Loads the rows, minus their codewords if asked to.
  __device__ void load_residuals(bool less_words) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) make_residual(h, less_words ? current(h) : nullptr);
  }

  // The canonical cost of the current codes.
  __device__ float cost(int h) const {
    double lanes[4] = {};
#pragma unroll 2
    for (int chunk = 0; chunk < layout_.chunks; ++chunk) {
      float4 left[kChunkSteps];
      read(chunk, h, left);
#pragma unroll
      for (int s = 0; s < kChunkSteps; ++s) add_squares(left[s], lanes);
    }
    return static_cast<float>(quad_tree(lanes) * books_.unscale);
  }

  // Replaces the codeword of a book, or sets the first one.
  __device__ void replace(int book, int h, int had, int found, bool starting) const {
    const float4* const from = word(book, had);
    const float4* const to = word(book, found);
#pragma unroll 2
    for (int chunk = 0; chunk < layout_.chunks; ++chunk) {
      float4 left[kChunkSteps];
      read(chunk, h, left);
      if (!starting) add(from + chunk * kChunkVectors, left);
      subtract(to + chunk * kChunkVectors, left);
      write(chunk, h, left);
    }
  }

  // Costs of two codewords of a book, as canonical keys or scaled f32 sums; arbitrary for codes past the last.
  // All lanes of a warp must call; rows that do not ask read nothing.
  template <bool kExact>
  __device__ void costs(int book, int h, int had, bool starting, bool asks, const int (&pair)[2],
                        float (&found)[2]) const {
    using Sum = std::conditional_t<kExact, double, float>;
    const float4* const from = word(book, had);
    const float4* const first = word(book, pair[0] % kProductWords);
    const float4* const second = word(book, pair[1] % kProductWords);
    Sum lanes[2][4] = {};
#pragma unroll 2
    for (int chunk = 0; chunk < (asks ? layout_.chunks : 0); ++chunk) {
      float4 left[kChunkSteps];
      float4 words[2][kChunkSteps];
      read(chunk, h, left);
      read_word(first + chunk * kChunkVectors, words[0]);
      read_word(second + chunk * kChunkVectors, words[1]);
      if (!starting) add(from + chunk * kChunkVectors, left);
#pragma unroll
      for (int s = 0; s < kChunkSteps; ++s) {
#pragma unroll
        for (int i = 0; i < 2; ++i) add_squares(less(left[s], words[i][s]), lanes[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Sum sum = quad_tree(lanes[i]);
      found[i] = kExact ? static_cast<float>(static_cast<double>(sum) * books_.unscale) : static_cast<float>(sum);
    }
  }

  __device__ void write_best(const float (&costs)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!there_[h]) continue;
      const auto m = static_cast<int>(books_.books);
      for (int k = quarter(); k < m; k += 4) rows_.codes[row(h) * m + k] = best(h)[k];
      if (rows_.costs != nullptr && quarter() == 0) rows_.costs[row(h)] = costs[h];
    }
  }

 private:
  static constexpr int kChunkVectors = kProductChunkCols / 4;

  static __device__ int place_of(int chunk, int h) { return (chunk * 2 + h) * kChunkSteps * kSearchers; }

  // Places in the block's rows: the warp's first, and the thread's own.
  static __device__ int first_row() {
    return static_cast<int>(threadIdx.x / kGroupThreads * kGroupRows + threadIdx.x % kGroupThreads / 32 * 16);
  }
  static __device__ int local_row(int h) { return first_row() + static_cast<int>(threadIdx.x % 32 / 4) + 8 * h; }
  static __device__ int64_t row(int h) { return static_cast<int64_t>(blockIdx.x) * kProductTileRows + local_row(h); }

  // Codes of the block: the best so far (place 0), and two places that alternate between current and next.
  __device__ uint8_t* codes(int place) const {
    const auto m = static_cast<int>(books_.books);
    return SharedSlots(layout_, m).codes.in(shared_) + place * kProductTileRows * m;
  }
  __device__ uint8_t* codes(int place, int h) const {
    return codes(place) + local_row(h) * static_cast<int>(books_.books);
  }
  __device__ uint8_t* best(int h) const { return codes(0, h); }
  __device__ uint8_t* current(int h) const { return codes(1 + now_, h); }
  __device__ uint8_t* next(int h) const { return codes(2 - now_, h); }

  // The thread's part of a codeword, and of a row: every fourth vector.
  __device__ const float4* word(int book, int j) const {
    return vectors<float4>(books_.centred +
                           static_cast<int64_t>(book * kProductWords + j) * layout_.chunks * kProductChunkCols) +
           quarter();
  }
  __device__ const float4* row_values(int h) const {
    return vectors<float4>(rows_.centred + row(h) * layout_.chunks * kProductChunkCols) + quarter();
  }
  __device__ void read(int chunk, int h, float4 (&left)[kChunkSteps]) const {
    const float4* const from = residual(chunk, h);
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) left[s] = from[s * kSearchers];
  }
  __device__ void write(int chunk, int h, const float4 (&left)[kChunkSteps]) const {
    float4* const to = residual(chunk, h);
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) to[s * kSearchers] = left[s];
  }
  // Codewords and rows are read as constants, so that no write to a residual holds a read up.
  static __device__ float4 less(const float4& a, const float4& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
  }
  static __device__ void read_word(const float4* from, float4 (&to)[kChunkSteps]) {
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) to[s] = __ldg(from + 4 * s);
  }
  static __device__ void add(const float4* word, float4 (&left)[kChunkSteps]) {
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) {
      const float4 c = __ldg(word + 4 * s);
      left[s] = {left[s].x + c.x, left[s].y + c.y, left[s].z + c.z, left[s].w + c.w};
    }
  }
  static __device__ void subtract(const float4* word, float4 (&left)[kChunkSteps]) {
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) left[s] = less(left[s], __ldg(word + 4 * s));
  }

  static_assert(kProductMostBooks <= 64);  // a bit for each
  // A bit for each book whose next code differs. All lanes of a warp take part.
  __device__ uint64_t differing_books(int h) const {
    uint64_t differ = 0;
    for (int k = quarter(); k < static_cast<int>(books_.books); k += 4) {
      if (current(h)[k] != next(h)[k]) differ |= uint64_t{1} << k;
    }
    differ |= __shfl_xor_sync(kAllLanes, differ, 1);
    return differ | __shfl_xor_sync(kAllLanes, differ, 2);
  }

  __device__ void follow(int h, uint64_t differ) const {
    if (2 * __popcll(differ) > static_cast<int>(books_.books)) return make_residual(h, next(h));
    for (; differ != 0; differ &= differ - 1) {
      const int k = __ffsll(static_cast<long long>(differ)) - 1;
      replace(k, h, current(h)[k], next(h)[k], false);
    }
  }

  // A row minus its codewords, if it has codes.
  __device__ void make_residual(int h, const uint8_t* codes) const {
    const int words = codes == nullptr ? 0 : static_cast<int>(books_.books);
    for (int chunk = 0; chunk < layout_.chunks; ++chunk) {
      float4 left[kChunkSteps] = {};
      if (there_[h]) read_word(row_values(h) + chunk * kChunkVectors, left);
#pragma unroll 4
      for (int k = 0; k < words; ++k) subtract(word(k, codes[k]) + chunk * kChunkVectors, left);
      write(chunk, h, left);
    }
  }

  const IcmBooks& books_;
  const IcmRows& rows_;
  const ProductLayout& layout_;
  std::byte* const shared_;
  bool there_[2];  // false: no row, or one of another search
  int now_ = 0;    // which of the two places has the current codes
};

}  // namespace kith::icm
