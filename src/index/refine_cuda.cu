// A block for each query: canonical keys of its candidates, four threads each, sorted in shared memory.
#include "index/refine_gpu.hpp"

#include <kith/error.hpp>

#include "core/ordered_key.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_core.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "index/refine_gpu_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"
#include "quantize/device_codec_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 128;
constexpr size_t kMostBlocks = 40;  // of codes; each is at least as long as all later ones together

struct RefineKernelTask {
  CodecView codec;
  KeyKind kind;
  int64_t code_bytes;
  const float* queries;
  int64_t query_stride;
  const int64_t* candidates;  // queries x count, padded with -1
  int count;
  int64_t k;
  uint64_t* out;  // queries x k
  int blocks;
  const uint8_t* codes[kMostBlocks];
  uint32_t first_rows[kMostBlocks];

  __device__ const uint8_t* code(uint32_t row) const {
    int block = blocks - 1;
    while (block > 0 && first_rows[block] > row) --block;
    return codes[block] + (row - first_rows[block]) * code_bytes;
  }
};

template <typename Reader>
__global__ void __launch_bounds__(kThreads) refine_kernel(const __grid_constant__ RefineKernelTask task) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ int listed;
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t query = blockIdx.x;
  auto* const values = reinterpret_cast<double*>(memory);
  uint64_t* const list = memory + padded_cols(task.codec.format.cols);
  if (thread == 0) listed = 0;
  __syncthreads();
  for (int i = thread; i < task.count; i += kThreads) {
    const int64_t row = task.candidates[query * task.count + i];
    if (row < 0) continue;
    list[atomicAdd(&listed, 1)] = static_cast<uint64_t>(row);
  }
  const CodeKeys keys{task.codec, task.kind};
  const double inverse_q = load_query(keys, task.queries + query * task.query_stride, values);
  __syncthreads();
  const int found = listed;
  const Reader reader(task.codec, task.codes[0]);
  for (int i = thread / kRowThreads; i < found; i += kThreads / kRowThreads) {
    const auto row = static_cast<uint32_t>(list[i]);
    const float key = code_key(keys, reader, values, inverse_q, task.code(row), nullptr);
    __syncwarp(row_threads());  // all have read the row
    if (thread % kRowThreads == 0) list[i] = pack_neighbor(ordered_key(key), row);
  }
  __syncthreads();
  sort_in_place(list, found);
  uint64_t* const out = task.out + query * task.k;
  for (int64_t i = thread; i < task.k; i += kThreads) out[i] = i < found ? list[i] : kPadding;
}

class CodecOnDeviceCuda final : public CodecOnDevice {
 public:
  CodecOnDeviceCuda(int device, const Codec& codec, const Resources& resources)
      : codec_(codec.tables(), allocation_context(device, resources), resources) {}

  int64_t bytes() const override { return codec_.bytes(); }
  const CodecView& view() const { return codec_.view(); }

 private:
  DeviceCodec codec_;
};

RefineKernelTask task_of(const GpuCodes& codes, Metric metric) {
  if (codes.blocks.size() > kMostBlocks) throw InvalidArgument("codes to refine with lie in too many blocks");
  RefineKernelTask task = {};
  task.kind = key_kind(metric);
  task.codec = static_cast<const CodecOnDeviceCuda&>(*codes.codec).view();
  task.code_bytes = codes.format.bytes();
  for (const GpuCodes::Block& block : codes.blocks) {
    task.codes[task.blocks] = block.codes->data();
    task.first_rows[task.blocks++] = static_cast<uint32_t>(block.first_row);
  }
  return task;
}

}  // namespace

CodecView codec_view(const CodecOnDevice& codec) { return static_cast<const CodecOnDeviceCuda&>(codec).view(); }

std::shared_ptr<const CodecOnDevice> codec_on_gpu(int device, const Codec& codec, const Resources& resources) {
  const DeviceGuard guard(device);
  return std::make_shared<const CodecOnDeviceCuda>(device, codec, resources);
}

void refine_on_gpu(const GpuCodes& codes, Metric metric, const MatrixView& queries, const NeighborsView& candidates,
                   const NeighborsView& out, const Resources& given) {
  if (queries.rows() == 0) return;
  const DeviceGuard guard(codes.device);
  const auto context = std::make_shared<const DeviceContext>(codes.device, given.options().stream);
  const Resources resources = given.with_device(Device::cuda(codes.device)).with_stream(context->stream());
  const DeviceArray<uint64_t> sorted(queries.rows() * out.k, "the neighbours found", context, resources);
  RefineKernelTask task = task_of(codes, metric);
  task.queries = static_cast<const float*>(queries.data());
  task.query_stride = queries.row_stride();
  task.candidates = candidates.ids;
  task.count = static_cast<int>(candidates.k);
  task.k = out.k;
  task.out = sorted.data();
  const int64_t bytes = 8 * (candidates.k + padded_cols(codes.format.cols));
  visit_reader(codes.format, [&](auto tag) {
    const auto kernel = refine_kernel<typename decltype(tag)::type>;
    allow_all_shared_memory(kernel);
    launch(kernel, Grid::of(queries.rows(), kThreads).with_shared(bytes), context->stream(), task);
  });
  launch_write_neighbors(metric, {task.out, nullptr, queries.rows(), out.k}, out, context->stream());
  context->synchronize();
}

}  // namespace kith
