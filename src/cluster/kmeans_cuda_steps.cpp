#include "cluster/kmeans_cuda_steps.hpp"

#include "cluster/centre_sums.hpp"
#include "cluster/data_survey_cuda.hpp"
#include "cluster/nearest_centre_cuda.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "exact/prepared_base_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

// A device and a stream for a while, in the order of the caller's.
struct OnDevice {
  DeviceGuard guard;
  std::shared_ptr<const DeviceContext> context;

  OnDevice(int device, const Resources& resources)
      : guard(device), context(std::make_shared<DeviceContext>(device, resources.options().stream)) {}
  cudaStream_t stream() const { return context->stream(); }
};

void copy_out(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  KITH_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream));
}

}  // namespace

void gather_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, std::byte* out,
                 const Resources& resources) {
  const OnDevice device(rows.space().device, resources);
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const auto count = static_cast<int64_t>(numbers.size());
  if (count <= 8 || row_bytes + 4 > kGatherBytes / 2) {
    for (int64_t i = 0; i < count; ++i) {
      copy_out(out + i * row_bytes, rows.row(numbers[static_cast<size_t>(i)]), row_bytes, device.stream());
    }
    return device.context->synchronize();
  }
  const int64_t at_once = std::min(count, kGatherBytes / 2 / (row_bytes + 4));
  const DeviceBuffer list(at_once * 4, "rows to be gathered", device.context, resources);
  const DeviceBuffer gathered(at_once * row_bytes, "rows to be gathered", device.context, resources);
  auto* const on_device = reinterpret_cast<uint32_t*>(list.data());
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t part = std::min(at_once, count - first);
    copy_out(on_device, numbers.data() + first, part * 4, device.stream());
    launch_gather_rows(device_rows(rows), rows.cols(), on_device, part, gathered.data(), device.stream());
    copy_out(out + first * row_bytes, gathered.data(), part * row_bytes, device.stream());
    device.context->synchronize();
  }
}

int64_t first_not_finite_cuda(const MatrixView& rows, const Resources& resources) {
  const OnDevice device(rows.space().device, resources);
  constexpr uint32_t kNoRow = 0xFFFFFFFFu;
  const DeviceBuffer found(sizeof(uint32_t), "the check for NaN", device.context, resources);
  auto* const bad_row = reinterpret_cast<uint32_t*>(found.data());
  KITH_CUDA_CHECK(cudaMemsetAsync(bad_row, 0xFF, sizeof(uint32_t), device.stream()));
  launch_first_not_finite(device_rows(rows), rows.cols(), bad_row, device.stream());
  uint32_t bad = kNoRow;
  copy_out(&bad, bad_row, sizeof bad, device.stream());
  device.context->synchronize();
  return bad == kNoRow ? -1 : int64_t{bad};
}

int64_t survey_cuda(const MatrixView& rows, const std::vector<float>& origin, bool check_finite,
                    std::vector<double>& sums, const Resources& resources) {
  const OnDevice device(rows.space().device, resources);
  const int64_t cols = rows.cols();
  // In parts whose blocks' sums take little memory.
  const int64_t part_blocks = std::max<int64_t>(kGatherBytes / 2 / (16 * cols), 1);
  const int64_t blocks = std::min((rows.rows() + kSumBlock - 1) / kSumBlock, part_blocks);
  const DeviceBuffer block_sums(blocks * 2 * cols * 8, "the columns' variances", device.context, resources);
  const DeviceBuffer totals(cols * (2 * 8 + 4) + 8, "the columns' variances", device.context, resources);
  SurveyTask task;
  task.cols = cols;
  task.blocks = reinterpret_cast<double*>(block_sums.data());
  task.sums = reinterpret_cast<double*>(totals.data());
  auto* const device_origin = reinterpret_cast<float*>(task.sums + 2 * cols);
  task.origin = device_origin;
  task.not_finite = reinterpret_cast<uint32_t*>(device_origin + cols);
  copy_out(task.sums, sums.data(), 2 * cols * 8, device.stream());
  copy_out(device_origin, origin.data(), cols * 4, device.stream());
  KITH_CUDA_CHECK(cudaMemsetAsync(task.not_finite, 0, sizeof(uint32_t), device.stream()));
  for (int64_t first = 0; first < rows.rows(); first += blocks * kSumBlock) {
    task.rows = device_rows(rows.slice(first, std::min(blocks * kSumBlock, rows.rows() - first)));
    launch_survey(task, device.stream());
  }
  uint32_t not_finite = 0;
  copy_out(sums.data(), task.sums, 2 * cols * 8, device.stream());
  copy_out(&not_finite, task.not_finite, sizeof not_finite, device.stream());
  device.context->synchronize();
  return check_finite && not_finite != 0 ? first_not_finite_cuda(rows, resources) : -1;
}

void transform_cuda(int index, bool spherical, const MatrixView& rows, const MatrixView& centres,
                    const MutableMatrixView& out, const Resources& resources) {
  check_on_device(rows, "data", index);
  check_on_device(out, "output", index);
  const OnDevice device(index, resources);
  constexpr int64_t kKeys = int64_t{1} << 24;
  const int64_t k = centres.rows();
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const int64_t part = std::clamp<int64_t>(kKeys / k, 1, std::min<int64_t>(rows.rows(), 65535));
  if (rows.rows() == 0) return;
  const DeviceBuffer device_centres(k * centres.cols() * 4, "the centres", device.context, resources);
  const DeviceBuffer keys(part * k * 4, "distances to the centres", device.context, resources);
  const DeviceBuffer distances(part * k * 4, "distances to the centres", device.context, resources);
  const bool comes = !lies_on(rows, index);
  const DeviceBuffer staged(comes ? part * row_bytes : 0, "rows on their way to a GPU", device.context, resources);
  copy_out(device_centres.data(), centres.data(), device_centres.bytes(), device.stream());
  RowUpload upload(false, resources);
  ProgressMeter meter("copy", rows.rows(), resources);
  for (int64_t first = 0; first < rows.rows(); first += part) {
    const MatrixView some = rows.slice(first, std::min(part, rows.rows() - first));
    DeviceRowsView view = device_rows(some);
    if (comes) {
      upload.copy(some, staged.data(), device.stream(), meter);
      view.data = staged.data();
      view.stride = rows.cols();
    }
    launch_distance(spherical ? Metric::inner_product : Metric::l2, view,
                    {device_centres.data(), DType::f32, centres.cols(), k, nullptr}, rows.cols(),
                    reinterpret_cast<uint32_t*>(keys.data()), k, device.stream());
    auto* const found = reinterpret_cast<float*>(distances.data());
    launch_distances(reinterpret_cast<const uint32_t*>(keys.data()), some.rows() * k, spherical, found,
                     device.stream());
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(out.row(first), static_cast<size_t>(out.row_stride() * 4), found,
                                      static_cast<size_t>(k * 4), static_cast<size_t>(k * 4),
                                      static_cast<size_t>(some.rows()), cudaMemcpyDefault, device.stream()));
    device.context->synchronize();
    meter.poll();
  }
}

}  // namespace kith
