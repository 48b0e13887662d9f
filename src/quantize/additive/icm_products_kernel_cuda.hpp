// The search for codes on Hopper's matrix units.
//
// A block searches the codes of 128 rows, a warpgroup those of 64, from the start to the last round; books arrive one
// after the other, 64 columns at a time, through a ring. Residuals are f32 in shared memory, each thread's part private
// to it, and for the last columns of wide rows in device memory, where they stay in the second-level cache. Four lanes,
// a quad, share a row. A step multiplies r + c, rounded to halves, by all codewords of the book, where r is the
// residual and c the row's present codeword of that book, as halves. Sums start at - |c|^2 / 2, so that the largest is
// the nearest. Codewords within the window of it (BookWindow) are decided by exact costs, a quad per row, and only if a
// code of the row has changed since the book's last step; otherwise the code stays.
//
// Columns are permuted within 16, in rows and books alike, so that a lane has four neighbours, 4 t to 4 t + 3: one
// 16-byte read, and the four lanes of the canonical sum that they belong to.
//
// Cost of a step for 128 rows, per 64 columns: 1,024 cycles of the matrix units, 32 KB of a book from the second-level
// cache, and two codewords for each row whose code changes; besides 384 operations per thread to find the largest sum
// and those near it.
//
// Include from .cu files that are compiled for Hopper. A Watch measures where the time goes, for a benchmark.
#pragma once

#include "core/divide.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "quantize/additive/quad_rows_cuda.hpp"

#include <cuda_fp16.h>

#include <cmath>

namespace kith::icm {

inline constexpr int kNone = kProductWords;
inline constexpr float kNormSlack = 1.0001f;  // a sum of kProductMostCols / 4 squares, one after the other, in f32

__device__ inline uint32_t packed_halves(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// A thread of a warpgroup.
template <bool kShared, typename Watch>
class Searcher {
 public:
  __device__ Searcher(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, const ProductLayout& layout,
                      std::byte* shared, const Watch& watch)
      : books_(books),
        run_(run),
        layout_(layout),
        shared_(shared),
        quads_(books, rows, layout, shared),
        watch_(watch) {}

  __device__ void run() {
    watch_.begin();
    start();
#pragma unroll
    for (int h = 0; h < 2; ++h) cost_[h] = quads_.cost(h);
    quads_.keep(true, true);
    for (int round = 0; round < run_.rounds; ++round) {
      quads_.perturb(run_.perturbation, run_.first_round + round);
      quads_.take_next();
      changed_[0] = changed_[1] = 1;  // so that every first step of a book is one
      const IcmStep* const steps = run_.schedule + static_cast<int64_t>(round) * run_.schedule_stride;
      IcmStep next = steps[0];
      for (int i = 0; i < run_.steps; ++i) {
        const IcmStep now = next;
        next = steps[min(i + 1, run_.steps - 1)];
        step(now.book, now.before, i + 2, false);
      }
      const float now[2] = {quads_.cost(0), quads_.cost(1)};
      const bool better[2] = {now[0] < cost_[0], now[1] < cost_[1]};
#pragma unroll
      for (int h = 0; h < 2; ++h) cost_[h] = better[h] ? now[h] : cost_[h];
      quads_.keep(better[0], better[1]);
    }
    quads_.write_best(cost_);
    watch_.ends(Stage::rest);
    watch_.finish();
  }

 private:
  __device__ void start() {
    const bool greedy = run_.start == IcmStart::greedy;
    quads_.start_codes(run_);
    quads_.load_residuals(!greedy);
    changed_[0] = changed_[1] = 1;
    for (int k = 0; greedy && k < books_.books; ++k) step(k, 0, 1, true);
  }

  // One step: `now` counts those of a round from 2 on, `before` from 1 on, 0 for none.
  __device__ void step(int book, int before, int now, bool starting) {
    const float4 window = __ldg(vectors<float4>(books_.windows) + book);
    const int had[2] = {quads_.code(0, book), quads_.code(1, book)};
    uint32_t near[2][2];  // of a row, in a half of the book: what lies within the window, 32 codewords a word
    find_near(window, had, starting, near);
    int found[2];
    bool doubtful = false;
    bool open[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int count = __popc(near[h][0]) + __popc(near[h][1]);
      count += __shfl_xor_sync(kAllLanes, count, 1);
      count += __shfl_xor_sync(kAllLanes, count, 2);
      found[h] = next_near(near[h][0], near[h][1]);
      const bool active = changed_[h] > before;
      if (!active) found[h] = had[h];
      open[h] = active && count > 1 && quads_.there(h);
      doubtful = doubtful || open[h];
    }
    watch_.ends(Stage::choice);
    if (__any_sync(kAllLanes, doubtful)) settle(book, had, starting, near, open, found);
    watch_.ends(Stage::settle);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!quads_.there(h) || (found[h] == had[h] && !starting)) continue;
      changed_[h] = now;
      quads_.replace(book, h, had[h], found[h], starting);
    }
    watch_.ends(Stage::replace);
    quads_.set_codes(book, found);
  }

  __device__ SharedSlots slots() const { return {layout_, books_.books}; }
  __device__ Barriers* barriers() const { return slots().barriers.in(shared_); }

  // The operand of a chunk: residuals plus the rows' present codewords, in halves. Adds to the norms.
  __device__ void make_operand(int chunk, const std::byte* tile, const int (&had)[2], bool starting,
                               uint32_t (&a)[kChunkSteps][4], float (&norms)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float4* const left = quads_.residual(chunk, h);
      const std::byte* const taken = tile + had[h] * 128 + 4 * quads_.quarter();
      const int swizzle = had[h] % 8;
#pragma unroll
      for (int s = 0; s < kChunkSteps; ++s) {
        float4 r = left[s * kSearchers];
        if (!starting) {
          const auto low = *reinterpret_cast<const __half2*>(taken + ((2 * s) ^ swizzle) * 16);
          const auto high = *reinterpret_cast<const __half2*>(taken + ((2 * s + 1) ^ swizzle) * 16);
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
  }

  __device__ void start_sums(int stage, float (&sums)[2][64]) const {
    const auto* const terms = vectors<float2>(slots().terms.in(shared_)) + stage * kProductWords / 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const float2 pair = terms[half * kHalfTile / 2 + 4 * j + quads_.quarter()];
        sums[half][4 * j] = sums[half][4 * j + 2] = pair.x;
        sums[half][4 * j + 1] = sums[half][4 * j + 3] = pair.y;
      }
    }
  }

  // Waits for the next kChunks chunks of the book, multiplies them, and releases their stages. A warp waits while its
  // operands are read; one warpgroup's products overlap with the making of the other's operands.
  template <int kChunks, bool kFirst>
  __device__ void multiply_chunks(int chunk, const int (&had)[2], bool starting, float (&sums)[2][64],
                                  float (&norms)[2]) {
    const std::byte* tiles[kChunks];
    Place ahead = place_;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      ptx::barrier_wait(&barriers()->full[ahead.stage], ahead.parity);
      tiles[i] = shared_ + ahead.stage * kProductChunkBytes;
      ahead.advance(layout_.stages);
    }
    watch_.ends(Stage::wait);
    uint32_t a[kChunks][kChunkSteps][4];
#pragma unroll
    for (int i = 0; i < kChunks; ++i) make_operand(chunk + i, tiles[i], had, starting, a[i], norms);
    if constexpr (kFirst) start_sums(place_.stage, sums);
    watch_.ends(Stage::operand);
    ptx::keep_sums(sums[0]);
    ptx::keep_sums(sums[1]);
    ptx::warpgroup_fence();
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const uint64_t b = ptx::operand_descriptor(tiles[i]);
#pragma unroll
      for (int s = 0; s < kChunkSteps; ++s) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          ptx::multiply_rows(sums[half], a[i][s], ptx::descriptor_after(b, half * kHalfTile * 128 + s * 32));
        }
      }
    }
    ptx::warpgroup_commit();
    ptx::warpgroup_wait<0>();
    ptx::keep_sums(sums[0]);
    ptx::keep_sums(sums[1]);
    __syncwarp();
    watch_.ends(Stage::product);
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      if (threadIdx.x % 32 == 0) ptx::barrier_arrive(&barriers()->empty[place_.stage]);
      if constexpr (Watch::kBlockBarriers) ptx::turn_wait(kMeetingBarrier, kMeetingThreads);
      place_.advance(layout_.stages);
    }
  }

  __device__ void multiply(const int (&had)[2], bool starting, float (&sums)[2][64], float (&norms)[2]) {
    watch_.ends(Stage::rest);
    if (kShared && layout_.chunks == 1) return multiply_chunks<1, true>(0, had, starting, sums, norms);
    if constexpr (kShared) return multiply_chunks<2, true>(0, had, starting, sums, norms);
    multiply_chunks<1, true>(0, had, starting, sums, norms);
#pragma unroll 1
    for (int chunk = 1; chunk < layout_.chunks; ++chunk) {
      multiply_chunks<1, false>(chunk, had, starting, sums, norms);
    }
  }

  // The codewords that may be the nearest: bit 2 j + i of a half's word is codeword 8 j + 2 quarter + i of it.
  __device__ void find_near(const float4& window, const int (&had)[2], bool starting, uint32_t (&near)[2][2]) {
    float sums[2][64];
    float norms[2] = {0, 0};
    multiply(had, starting, sums, norms);
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
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, apart));
        norm += __shfl_xor_sync(kAllLanes, norm, apart);
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

  // The first codeword of a row in the bits of any lane of its quad; kNone if there is none.
  __device__ int next_near(uint32_t low, uint32_t high) const {
    const uint32_t bits = low != 0 ? low : high;
    const int bit = __ffs(static_cast<int>(bits)) - 1;
    int first = bits == 0 ? kNone : (low != 0 ? 0 : kHalfTile) + bit / 2 * 8 + quads_.quarter() * 2 + bit % 2;
    first = min(first, __shfl_xor_sync(kAllLanes, first, 1));
    return min(first, __shfl_xor_sync(kAllLanes, first, 2));
  }

  // Picks the first by exact cost. f32 sums tell most costs apart; float64, to which values are converted at a quarter
  // of the rate, decides the rest.
  __device__ void settle(int book, const int (&had)[2], bool starting, const uint32_t (&near)[2][2],
                         const bool (&open)[2], int (&found)[2]) const {
    float least[2];
    float second[2];
    compare<false>(book, had, starting, near, open, found, least, second);
    // Sums are within `loss` of the costs, and keys within kKeyLoss of these.
    const float loss = static_cast<float>(kChunkSteps * layout_.chunks + 8) * 0x1p-24f;
    const float above = 1 + 3 * loss + 2 * static_cast<float>(kKeyLoss);
    bool unsure[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) unsure[h] = open[h] && !(second[h] > fmaf(least[h], above, books_.tiny));
    if (!__any_sync(kAllLanes, unsure[0] || unsure[1])) return;
    compare<true>(book, had, starting, near, unsure, found, least, second);
  }

  // The codeword of least cost among those near, two at a time, and the second least cost. Quads work on their rows in
  // parallel; all lanes take part.
  template <bool kExact>
  __device__ void compare(int book, const int (&had)[2], bool starting, const uint32_t (&near)[2][2],
                          const bool (&open)[2], int (&found)[2], float (&least)[2], float (&second)[2]) const {
    bool left[2] = {open[0], open[1]};
    uint32_t bits[2][2] = {{near[0][0], near[0][1]}, {near[1][0], near[1][1]}};
#pragma unroll
    for (int h = 0; h < 2; ++h) least[h] = second[h] = HUGE_VALF;
    while (__any_sync(kAllLanes, left[0] || left[1])) {
      const int h = left[0] ? 0 : 1;
      uint32_t low = h == 0 ? bits[0][0] : bits[1][0];
      uint32_t high = h == 0 ? bits[0][1] : bits[1][1];
      int pair[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        pair[i] = next_near(low, high);
        const int at = pair[i] % kHalfTile;
        const bool mine = pair[i] != kNone && at % 8 / 2 == quads_.quarter();
        const uint32_t bit = mine ? 1u << (at / 8 * 2 + at % 2) : 0u;
        if (pair[i] < kHalfTile) {
          low &= ~bit;
        } else {
          high &= ~bit;
        }
      }
      float costs[2];
      const bool asks = h == 0 ? left[0] : left[1];
      quads_.template costs<kExact>(book, h, h == 0 ? had[0] : had[1], starting, asks, pair, costs);
      const bool more = next_near(low, high) != kNone;
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        if (h != row || !left[row]) continue;
        bits[row][0] = low;
        bits[row][1] = high;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (pair[i] == kNone) continue;
          if (costs[i] < least[row]) {
            second[row] = least[row];
            least[row] = costs[i];
            found[row] = pair[i];
          } else {
            second[row] = fminf(second[row], costs[i]);
          }
        }
        left[row] = more;
      }
    }
  }

  const IcmBooks& books_;
  const IcmRun& run_;
  const ProductLayout& layout_;
  std::byte* const shared_;
  QuadRows<kShared> quads_;
  float cost_[2];
  int changed_[2];  // the step of the round that changed a code last
  Place place_;
  Watch watch_;
};

template <bool kShared, typename Watch>
__global__ void __launch_bounds__(kThreads, 1)
    products_kernel(const __grid_constant__ IcmBooks books, const __grid_constant__ IcmRows rows,
                    const __grid_constant__ IcmRun run, const __grid_constant__ ProductLayout layout, Watch watch) {
  extern __shared__ std::byte dynamic[];
  std::byte* const shared = dynamic + (1024 - ptx::shared_address(dynamic) % 1024) % 1024;
  if (threadIdx.x == 0) {
    Barriers* const barriers = SharedSlots(layout, books.books).barriers.in(shared);
    for (int stage = 0; stage < layout.stages; ++stage) {
      ptx::barrier_init(&barriers->full[stage], 1);
      ptx::barrier_init(&barriers->empty[stage], kSearchers / 32);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x >= kSearchers) {
    ptx::give_registers<kCopierRegisters>();
    const auto copiers = kSearchers + (Watch::kBlockBarriers ? 32 : 1);
    if (threadIdx.x < copiers) copy_books<Watch::kBlockBarriers>(books, run, layout, shared);
  } else {
    ptx::take_registers<kSearcherRegisters>();
    Searcher<kShared, Watch>(books, rows, run, layout, shared, watch).run();
  }
}

// The kernel for a layout.
template <typename Watch>
auto products_kernel_for(const ProductLayout& layout) {
  return layout.chunks <= 2 ? products_kernel<true, Watch> : products_kernel<false, Watch>;
}

}  // namespace kith::icm
