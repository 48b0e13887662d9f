// Exact costs of all codewords (icm_engine.cpp), for a few rows at a time: a thread has a codeword, and combines its
// columns, from transposed books, with the residuals of all rows.
//
// The lanes of the canonical sum are computed one after the other in bit-reversed order, so that the tree can always
// join the last ones, and a row needs at most five sums.
//
// Cost: 2^bits x cols float64 subtractions and multiply-adds a row and step; a book is read once for kRows rows.
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
constexpr int kRows = 8;
constexpr int64_t kSharedResiduals = int64_t{40} << 10;

struct Block {
  double* residuals;  // kRows x cols
  uint8_t* current;   // kRows x books
  uint8_t* best;
  uint64_t* least;    // kWarps x kRows
  float* costs;       // kRows
  int64_t* rows;      // kRows; -1: none
};

// A row minus the codewords of all books but `book`, subtracted in the order of the books. `means`: later books count
// with their mean.
__device__ void find_residuals(const IcmBooks& books, const IcmRows& rows, const Block& block, int64_t book,
                               bool means) {
  const int64_t words = int64_t{1} << books.bits;
  for (int64_t at = threadIdx.x; at < kRows * books.cols; at += kThreads) {
    const auto w = static_cast<int>(at / books.cols);
    const int64_t c = at - w * books.cols;
    const int64_t row = block.rows[w];
    double value = row < 0 ? 0.0 : static_cast<double>(rows.values[row * books.cols + c]);
    for (int64_t k = 0; k < books.books; ++k) {
      if (k == book) continue;
      const float* const word = means && k > book ? books.means + k * books.cols
                                                  : books.words + (k * words + block.current[w * books.books + k]) * books.cols;
      value -= static_cast<double>(word[c]);
    }
    block.residuals[at] = value;
  }
  __syncthreads();
}

// Canonical sums (canonical.hpp) of (residual - x[c])^2 for every row. use(w, sum).
template <typename Value>
__device__ void canonical_sums(const double* residuals, int64_t cols, const Value& value, double (&sums)[kRows]) {
  double joined[5][kRows];
#pragma unroll
  for (int p = 0; p < kCanonicalLanes; ++p) {
    const int lane = (p & 1) << 3 | (p & 2) << 1 | (p & 4) >> 1 | (p & 8) >> 3;
    double lanes[kRows] = {};
    for (int64_t c = lane; c < cols; c += kCanonicalLanes) {
      const double x = value(c);
#pragma unroll
      for (int w = 0; w < kRows; ++w) {
        const double difference = residuals[w * cols + c] - x;
        lanes[w] = fma(difference, difference, lanes[w]);
      }
    }
    int level = 0;
#pragma unroll
    for (int bits = p; (bits & 1) != 0; bits >>= 1, ++level) {
#pragma unroll
      for (int w = 0; w < kRows; ++w) lanes[w] = joined[level][w] + lanes[w];
    }
#pragma unroll
    for (int w = 0; w < kRows; ++w) joined[level][w] = lanes[w];
  }
#pragma unroll
  for (int w = 0; w < kRows; ++w) sums[w] = joined[4][w];
}

__device__ void step(const IcmBooks& books, const IcmRows& rows, const Block& block, int64_t book, bool means) {
  const int words = 1 << books.bits;
  const auto j = static_cast<int>(threadIdx.x);
  find_residuals(books, rows, block, book, means);
  constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t found[kRows];
#pragma unroll
  for (int w = 0; w < kRows; ++w) found[w] = kNone;
  if (j < words) {
    const float* const column = books.columns + book * books.cols * words + j;
    double sums[kRows];
    canonical_sums(block.residuals, books.cols, [&](int64_t c) { return static_cast<double>(column[c * words]); }, sums);
#pragma unroll
    for (int w = 0; w < kRows; ++w) {
      const auto key = static_cast<float>(sums[w]);
      // Only a finite cost can make a codeword the best; if there is none, the first one is.
      const bool finite = key < HUGE_VALF;
      found[w] = static_cast<uint64_t>(__float_as_uint(finite ? key : HUGE_VALF)) << 8 | static_cast<uint64_t>(finite ? j : 0);
    }
  }
#pragma unroll
  for (int w = 0; w < kRows; ++w) {
    const uint64_t least = warp_least(found[w]);
    if (threadIdx.x % 32 == 0) block.least[threadIdx.x / 32 * kRows + w] = least;
  }
  __syncthreads();
  if (threadIdx.x < kRows) {
    uint64_t least = kNone;
    for (int warp = 0; warp < kWarps; ++warp) {
      const uint64_t other = block.least[warp * kRows + static_cast<int>(threadIdx.x)];
      least = other < least ? other : least;
    }
    block.current[threadIdx.x * books.books + book] = static_cast<uint8_t>(least);
  }
  __syncthreads();
}

// Computes the costs of the current codes, and keeps codes that are the first or better.
__device__ void keep_better(const IcmBooks& books, const IcmRows& rows, const Block& block, bool first) {
  find_residuals(books, rows, block, -1, false);
  if (threadIdx.x < kRows) {
    const auto w = static_cast<int>(threadIdx.x);
    const auto cost = static_cast<float>(canonical_squared_norm(block.residuals + w * books.cols, books.cols));
    if (first || cost < block.costs[w]) {
      block.costs[w] = cost;
      for (int64_t k = 0; k < books.books; ++k) block.best[w * books.books + k] = block.current[w * books.books + k];
    }
  }
  __syncthreads();
}

__device__ void search(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, const Block& block) {
  const auto w = static_cast<int>(threadIdx.x);
  uint8_t* const mine = block.current + w * books.books;
  if (w < kRows) {
    const int64_t row = block.rows[w];
    for (int64_t k = 0; k < books.books; ++k) {
      mine[k] = row >= 0 && run.start == IcmStart::given ? rows.codes[row * books.books + k] : uint8_t{0};
    }
    if (row >= 0 && run.start == IcmStart::random) {
      draw_codes(run.perturbation.seed, rows.numbers[row], books.books, books.bits, mine);
    }
  }
  __syncthreads();
  if (run.start == IcmStart::greedy) {
    for (int64_t k = 0; k < books.books; ++k) step(books, rows, block, k, true);
  }
  keep_better(books, rows, block, true);
  for (int round = 0; round < run.rounds; ++round) {
    if (w < kRows) {
      for (int64_t k = 0; k < books.books; ++k) mine[k] = block.best[w * books.books + k];
      if (block.rows[w] >= 0) {
        perturb_codes(run.perturbation, rows.numbers[block.rows[w]], run.first_round + round, books.books, books.bits,
                      mine);
      }
    }
    __syncthreads();
    for (int i = 0; i < run.steps; ++i) {
      step(books, rows, block, run.schedule[static_cast<int64_t>(round) * run.schedule_stride + i].book, false);
    }
    keep_better(books, rows, block, false);
  }
  if (w < kRows && block.rows[w] >= 0) {
    const int64_t row = block.rows[w];
    for (int64_t k = 0; k < books.books; ++k) rows.codes[row * books.books + k] = block.best[w * books.books + k];
    if (rows.costs != nullptr) rows.costs[row] = block.costs[w];
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) icm_direct_kernel(IcmBooks books, IcmRows rows, IcmList list, IcmRun run,
                                                              double* scratch) {
  extern __shared__ double shared[];
  __shared__ uint64_t least[kWarps * kRows];
  __shared__ int64_t numbers[kRows];
  __shared__ float costs[kRows];
  Block block;
  double* next = shared;
  if (scratch != nullptr) {
    block.residuals = scratch + static_cast<int64_t>(blockIdx.x) * kRows * books.cols;
  } else {
    block.residuals = next;
    next += kRows * books.cols;
  }
  block.current = vectors<uint8_t>(next);
  block.best = block.current + kRows * books.books;
  block.least = least;
  block.costs = costs;
  block.rows = numbers;
  const int64_t count = list.rows != nullptr ? static_cast<int64_t>(*list.count) : rows.count;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kRows; first < count;
       first += static_cast<int64_t>(gridDim.x) * kRows) {
    if (threadIdx.x < kRows) {
      const int64_t at = first + threadIdx.x;
      numbers[threadIdx.x] = at >= count ? -1 : list.rows != nullptr ? static_cast<int64_t>(list.rows[at]) : at;
    }
    __syncthreads();
    search(books, rows, run, block);
  }
}

bool residuals_shared(int64_t cols) { return kRows * cols * 8 <= kSharedResiduals; }

}  // namespace

int64_t icm_direct_scratch(int64_t cols) { return residuals_shared(cols) ? 0 : kRows * cols; }

void launch_icm_direct(const IcmBooks& books, const IcmRows& rows, const IcmList& list, const IcmRun& run,
                       double* scratch, int blocks, cudaStream_t stream) {
  const bool shared = residuals_shared(books.cols);
  const int64_t bytes = (shared ? kRows * books.cols * 8 : 0) + 2 * kRows * books.books;
  blocks = static_cast<int>(std::min<int64_t>(blocks, divide_up(rows.count, int64_t{kRows})));
  launch(icm_direct_kernel, Grid::of(blocks, kThreads).with_shared(bytes), stream, books, rows, list, run,
         shared ? nullptr : scratch);
}

}  // namespace kith
