// The search for codes on Hopper's matrix units.
//
// A block searches for the codes of 128 rows, a warpgroup for 64, from the start to the last round; books come one after
// the other through a ring of two. What is left of a row lies in shared memory as f32, each thread's part where only it
// looks: four lanes, a quad, share a row. A step multiplies r + c, rounded to halves, with all codewords of the book,
// where c is the codeword that the row has there, as the halves that are at hand. Sums begin with - |c|^2 / 2: the
// largest is the nearest. What lies within the window of it (BookWindow) is decided by exact costs, a quad for a row,
// and only where a code of the row has changed since the book's last step; else the code stays what it was.
//
// Columns are permuted within 16, in rows and books alike, so that a lane has four neighbours, 4 t to 4 t + 3: one
// 16-byte read, and the four lanes of the canonical sum that they belong to.
//
// Cost of a step for 128 rows: 2,048 cycles of the matrix units at d = 128, 64 KB of a book from the second-level cache,
// 384 operations a thread to find the largest and what is near it, and two codewords for each row whose code changes.
//
// Include from .cu files that are compiled for Hopper. A Watch sees where the time goes, for a benchmark.
#pragma once

#include "quantize/additive/icm_task_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/ptx_hopper.hpp"

#include <cuda_fp16.h>

#include <cmath>

namespace kith::icm {

constexpr int kGroups = 2;
constexpr int kGroupThreads = 128;
constexpr int kSearchers = kGroups * kGroupThreads;
constexpr int kThreads = kSearchers + kGroupThreads;  // one more copies, and gives them its registers
constexpr int kSearcherRegisters = 232;  // of 168 that all begin with
constexpr int kCopierRegisters = 40;
constexpr int kGroupRows = 64;
constexpr int kStages = 2;
constexpr int kHalfTile = 128;  // codewords of one product
constexpr int kNone = kProductWords;
constexpr unsigned kFullWarp = 0xFFFFFFFFu;
constexpr float kNormSlack = 1.0001f;

struct Barriers {
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

// What a step does, in turn.
enum class Stage : int { wait, operand, product, choice, settle, replace, rest, count };

// The time since the last call belongs to that stage.
struct NoWatch {
  __device__ void begin() {}
  __device__ void ends(Stage) {}
  __device__ void finish() {}
};

template <int kChunks>
struct Layout {
  static constexpr int kTileBytes = kChunks * kProductChunkBytes;
  static constexpr int kSteps = 4 * kChunks;  // of 16 columns
  static constexpr int kCols = kChunks * kProductChunkCols;
  static constexpr int kResidualBytes = kSearchers * 2 * kSteps * 16;
  static constexpr int kTerms = kStages * kTileBytes;
  static constexpr int kResiduals = kTerms + kStages * kProductWords * 4;
  static constexpr int kBarriers = kResiduals + kResidualBytes;
  static constexpr int kCodes = kBarriers + 64;
  static int bytes(int64_t books) { return 1024 + kCodes + static_cast<int>(2 * kProductTileRows * books); }
};

struct Place {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    stage ^= 1;
    parity ^= stage == 0 ? 1u : 0u;
  }
};

template <int kChunks>
__device__ void copy_books(const IcmBooks& books, const IcmRun& run, std::byte* shared, Barriers* barriers) {
  using L = Layout<kChunks>;
  Place place;
  const auto bring = [&](int64_t book) {
    uint64_t* const full = &barriers->full[place.stage];
    ptx::barrier_wait(&barriers->empty[place.stage], place.parity ^ 1);
    ptx::barrier_arrive_and_expect(full, L::kTileBytes + kProductWords * 4);
    for (int part = 0; part < 2 * kChunks; ++part) {
      constexpr int kPart = kProductChunkBytes / 2;
      ptx::copy_bulk(shared + place.stage * L::kTileBytes + part * kPart,
                     books.tiles + book * L::kTileBytes + part * kPart, kPart, full);
    }
    ptx::copy_bulk(shared + L::kTerms + place.stage * kProductWords * 4, books.terms + book * kProductWords,
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
}

__device__ inline uint32_t packed_halves(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// The sum of a quad's canonical lanes, 4 t to 4 t + 3 in its lane t: the tree of canonical_tree(), the same in all four.
__device__ inline double quad_tree(double (&lanes)[4]) {
#pragma unroll
  for (int apart = 2; apart > 0; --apart) {
#pragma unroll
    for (int i = 0; i < 4; ++i) lanes[i] += __shfl_xor_sync(kFullWarp, lanes[i], apart);
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

__device__ inline void add_square(float difference, double& lane) {
  const auto wide = static_cast<double>(difference);
  lane = fma(wide, wide, lane);
}

// A thread of a warpgroup: a quarter of each of two rows.
template <int kChunks, typename Watch>
class Searcher {
 public:
  using L = Layout<kChunks>;

  __device__ Searcher(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, std::byte* shared,
                      const Watch& watch)
      : books_(books),
        rows_(rows),
        run_(run),
        shared_(shared),
        watch_(watch),
        barriers_(reinterpret_cast<Barriers*>(shared + L::kBarriers)),
        quarter_(static_cast<int>(threadIdx.x % 4)),
        first_row_(static_cast<int>(threadIdx.x / kGroupThreads * kGroupRows + threadIdx.x % kGroupThreads / 32 * 16)) {
    const int local = first_row_ + static_cast<int>(threadIdx.x % 32 / 4);
    residual_ = reinterpret_cast<float4*>(shared + L::kResiduals) +
                static_cast<int>(threadIdx.x / kGroupThreads) * 2 * L::kSteps * kGroupThreads +
                static_cast<int>(threadIdx.x % kGroupThreads);
    uint8_t* const codes = reinterpret_cast<uint8_t*>(shared + L::kCodes);
    const auto m = static_cast<int>(books.books);
    current_of_block_ = codes;
    best_of_block_ = codes + kProductTileRows * m;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64_t row = static_cast<int64_t>(blockIdx.x) * kProductTileRows + local + 8 * h;
      row_[h] = row < rows.count && rows.fits[row] != 0 ? row : -1;
      current_[h] = current_of_block_ + (local + 8 * h) * m;
      best_[h] = best_of_block_ + (local + 8 * h) * m;
    }
  }

  __device__ void run() {
    watch_.begin();
    start();
#pragma unroll
    for (int h = 0; h < 2; ++h) cost_[h] = cost(h);
    keep(true, true);
    for (int round = 0; round < run_.rounds; ++round) {
      perturb(run_.first_round + round);
      load_residuals(true);
      changed_[0] = changed_[1] = 1;  // so that every first step of a book is one
      const IcmStep* const steps = run_.schedule + static_cast<int64_t>(round) * run_.schedule_stride;
      IcmStep next = steps[0];
      for (int i = 0; i < run_.steps; ++i) {
        const IcmStep now = next;
        next = steps[min(i + 1, run_.steps - 1)];
        step(now.book, now.before, i + 2, false);
      }
      const float now[2] = {cost(0), cost(1)};
      const bool better[2] = {now[0] < cost_[0], now[1] < cost_[1]};
#pragma unroll
      for (int h = 0; h < 2; ++h) cost_[h] = better[h] ? now[h] : cost_[h];
      keep(better[0], better[1]);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row_[h] < 0) continue;
      for (int64_t k = quarter_; k < books_.books; k += 4) rows_.codes[row_[h] * books_.books + k] = best_[h][k];
      if (rows_.costs != nullptr && quarter_ == 0) rows_.costs[row_[h]] = cost_[h];
    }
    watch_.ends(Stage::rest);
    watch_.finish();
  }

 private:
  __device__ float4& residual(int h, int s) const { return residual_[(h * L::kSteps + s) * kGroupThreads]; }
  __device__ const float4* word(int64_t book, int j) const {
    return reinterpret_cast<const float4*>(books_.centred + (book * kProductWords + j) * L::kCols) + quarter_;
  }

  // The best codes so far, or the start, to the codes that are worked with; and back where they are better.
  __device__ void keep(bool first, bool second) const {
    __syncwarp();
    const bool wanted[2] = {first, second};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int64_t k = quarter_; wanted[h] && k < books_.books; k += 4) best_[h][k] = current_[h][k];
    }
    __syncwarp();
  }

  __device__ void start() {
    const auto m = static_cast<int>(books_.books);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int k = quarter_; k < m; k += 4) {
        current_[h][k] = row_[h] >= 0 && run_.start == IcmStart::given ? rows_.codes[row_[h] * m + k] : uint8_t{0};
      }
      if (quarter_ == 0 && row_[h] >= 0 && run_.start == IcmStart::random) {
        draw_codes(run_.perturbation.seed, rows_.numbers[row_[h]], m, books_.bits, current_[h]);
      }
    }
    __syncwarp();
    const bool greedy = run_.start == IcmStart::greedy;
    load_residuals(!greedy);
    changed_[0] = changed_[1] = 1;
    for (int k = 0; greedy && k < m; ++k) step(k, 0, 1, true);
  }

  // Each of 16 lanes has a row of the warp.
  __device__ void perturb(int64_t round) const {
    const auto m = static_cast<int>(books_.books);
    const auto lane = static_cast<int>(threadIdx.x % 32);
    if (lane < 16) {
      const int local = first_row_ + lane;
      uint8_t* const to = current_of_block_ + local * m;
      for (int k = 0; k < m; ++k) to[k] = best_of_block_[local * m + k];
      const int64_t row = static_cast<int64_t>(blockIdx.x) * kProductTileRows + local;
      if (row < rows_.count) perturb_codes(run_.perturbation, rows_.numbers[row], round, m, books_.bits, to);
    }
    __syncwarp();
  }

  // The rows, less the codewords that they have.
  __device__ void load_residuals(bool less_words) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float4 left[L::kSteps];
      const float4* const row =
          reinterpret_cast<const float4*>(rows_.centred + (row_[h] < 0 ? 0 : row_[h]) * L::kCols) + quarter_;
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

  // One step: `now` counts those of a round from 2 on, `before` from 1 on, 0 for none.
  __device__ void step(int book, int before, int now, bool starting) {
    const float4 window = __ldg(reinterpret_cast<const float4*>(books_.windows) + book);
    const int had[2] = {current_[0][book], current_[1][book]};
    uint32_t near[2][2];  // of a row, in a half of the book: what lies within the window, 32 codewords a word
    find_near(window, had, starting, near);
    int found[2];
    bool doubtful = false;
    bool open[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int count = __popc(near[h][0]) + __popc(near[h][1]);
      count += __shfl_xor_sync(kFullWarp, count, 1);
      count += __shfl_xor_sync(kFullWarp, count, 2);
      found[h] = next_near(near[h][0], near[h][1]);
      const bool active = changed_[h] > before;
      if (!active) found[h] = had[h];
      open[h] = active && count > 1 && row_[h] >= 0;
      doubtful = doubtful || open[h];
    }
    watch_.ends(Stage::choice);
    if (__any_sync(kFullWarp, doubtful)) settle(book, had, starting, near, open, found);
    watch_.ends(Stage::settle);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row_[h] < 0 || (found[h] == had[h] && !starting)) continue;
      changed_[h] = now;
      replace(book, h, had[h], found[h], starting);
    }
    __syncwarp();
    watch_.ends(Stage::replace);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (quarter_ == 0) current_[h][book] = static_cast<uint8_t>(found[h]);
    }
    __syncwarp();
  }

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

  // Which codewords may be the nearest: bit 2 j + i of a half's word is codeword 8 j + 2 quarter + i of it.
  __device__ void find_near(const float4& window, const int (&had)[2], bool starting, uint32_t (&near)[2][2]) {
    const int stage = place_.stage;
    const std::byte* const tile = shared_ + stage * L::kTileBytes;
    watch_.ends(Stage::rest);
    ptx::barrier_wait(&barriers_->full[stage], place_.parity);
    watch_.ends(Stage::wait);
    uint32_t a[L::kSteps][4];
    float norms[2] = {0, 0};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::byte* const taken = tile + had[h] * 128 + 4 * quarter_;
      const int swizzle = had[h] % 8;
#pragma unroll
      for (int s = 0; s < L::kSteps; ++s) {
        float4 r = residual(h, s);
        if (!starting) {
          const std::byte* const chunk = taken + s / 4 * kProductChunkBytes;
          const auto low = *reinterpret_cast<const __half2*>(chunk + ((2 * (s % 4)) ^ swizzle) * 16);
          const auto high = *reinterpret_cast<const __half2*>(chunk + ((2 * (s % 4) + 1) ^ swizzle) * 16);
          const float2 l = __half22float2(low);
          const float2 u = __half22float2(high);
          r = {r.x + l.x, r.y + l.y, r.z + u.x, r.w + u.y};
        }
        norms[h] = fmaf(r.x, r.x, norms[h]);
        norms[h] = fmaf(r.y, r.y, norms[h]);
        norms[h] = fmaf(r.z, r.z, norms[h]);
        norms[h] = fmaf(r.w, r.w, norms[h]);
        a[s][h] = packed_halves(r.x, r.y);
        a[s][2 + h] = packed_halves(r.z, r.w);
      }
    }
    float sums[2][64];
    const auto* const terms = reinterpret_cast<const float2*>(shared_ + L::kTerms) + stage * kProductWords / 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const float2 pair = terms[half * kHalfTile / 2 + 4 * j + quarter_];
        sums[half][4 * j] = sums[half][4 * j + 2] = pair.x;
        sums[half][4 * j + 1] = sums[half][4 * j + 3] = pair.y;
      }
    }
    ptx::keep_sums(sums[0]);
    ptx::keep_sums(sums[1]);
    watch_.ends(Stage::operand);
    ptx::warpgroup_fence();
    const uint64_t b = ptx::operand_descriptor(tile);
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int offset = s / 4 * kProductChunkBytes + half * kHalfTile * 128 + s % 4 * 32;
        ptx::multiply_rows(sums[half], a[s], ptx::descriptor_after(b, offset));
      }
    }
    ptx::warpgroup_commit();
    ptx::warpgroup_wait<0>();
    ptx::keep_sums(sums[0]);
    ptx::keep_sums(sums[1]);
    __syncwarp();
    watch_.ends(Stage::product);
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(&barriers_->empty[stage]);
    place_.advance();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = -HUGE_VALF;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int j = 0; j < 16; ++j) {
          largest = fmaxf(largest, fmaxf(sums[half][4 * j + 2 * h], sums[half][4 * j + 2 * h + 1]));
        }
      }
      float norm = norms[h];
#pragma unroll
      for (int apart = 1; apart <= 2; ++apart) {
        largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, apart));
        norm += __shfl_xor_sync(kFullWarp, norm, apart);
      }
      const float reach = fmaf(sqrtf(norm), kNormSlack, window.x);
      const float least = largest - fmaf(reach, fmaf(reach, window.w, window.z), window.y);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t bits = 0;
#pragma unroll
        for (int j = 0; j < 16; ++j) {
          bits |= sums[half][4 * j + 2 * h] >= least ? 1u << (2 * j) : 0u;
          bits |= sums[half][4 * j + 2 * h + 1] >= least ? 2u << (2 * j) : 0u;
        }
        near[h][half] = bits;
      }
    }
  }

  // The first codeword of a row that any lane of its quad has in its bits; kNone where none has.
  __device__ int next_near(uint32_t low, uint32_t high) const {
    const uint32_t bits = low != 0 ? low : high;
    const int bit = __ffs(static_cast<int>(bits)) - 1;
    int first = bits == 0 ? kNone : (low != 0 ? 0 : kHalfTile) + bit / 2 * 8 + quarter_ * 2 + bit % 2;
    first = min(first, __shfl_xor_sync(kFullWarp, first, 1));
    return min(first, __shfl_xor_sync(kFullWarp, first, 2));
  }

  // The first by exact cost, two codewords at a time. Quads work on their rows side by side; all lanes take part.
  __device__ void settle(int book, const int (&had)[2], bool starting, uint32_t (&near)[2][2], const bool (&open)[2],
                         int (&found)[2]) const {
    bool left[2] = {open[0], open[1]};
    float least[2] = {HUGE_VALF, HUGE_VALF};
    while (__any_sync(kFullWarp, left[0] || left[1])) {
      const int h = left[0] ? 0 : 1;
      uint32_t low = h == 0 ? near[0][0] : near[1][0];
      uint32_t high = h == 0 ? near[0][1] : near[1][1];
      int pair[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        pair[i] = next_near(low, high);
        const int at = pair[i] % kHalfTile;
        const bool mine = pair[i] != kNone && at % 8 / 2 == quarter_;
        const uint32_t bit = mine ? 1u << (at / 8 * 2 + at % 2) : 0u;
        if (pair[i] < kHalfTile) {
          low &= ~bit;
        } else {
          high &= ~bit;
        }
      }
      float keys[2];
      exact_costs(book, h, h == 0 ? had[0] : had[1], starting, pair, keys);
      const bool more = next_near(low, high) != kNone;
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        if (h != row || !left[row]) continue;
        near[row][0] = low;
        near[row][1] = high;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (pair[i] == kNone || !(keys[i] < least[row])) continue;
          least[row] = keys[i];
          found[row] = pair[i];
        }
        left[row] = more;
      }
    }
  }

  __device__ void exact_costs(int book, int h, int had, bool starting, const int (&pair)[2], float (&keys)[2]) const {
    const float4* const from = word(book, had);
    const float4* const first = word(book, pair[0] % kProductWords);
    const float4* const second = word(book, pair[1] % kProductWords);
    double lanes[2][4] = {};
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) {
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

  const IcmBooks& books_;
  const IcmRows& rows_;
  const IcmRun& run_;
  std::byte* shared_;
  Watch watch_;
  Barriers* barriers_;
  const int quarter_;
  const int first_row_;  // of the warp, in the block
  float4* residual_;
  uint8_t* current_of_block_;
  uint8_t* best_of_block_;
  int64_t row_[2];
  uint8_t* current_[2];
  uint8_t* best_[2];
  float cost_[2];
  int changed_[2];  // the step of the round that changed a code last
  Place place_;
};

template <int kChunks, typename Watch>
__global__ void __launch_bounds__(kThreads, 1)
    products_kernel(const __grid_constant__ IcmBooks books, const __grid_constant__ IcmRows rows,
                    const __grid_constant__ IcmRun run, Watch watch) {
  using L = Layout<kChunks>;
  extern __shared__ std::byte dynamic[];
  std::byte* const shared = dynamic + (1024 - ptx::shared_address(dynamic) % 1024) % 1024;
  auto* const barriers = reinterpret_cast<Barriers*>(shared + L::kBarriers);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::barrier_init(&barriers->full[stage], 1);
      ptx::barrier_init(&barriers->empty[stage], kSearchers / 32);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x >= kSearchers) {
    ptx::give_registers<kCopierRegisters>();
    if (threadIdx.x == kSearchers) copy_books<kChunks>(books, run, shared, barriers);
  } else {
    ptx::take_registers<kSearcherRegisters>();
    Searcher<kChunks, Watch>(books, rows, run, shared, watch).run();
  }
}

}  // namespace kith::icm
