#include "ivf/code_rows_cuda.hpp"

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "ivf/gpu_centres_cuda.hpp"
#include "ivf/residuals_cuda.hpp"
#include "quantize/device_codec_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace kith {
namespace {

constexpr uint64_t kNothingLost = ~uint64_t{0};
constexpr int64_t kPieceBytes = int64_t{256} << 20;  // of rows as f32

}  // namespace

void code_rows_cuda(int device, const IvfModel& model, const MatrixView& rows, int32_t* lists, uint8_t* codes,
                    const Resources& given) {
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, given.options().stream);
  const Resources resources = given.with_device(Device::cuda(device)).with_stream(context->stream()).with_progress({});
  const int64_t cols = rows.cols();
  const int64_t code_bytes = model.codec->format().bytes();
  const int64_t row_bytes = cols * size_of(rows.dtype());
  const int64_t piece = std::clamp<int64_t>(kPieceBytes / (cols * 4), 1, std::max<int64_t>(rows.rows(), 1));
  const bool here = !rows.space().host_readable();
  const auto buffer = [&](int64_t bytes, std::string_view purpose) {
    return DeviceBuffer(bytes, purpose, context, resources);
  };
  std::optional<GpuCentres> centres;
  if (model.has_centres()) centres.emplace(device, model.metric, model.centres.view(), resources);
  const DeviceCodec codec(model.codec->tables(), context, resources);
  const DeviceBuffer brought = buffer(here ? 0 : piece * row_bytes, "rows on the device");
  const DeviceBuffer nearest = buffer(centres ? piece * 16 : 0, "the rows' lists");
  const DeviceBuffer residuals = buffer(piece * cols * 4, "rows on the device");
  const DeviceBuffer coded = buffer(piece * code_bytes, "codes on the device");
  const DeviceBuffer scratch = buffer(codec.scratch_bytes(DType::f32, piece), "the making of codes");
  const DeviceBuffer lost = buffer(static_cast<int64_t>(sizeof(uint64_t)), "the making of codes");
  auto* const ids = reinterpret_cast<int64_t*>(nearest.data());
  auto* const distances = reinterpret_cast<float*>(ids + piece);
  auto* const narrow = reinterpret_cast<int32_t*>(distances + piece);
  ProgressMeter meter("encode", rows.rows(), given);
  KITH_CUDA_CHECK(cudaMemsetAsync(lost.data(), 0xFF, sizeof(uint64_t), context->stream()));
  for (int64_t first = 0; first < rows.rows(); first += piece) {
    const int64_t count = std::min(piece, rows.rows() - first);
    MatrixView some = rows.slice(first, count);
    if (!here) {
      KITH_CUDA_CHECK(cudaMemcpy2DAsync(brought.data(), static_cast<size_t>(row_bytes), some.data(),
                                        static_cast<size_t>(some.row_stride() * size_of(some.dtype())),
                                        static_cast<size_t>(row_bytes), static_cast<size_t>(count),
                                        cudaMemcpyHostToDevice, context->stream()));
      some = {brought.data(), rows.dtype(), {count, cols, cols}, MemorySpace::cuda(device)};
    }
    if (centres) {
      centres->nearest(some, 1, false, ids, distances, resources);
      launch_narrow_lists(ids, count, narrow, context->stream());
      context->copy(lists + first, narrow, count * static_cast<int64_t>(sizeof(int32_t)));
    }
    ResidualTask residual;
    residual.rows = {some.data(), some.dtype(), some.row_stride(), count};
    residual.cols = cols;
    residual.centres = model.residual ? centres->data() : nullptr;
    residual.lists = ids;
    residual.residuals = reinterpret_cast<float*>(residuals.data());
    launch_residuals(residual, context->stream());
    codec.encode({residual.residuals, DType::f32, cols, count}, reinterpret_cast<uint8_t*>(coded.data()),
                 scratch.data(), reinterpret_cast<uint64_t*>(lost.data()), context->stream());
    context->copy(codes + first * code_bytes, coded.data(), count * code_bytes);
    uint64_t unheld = kNothingLost;
    context->copy(&unheld, lost.data(), static_cast<int64_t>(sizeof(unheld)));
    context->synchronize();
    if (unheld != kNothingLost) {
      const auto at = static_cast<int64_t>(unheld);
      throw InvalidArgument(fmt::format("row {}, column {} of the added vectors is beyond what {} holds",
                                        first + at / cols, at % cols, name_of(model.codec->format().dtype)));
    }
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

}  // namespace kith
