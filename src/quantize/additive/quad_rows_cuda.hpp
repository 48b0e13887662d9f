// The rows of a warpgroup in the search by products (icm_products_kernel_cuda.hpp), as a thread has them: a quarter of
// each of two rows. Of what is left of a row, four lanes, a quad, have four of each 16 columns: 4 t to 4 t + 3 are lane
// t's, in shared memory where only it looks.
#pragma once

#include "core/slot.hpp"
#include "cuda/ptx_hopper.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "quantize/additive/icm_task_cuda.hpp"

#include <cstdint>

namespace kith::icm {

// A block of the search by products (icm_products_kernel_cuda.hpp): its threads, its shared memory, and the warpgroup
// that brings books to it, one after the other, through a ring of two.

inline constexpr int kGroups = 2;
inline constexpr int kGroupThreads = 128;
inline constexpr int kSearchers = kGroups * kGroupThreads;
inline constexpr int kThreads = kSearchers + kGroupThreads;  // one more copies, and gives them its registers
inline constexpr int kSearcherRegisters = 232;               // of 168 that all begin with
inline constexpr int kCopierRegisters = 40;
inline constexpr int kGroupRows = 64;
inline constexpr int kStages = 2;
inline constexpr int kHalfTile = 128;  // codewords of one product

struct Barriers {
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

// What a step does, in turn.
enum class Stage : int { wait, operand, product, choice, settle, replace, rest, count };

// Books come and go by barriers in shared memory alone: a warp that has read one says so, and the copier overwrites it
// when all have. racecheck reports such pairs. To tell whether it merely does not follow these barriers, a Watch with
// kBlockBarriers lets copier and searchers meet at a barrier of the block after each step, too (`lsq_cuda_bench --parts
// race`).
inline constexpr int kMeetingBarrier = 1;
inline constexpr int kMeetingThreads = kSearchers + 32;

// The time since the last call belongs to that stage.
struct NoWatch {
  static constexpr bool kBlockBarriers = false;
  __device__ void begin() {}
  __device__ void ends(Stage) {}
  __device__ void finish() {}
};

template <int kChunks>
struct Layout {
  static constexpr int kTileBytes = kChunks * kProductChunkBytes;
  static constexpr int kSteps = 4 * kChunks;  // of 16 columns
  static constexpr int kCols = kChunks * kProductChunkCols;

  // Shared memory: tiles of books first.
  static constexpr Slot<float> terms() { return {kStages * kTileBytes, kStages * kProductWords}; }
  static constexpr Slot<float4> residuals() { return {terms().offset + terms().bytes(), kSearchers * 2 * kSteps}; }
  static constexpr Slot<Barriers> barriers() { return {residuals().offset + residuals().bytes(), 1}; }
  // The best so far, those that are worked with, and the next ones.
  static constexpr Slot<uint8_t> codes(int64_t books) { return {barriers().offset + 64, 3 * kProductTileRows * books}; }
  static int bytes(int64_t books) { return static_cast<int>(1024 + codes(books).offset + codes(books).bytes()); }
};

struct Place {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    stage ^= 1;
    parity ^= stage == 0 ? 1u : 0u;
  }
};

// By the first thread of a warp; with barriers of the block, by all of it.
template <int kChunks, bool kBlockBarriers>
__device__ void copy_books(const IcmBooks& books, const IcmRun& run, std::byte* shared, Barriers* barriers) {
  using L = Layout<kChunks>;
  Place place;
  int64_t brought = 0;
  const auto bring = [&](int64_t book) {
    if constexpr (kBlockBarriers) {
      if (brought++ >= kStages) ptx::turn_wait(kMeetingBarrier, kMeetingThreads);
      if (threadIdx.x % 32 != 0) return;
    }
    uint64_t* const full = &barriers->full[place.stage];
    ptx::barrier_wait(&barriers->empty[place.stage], place.parity ^ 1);
    ptx::barrier_arrive_and_expect(full, L::kTileBytes + kProductWords * 4);
    for (int part = 0; part < 2 * kChunks; ++part) {
      constexpr int kPart = kProductChunkBytes / 2;
      ptx::copy_bulk(shared + place.stage * L::kTileBytes + part * kPart,
                     books.tiles + book * L::kTileBytes + part * kPart, kPart, full);
    }
    ptx::copy_bulk(L::terms().in(shared) + place.stage * kProductWords, books.terms + book * kProductWords,
                   kProductWords * 4, full);
    place.advance();
  };
  if (run.start == IcmStart::greedy) {
    for (int64_t k = 0; k < books.books; ++k) bring(k);
  }
  for (int round = 0; round < run.rounds; ++round) {
    const IcmStep* const steps = run.schedule + static_cast<int64_t>(round) * run.schedule_stride;
    for (int i = 0; i < run.steps; ++i) bring(steps[i].book);
  }
  if constexpr (kBlockBarriers) {
    for (int64_t last = 0; last < min(brought, int64_t{kStages}); ++last)
      ptx::turn_wait(kMeetingBarrier, kMeetingThreads);
  }
}

// The sum of a quad's canonical lanes, 4 t to 4 t + 3 in its lane t: the tree of canonical_tree(), the same in all
// four.
__device__ inline double quad_tree(double (&lanes)[4]) {
#pragma unroll
  for (int apart = 2; apart > 0; --apart) {
#pragma unroll
    for (int i = 0; i < 4; ++i) lanes[i] += __shfl_xor_sync(kAllLanes, lanes[i], apart);
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

__device__ inline void add_square(float difference, double& lane) {
  const auto wide = static_cast<double>(difference);
  lane = fma(wide, wide, lane);
}

template <int kChunks>
class QuadRows {
 public:
  using L = Layout<kChunks>;

  __device__ QuadRows(const IcmBooks& books, const IcmRows& rows, std::byte* shared)
      : books_(books),
        rows_(rows),
        quarter_(static_cast<int>(threadIdx.x % 4)),
        first_row_(static_cast<int>(threadIdx.x / kGroupThreads * kGroupRows + threadIdx.x % kGroupThreads / 32 * 16)) {
    const int local = first_row_ + static_cast<int>(threadIdx.x % 32 / 4);
    residual_ = L::residuals().in(shared) +
                static_cast<int>(threadIdx.x / kGroupThreads) * 2 * L::kSteps * kGroupThreads +
                static_cast<int>(threadIdx.x % kGroupThreads);
    uint8_t* const codes = L::codes(books.books).in(shared);
    const auto m = static_cast<int>(books.books);
    best_of_block_ = codes;
    current_of_block_ = codes + kProductTileRows * m;
    to_next_ = kProductTileRows * m;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64_t row = static_cast<int64_t>(blockIdx.x) * kProductTileRows + local + 8 * h;
      row_[h] = row < rows.count && rows.fits[row] != 0 ? row : -1;
      current_[h] = current_of_block_ + (local + 8 * h) * m;
      best_[h] = best_of_block_ + (local + 8 * h) * m;
    }
  }

  __device__ int quarter() const { return quarter_; }
  __device__ bool there(int h) const { return row_[h] >= 0; }
  __device__ int code(int h, int64_t book) const { return current_[h][book]; }
  // Of both rows; all lanes of a warp take part.
  __device__ void set_codes(int64_t book, const int (&found)[2]) const {
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (quarter_ == 0) current_[h][book] = static_cast<uint8_t>(found[h]);
    }
    __syncwarp();
  }

  __device__ float4& residual(int h, int s) const { return residual_[(h * L::kSteps + s) * kGroupThreads]; }

  // The codes that the search begins with, but for a greedy start, which finds them.
  __device__ void start_codes(const IcmRun& run) const {
    const auto m = static_cast<int>(books_.books);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int k = quarter_; k < m; k += 4) {
        current_[h][k] = row_[h] >= 0 && run.start == IcmStart::given ? rows_.codes[row_[h] * m + k] : uint8_t{0};
      }
      __syncwarp();
      if (quarter_ == 0 && row_[h] >= 0 && run.start == IcmStart::random) {
        draw_codes(run.perturbation.seed, rows_.numbers[row_[h]], m, books_.bits, current_[h]);
      }
    }
    __syncwarp();
  }

  // The codes that are worked with become the best so far, where wanted.
  __device__ void keep(bool first, bool second) const {
    __syncwarp();
    const bool wanted[2] = {first, second};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int64_t k = quarter_; wanted[h] && k < books_.books; k += 4) best_[h][k] = current_[h][k];
    }
    __syncwarp();
  }

  // The best codes so far, perturbed, to those that are worked with next. Each of 16 lanes has a row of the warp.
  __device__ void perturb(const Perturbation& perturbation, int64_t round) const {
    const auto m = static_cast<int>(books_.books);
    const auto lane = static_cast<int>(threadIdx.x % 32);
    if (lane < 16) {
      const int local = first_row_ + lane;
      uint8_t* const to = current_of_block_ + to_next_ + local * m;
      for (int k = 0; k < m; ++k) to[k] = best_of_block_[local * m + k];
      const int64_t row = static_cast<int64_t>(blockIdx.x) * kProductTileRows + local;
      if (row < rows_.count) perturb_codes(perturbation, rows_.numbers[row], round, m, books_.bits, to);
    }
    __syncwarp();
  }

  // Turns to the next codes, and what is left of the rows with them: two codewords for each code that differs, or all
  // of the row's, where that is fewer to read. Sums are exact, so that the way does not matter.
  __device__ void take_next() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint64_t differ = differing_books(h);
      if (row_[h] >= 0 && differ != 0) follow(h, differ);
      current_[h] += to_next_;
    }
    current_of_block_ += to_next_;
    to_next_ = -to_next_;
    __syncwarp();
  }

  // The rows, less the codewords that they have.
  __device__ void load_residuals(bool less_words) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float4 left[L::kSteps];
      const float4* const row = vectors<float4>(rows_.centred + (row_[h] < 0 ? 0 : row_[h]) * L::kCols) + quarter_;
#pragma unroll
      for (int s = 0; s < L::kSteps; ++s) left[s] = row_[h] < 0 ? float4{0, 0, 0, 0} : row[4 * s];
      for (int64_t k = 0; less_words && k < books_.books; ++k) {
        const float4* const taken = word(k, current_[h][k]);
#pragma unroll
        for (int s = 0; s < L::kSteps; ++s) {
          const float4 c = taken[4 * s];
          left[s] = {left[s].x - c.x, left[s].y - c.y, left[s].z - c.z, left[s].w - c.w};
        }
      }
#pragma unroll
      for (int s = 0; s < L::kSteps; ++s) residual(h, s) = left[s];
    }
  }

  // The canonical cost of the codes that are worked with.
  __device__ float cost(int h) const {
    double lanes[4] = {};
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) {
      const float4 r = residual(h, s);
      add_square(r.x, lanes[0]);
      add_square(r.y, lanes[1]);
      add_square(r.z, lanes[2]);
      add_square(r.w, lanes[3]);
    }
    return static_cast<float>(quad_tree(lanes) * books_.unscale);
  }

  // Another codeword of a book, or its first.
  __device__ void replace(int book, int h, int had, int found, bool starting) const {
    const float4* const from = word(book, had);
    const float4* const to = word(book, found);
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) {
      float4 r = residual(h, s);
      const float4 c = to[4 * s];
      if (!starting) {
        const float4 b = from[4 * s];
        r = {r.x + b.x, r.y + b.y, r.z + b.z, r.w + b.w};
      }
      residual(h, s) = {r.x - c.x, r.y - c.y, r.z - c.z, r.w - c.w};
    }
  }

  // The costs of two codewords of a book; codes past the last have any.
  // All lanes of a warp take part; rows that do not ask read nothing.
  __device__ void exact_costs(int book, int h, int had, bool starting, bool asks, const int (&pair)[2],
                              float (&keys)[2]) const {
    const float4* const from = word(book, had);
    const float4* const first = word(book, pair[0] % kProductWords);
    const float4* const second = word(book, pair[1] % kProductWords);
    double lanes[2][4] = {};
#pragma unroll
    for (int s = 0; asks && s < L::kSteps; ++s) {
      float4 r = residual(h, s);
      if (!starting) {
        const float4 b = from[4 * s];
        r = {r.x + b.x, r.y + b.y, r.z + b.z, r.w + b.w};
      }
      const float4 words[2] = {first[4 * s], second[4 * s]};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        add_square(r.x - words[i].x, lanes[i][0]);
        add_square(r.y - words[i].y, lanes[i][1]);
        add_square(r.z - words[i].z, lanes[i][2]);
        add_square(r.w - words[i].w, lanes[i][3]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) keys[i] = static_cast<float>(quad_tree(lanes[i]) * books_.unscale);
  }

  __device__ void write_best(const float (&costs)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row_[h] < 0) continue;
      for (int64_t k = quarter_; k < books_.books; k += 4) rows_.codes[row_[h] * books_.books + k] = best_[h][k];
      if (rows_.costs != nullptr && quarter_ == 0) rows_.costs[row_[h]] = costs[h];
    }
  }

 private:
  __device__ const float4* word(int64_t book, int j) const {
    return vectors<float4>(books_.centred + (book * kProductWords + j) * L::kCols) + quarter_;
  }

  static_assert(kProductMostBooks <= 64);  // a bit for each
  // A bit for each book whose next code is another. All lanes of a warp take part.
  __device__ uint64_t differing_books(int h) const {
    uint64_t differ = 0;
    for (int k = quarter_; k < static_cast<int>(books_.books); k += 4) {
      if (current_[h][k] != current_[h][k + to_next_]) differ |= uint64_t{1} << k;
    }
    differ |= __shfl_xor_sync(kAllLanes, differ, 1);
    return differ | __shfl_xor_sync(kAllLanes, differ, 2);
  }

  __device__ void follow(int h, uint64_t differ) const {
    const auto m = static_cast<int>(books_.books);
    const uint8_t* const next = current_[h] + to_next_;
    const bool anew = 2 * __popcll(differ) > m;
    const float4* const row = vectors<float4>(rows_.centred + row_[h] * L::kCols) + quarter_;
    float4 left[L::kSteps];
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) left[s] = anew ? row[4 * s] : residual(h, s);
    uint64_t open = anew ? ~uint64_t{0} >> (64 - m) : differ;
    while (open != 0) {
      const int k = __ffsll(static_cast<long long>(open)) - 1;
      open &= open - 1;
      const float4* const less = word(k, next[k]);
      const float4* other = word(k, current_[h][k]);  // what the row had there comes back
      float sign = 1;
      if (anew) {  // another codeword goes
        const int l = open == 0 ? k : __ffsll(static_cast<long long>(open)) - 1;
        sign = open == 0 ? 0.0f : -1.0f;
        other = word(l, next[l]);
        open &= open - 1;
      }
#pragma unroll
      for (int s = 0; s < L::kSteps; ++s) {
        const float4 b = other[4 * s];
        const float4 c = less[4 * s];
        left[s] = {fmaf(sign, b.x, left[s].x) - c.x, fmaf(sign, b.y, left[s].y) - c.y, fmaf(sign, b.z, left[s].z) - c.z,
                   fmaf(sign, b.w, left[s].w) - c.w};
      }
    }
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) residual(h, s) = left[s];
  }

  const IcmBooks& books_;
  const IcmRows& rows_;
  const int quarter_;
  const int first_row_;  // of the warp, in the block
  float4* residual_;
  uint8_t* best_of_block_;
  uint8_t* current_of_block_;
  int to_next_;     // from the codes that are worked with to the next ones: the two places take turns
  int64_t row_[2];  // -1: none, or of another search
  uint8_t* current_[2];
  uint8_t* best_[2];
};

}  // namespace kith::icm
