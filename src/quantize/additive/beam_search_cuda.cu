// A block per row, a thread per codeword. For one path after the other, a block subtracts the path's codewords from the
// row, and computes the canonical distance to every codeword. Then it finds the best of these paths one by one.
//
// Cost: as on the CPU, books x beam x 2^bits x cols float64 subtractions and multiply-adds per row.
#include "quantize/additive/beam_search_cuda.hpp"

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/within_limits.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/canonical.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocksEach = 4;  // on a multiprocessor

struct BeamTask {
  Codebooks books;
  const float* columns;
  int beam;
  const float* rows;
  int64_t stride;
  int64_t count;
  uint8_t* codes;
  float* residuals;  // cols for each block
};

__device__ int paths_after(int64_t books, int bits, int beam) {
  int64_t count = 1;
  for (int64_t k = 0; k < books && count < beam; ++k) count <<= bits;
  return static_cast<int>(count < beam ? count : beam);
}

// The minimum of the block's values, for all threads.
__device__ uint64_t least_of_block(uint64_t value, uint64_t* shared) {
  value = warp_least(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) value = shared[warp] < value ? shared[warp] : value;
  __syncthreads();
  return value;
}

__global__ void __launch_bounds__(kThreads) beam_kernel(BeamTask task) {
  extern __shared__ uint32_t keys[];  // beam x words; behind them paths, before and after: 2 x beam x books
  __shared__ uint64_t least[kWarps];
  const Codebooks& books = task.books;
  const auto words = static_cast<int>(books.words());
  const auto m = static_cast<int>(books.books);
  auto* paths = vectors<uint8_t>(keys + task.beam * words);
  uint8_t* next = paths + task.beam * m;
  float* const residual = task.residuals + static_cast<int64_t>(blockIdx.x) * books.cols;
  const auto j = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x; row < task.count; row += gridDim.x) {
    for (int k = 0; k < m; ++k) {
      const int held = paths_after(k, books.bits, task.beam);
      const float* const column = task.columns + static_cast<int64_t>(k) * books.cols * words + j;
      for (int p = 0; p < held; ++p) {
        for (int64_t c = j; c < books.cols; c += kThreads) {
          float value = task.rows[row * task.stride + c];
          for (int b = 0; b < k; ++b) value = __fsub_rn(value, books.word(b, paths[p * m + b])[c]);
          residual[c] = value;
        }
        __syncthreads();
        if (j < words) {
          double lanes[kCanonicalLanes] = {};
          for (int64_t first = 0; first < books.cols; first += kCanonicalLanes) {
#pragma unroll
            for (int lane = 0; lane < kCanonicalLanes; ++lane) {
              if (first + lane >= books.cols) break;
              const double difference =
                  static_cast<double>(residual[first + lane]) - static_cast<double>(column[(first + lane) * words]);
              lanes[lane] = fma(difference, difference, lanes[lane]);
            }
          }
          keys[p * words + j] = ordered_key(static_cast<float>(canonical_tree(lanes)));
        }
        __syncthreads();
      }
      const int stay = paths_after(k + 1, books.bits, task.beam);
      uint64_t taken = 0;  // all up to this one have been found
      for (int s = 0; s < stay; ++s) {
        uint64_t mine = ~uint64_t{0};
        for (int p = 0; p < held && j < words; ++p) {
          const uint64_t one = pack_neighbor(keys[p * words + j], static_cast<uint32_t>(p << books.bits | j));
          if ((s == 0 || one > taken) && one < mine) mine = one;
        }
        taken = least_of_block(mine, least);
        const auto from = static_cast<int>(row_of(taken));
        if (j < k) next[s * m + j] = paths[(from >> books.bits) * m + j];
        if (j == k) next[s * m + k] = static_cast<uint8_t>(from & (words - 1));
      }
      __syncthreads();
      uint8_t* const swapped = paths;
      paths = next;
      next = swapped;
    }
    if (j < m) task.codes[row * m + j] = paths[j];
    __syncthreads();
  }
}

}  // namespace

BeamOnDevice::BeamOnDevice(const Codebooks& books, int64_t beam, const std::shared_ptr<const DeviceContext>& context,
                           const Resources& resources)
    : books_(books),
      beam_(beam),
      words_(books.size(), "codebooks", context, resources),
      columns_(books.size(), "codebooks", context, resources) {
  const HostArray<float> columns(books.size(), "codebooks for a GPU", resources);
  for (int64_t k = 0; !counts_only(resources) && k < books.books; ++k) {
    for (int64_t j = 0; j < books.words(); ++j) {
      for (int64_t c = 0; c < books.cols; ++c) columns[(k * books.cols + c) * books.words() + j] = books.word(k, j)[c];
    }
  }
  context->copy_values(words_.data(), books.values, books.size());
  context->copy_values(columns_.data(), columns.data(), books.size());
  context->synchronize();
  books_.values = words_.data();
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&blocks_, cudaDevAttrMultiProcessorCount, context->device()));
  blocks_ *= kBlocksEach;
}

void BeamOnDevice::encode(const float* rows, int64_t stride, int64_t count, uint8_t* codes, float* scratch,
                          cudaStream_t stream) const {
  BeamTask task;
  task.books = books_;
  task.columns = columns_.data();
  task.beam = static_cast<int>(beam_);
  task.rows = rows;
  task.stride = stride;
  task.count = count;
  task.codes = codes;
  task.residuals = scratch;
  const int64_t bytes = beam_ * (books_.words() * static_cast<int64_t>(sizeof(uint32_t)) + 2 * books_.books);
  allow_all_shared_memory(beam_kernel);
  launch(beam_kernel, Grid::of(std::min<int64_t>(blocks_, count), kThreads).with_shared(bytes), stream, task);
}

}  // namespace kith
