// The search for codes by tables of inner products (icm_engine.hpp) on a GPU: a warp per row, from the start to the
// last round, a lane per eight codewords. A step adds up one row of 16-bit numbers for each other book. Exact costs
// decide among codewords within the window of the smallest sum, two at a time, half a warp each, and only if a code of
// the row has changed since the book's last step.
//
// Cost of a step: books x 512 bytes from the second-level cache for 256 codewords; where exact costs are needed, the
// codewords of all books.
#include "quantize/additive/icm_task_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/canonical.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocksEach = 6;  // on a multiprocessor
constexpr int kLaneWords = 8;
constexpr int kHalf = kCanonicalLanes;  // of a warp
constexpr int kMostSum = 32766;  // of a sum that a codeword has

// One lane of the warp of a row.
class RowSearch {
 public:
  __device__ RowSearch(const IcmBooks& books, const IcmTables& tables, const IcmRows& rows, const IcmRun& run,
                       int64_t row, uint8_t* codes)
      : books_(books),
        tables_(tables),
        rows_(rows),
        run_(run),
        row_(row),
        m_(static_cast<int>(books.books)),
        words_(1 << books.bits),
        lane_(static_cast<int>(threadIdx.x % 32)),
        current_(codes),
        best_(codes + m_) {}

  __device__ void run() {
    start();
    float least = cost();
    keep();
    for (int round = 0; round < run_.rounds; ++round) {
      __syncwarp();  // all have read the codes whose cost was computed last
      for (int k = lane_; k < m_; k += 32) current_[k] = best_[k];
      __syncwarp();
      if (lane_ == 0) {
        perturb_codes(run_.perturbation, rows_.numbers[row_], run_.first_round + round, m_, books_.bits, current_);
      }
      __syncwarp();
      int changed = 1;  // the step that changed a code last
      const IcmStep* const steps = run_.schedule + static_cast<int64_t>(round) * run_.schedule_stride;
      for (int i = 0; i < run_.steps; ++i) {
        const IcmStep step = steps[i];
        // Else it would change nothing.
        if (changed > step.before && take_step(step.book, m_)) changed = i + 2;
      }
      const float now = cost();
      if (now < least) {
        least = now;
        keep();
      }
    }
    for (int k = lane_; k < m_; k += 32) rows_.codes[row_ * m_ + k] = best_[k];
    if (rows_.costs != nullptr && lane_ == 0) rows_.costs[row_] = least;
    __syncwarp();
  }

 private:
  __device__ void start() {
    for (int k = lane_; k < m_; k += 32) {
      current_[k] = run_.start == IcmStart::given ? rows_.codes[row_ * m_ + k] : uint8_t{0};
    }
    __syncwarp();
    if (run_.start == IcmStart::random && lane_ == 0) {
      draw_codes(run_.perturbation.seed, rows_.numbers[row_], m_, books_.bits, current_);
    }
    __syncwarp();
    for (int k = 0; run_.start == IcmStart::greedy && k < m_; ++k) take_step(k, k);
  }

  __device__ void keep() const {
    __syncwarp();
    for (int k = lane_; k < m_; k += 32) best_[k] = current_[k];
    __syncwarp();
  }

  // Finds the best code of a book given those of the books before `end`; later books count with their means. Returns
  // whether it differs.
  __device__ bool take_step(int book, int end) const {
    const auto at = static_cast<int64_t>(lane_) * kLaneWords;
    const bool has_words = at < tables_.width;
    uint32_t sums[4] = {0x7FFF7FFFu, 0x7FFF7FFFu, 0x7FFF7FFFu, 0x7FFF7FFFu};
    if (has_words) {
      const auto load = [&](const int16_t* from) { return __ldg(vectors<uint4>(from + at)); };
      const uint4 unary = load(rows_.unary + (row_ * m_ + book) * tables_.width);
      sums[0] = unary.x;
      sums[1] = unary.y;
      sums[2] = unary.z;
      sums[3] = unary.w;
      const int16_t* const pairs = tables_.pairs + static_cast<int64_t>(book) * m_ * words_ * tables_.width;
#pragma unroll 4
      for (int l = 0; l < end; ++l) {  // of the book itself the table is zero
        const uint4 pair = load(pairs + (static_cast<int64_t>(l) * words_ + current_[l]) * tables_.width);
        sums[0] = __vadd2(sums[0], pair.x);
        sums[1] = __vadd2(sums[1], pair.y);
        sums[2] = __vadd2(sums[2], pair.z);
        sums[3] = __vadd2(sums[3], pair.w);
      }
    }
    const uint32_t low = __vmins2(__vmins2(sums[0], sums[1]), __vmins2(sums[2], sums[3]));
    int least = min(static_cast<int>(static_cast<int16_t>(low & 0xFFFFu)), static_cast<int>(static_cast<int16_t>(low >> 16)));
    least = __reduce_min_sync(kAllLanes, least);
    const int limit = min(kMostSum, least + rows_.windows[row_ * m_ + book]);
    uint32_t near = 0;  // of the lane's codewords
#pragma unroll
    for (int i = 0; i < kLaneWords; ++i) {
      const auto sum = static_cast<int>(static_cast<int16_t>(sums[i / 2] >> (i % 2 * 16)));
      near |= sum <= limit ? 1u << i : 0u;
    }
    const unsigned lanes = __ballot_sync(kAllLanes, near != 0);
    const int first = __ffs(static_cast<int>(lanes)) - 1;
    const uint32_t nearest = __shfl_sync(kAllLanes, near, first);
    int found = first * kLaneWords + __ffs(static_cast<int>(nearest)) - 1;
    const bool alone = (lanes & (lanes - 1)) == 0 && (nearest & (nearest - 1)) == 0;
    if (!alone) found = settle(book, end, near);
    const int had = current_[book];
    __syncwarp();
    if (lane_ == 0) current_[book] = static_cast<uint8_t>(found);
    __syncwarp();
    return found != had;
  }

  // Removes the first codeword from the lanes' bits and returns it; -1: none.
  __device__ int next_near(uint32_t& near) const {
    const unsigned lanes = __ballot_sync(kAllLanes, near != 0);
    if (lanes == 0) return -1;
    const int lane = __ffs(static_cast<int>(lanes)) - 1;
    const uint32_t bits = __shfl_sync(kAllLanes, near, lane);
    if (lane_ == lane) near &= near - 1;
    return lane * kLaneWords + __ffs(static_cast<int>(bits)) - 1;
  }

  __device__ int settle(int book, int end, uint32_t near) const {
    float least = HUGE_VALF;
    int found = 0;
    while (true) {
      const int first = next_near(near);
      if (first < 0) return found;
      const int second = next_near(near);
      const int word = lane_ < kHalf || second < 0 ? first : second;
      const float key = exact_cost(book, end, word);
      const float keys[2] = {__shfl_sync(kAllLanes, key, 0), __shfl_sync(kAllLanes, key, kHalf)};
      if (keys[0] < least) {
        least = keys[0];
        found = first;
      }
      if (second >= 0 && keys[1] < least) {
        least = keys[1];
        found = second;
      }
    }
  }

  // The cost of a half-warp's codeword as that of a book: the row minus all codewords, exact in f32.
  __device__ float exact_cost(int book, int end, int word) const {
    const int64_t cols = books_.cols;
    const float* const row = rows_.values + row_ * cols;
    double sum = 0;
    for (int64_t c = lane_ % kHalf; c < cols; c += kHalf) {
      float left = row[c];
      for (int l = 0; l < m_; ++l) {
        const float* const taken =
            l != book && l >= end
                ? books_.means + l * cols
                : books_.words + (static_cast<int64_t>(l) * words_ + (l == book ? word : current_[l])) * cols;
        left -= taken[c];
      }
      sum = fma(static_cast<double>(left), static_cast<double>(left), sum);
    }
    return static_cast<float>(warp_sum<kHalf>(sum));
  }

  __device__ float cost() const { return exact_cost(-1, m_, 0); }

  const IcmBooks& books_;
  const IcmTables& tables_;
  const IcmRows& rows_;
  const IcmRun& run_;
  const int64_t row_;
  const int m_;
  const int words_;
  const int lane_;
  uint8_t* const current_;
  uint8_t* const best_;
};

__global__ void __launch_bounds__(kThreads)
    icm_tables_kernel(const __grid_constant__ IcmBooks books, const __grid_constant__ IcmTables tables,
                      const __grid_constant__ IcmRows rows, const __grid_constant__ IcmRun run) {
  extern __shared__ uint8_t codes[];
  uint8_t* const mine = codes + threadIdx.x / 32 * 2 * books.books;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows.count;
       row += static_cast<int64_t>(gridDim.x) * kWarps) {
    if (rows.fits[row] != 0) RowSearch(books, tables, rows, run, row, mine).run();
  }
}

}  // namespace

void launch_icm_tables(const IcmBooks& books, const IcmTables& tables, const IcmRows& rows, const IcmRun& run,
                       int multiprocessors, cudaStream_t stream) {
  const int64_t blocks =
      std::min<int64_t>(divide_up(rows.count, int64_t{kWarps}), int64_t{kBlocksEach} * multiprocessors);
  launch(icm_tables_kernel, Grid::of(blocks, kThreads).with_shared(2 * kWarps * books.books), stream, books, tables,
         rows, run);
}

}  // namespace kith
