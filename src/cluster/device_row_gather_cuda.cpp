#include "cluster/device_row_gather_cuda.hpp"

#include "cluster/row_lists_cuda.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "exact/prepared_base_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFewRows = 8;  // for which a copy each is no slower

}  // namespace

void gather_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, std::byte* out,
                 const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const cudaStream_t stream = context->stream();
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const auto count = static_cast<int64_t>(numbers.size());
  if (count <= kFewRows || row_bytes + 4 > kGatherBytes / 2) {
    for (int64_t i = 0; i < count; ++i) {
      context->copy(out + i * row_bytes, rows.row(numbers[static_cast<size_t>(i)]), row_bytes);
    }
    return context->synchronize();
  }
  const int64_t at_once = std::min(count, kGatherBytes / 2 / (row_bytes + 4));
  const DeviceArray<uint32_t> list(at_once, "rows to be gathered", context, resources);
  const DeviceBuffer gathered(at_once * row_bytes, "rows to be gathered", context, resources);
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t part = std::min(at_once, count - first);
    context->copy_values(list.data(), numbers.data() + first, part);
    launch_gather_rows(device_rows(rows), rows.cols(), list.data(), part, gathered.data(), stream);
    context->copy(out + first * row_bytes, gathered.data(), part * row_bytes);
    context->synchronize();
  }
}

void gather_floats_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, float* out,
                        const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const auto count = static_cast<int64_t>(numbers.size());
  const DeviceArray<uint32_t> list(count, "rows to be gathered", context, resources);
  context->copy_values(list.data(), numbers.data(), count);
  launch_gather_floats(device_rows(rows), rows.cols(), list.data(), count, out, context->stream());
  context->synchronize();
}

}  // namespace kith
