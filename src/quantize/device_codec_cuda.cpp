#include "quantize/device_codec_cuda.hpp"

#include "core/divide.hpp"
#include "quantize/codec_kernels_cuda.hpp"

#include <vector>

namespace kith {
namespace {

constexpr int64_t kAlignment = 256;

bool is_widened(DType dtype) { return dtype != DType::f32; }
bool has_labels(const CodeFormat& format) { return format.kind == CodeKind::product && format.bits != 8; }

}  // namespace

DeviceCodec::DeviceCodec(const CodecTables& codec, std::shared_ptr<const DeviceContext> context,
                         const Resources& resources) {
  const CodecView host = codec.view();
  view_.format = host.format;
  if (host.format.kind == CodeKind::stored) return;
  std::vector<float> values = codec.values;
  if (host.format.kind == CodeKind::scalar) {
    values.insert(values.end(), host.bases, host.bases + host.format.cols);
    values.insert(values.end(), host.steps, host.steps + host.format.cols);
  }
  if (host.format.has_levels()) values.insert(values.end(), host.levels, host.levels + kNormLevels);
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
  values_ = DeviceBuffer(bytes, "a codec", context, resources);
  context->copy(values_.data(), values.data(), bytes);
  const auto* const floats = reinterpret_cast<const float*>(values_.data());
  std::vector<std::byte> tables;
  if (host.format.kind == CodeKind::scalar) {
    view_.bases = floats + 2 * host.format.cols;
    view_.steps = floats + 3 * host.format.cols;
  } else if (host.format.kind == CodeKind::additive) {
    view_.codewords = floats;
    if (host.format.has_levels()) view_.levels = floats + codec.values.size();
  } else {
    view_.codewords = floats;
    layout_.emplace(host.format);
    tables.resize(static_cast<size_t>(layout_->bytes));
    fill_product_tables(*layout_, codec.nearest, tables.data());
    tables_ = DeviceBuffer(layout_->bytes, "a codec", context, resources);
    context->copy(tables_.data(), tables.data(), layout_->bytes);
  }
  context->synchronize();
}

int64_t DeviceCodec::scratch_bytes(DType dtype, int64_t rows) const {
  const int64_t widened = is_widened(dtype) ? round_up(rows * format().cols * 4, kAlignment) : 0;
  return widened + (has_labels(format()) ? rows * format().parts : 0);
}

void DeviceCodec::encode(const DeviceRowsView& rows, uint8_t* codes, std::byte* scratch, uint64_t* lost,
                         cudaStream_t stream) const {
  const int64_t cols = format().cols;
  const auto* values = static_cast<const float*>(rows.data);
  int64_t stride = rows.stride;
  if (is_widened(rows.dtype)) {
    auto* const widened = reinterpret_cast<float*>(scratch);
    launch_widen_rows(rows, cols, widened, stream);
    values = widened;
    stride = cols;
    scratch += round_up(rows.count * cols * 4, kAlignment);
  }
  if (format().kind == CodeKind::stored) {
    return launch_encode_stored(format(), values, stride, rows.count, codes, lost, stream);
  }
  if (format().kind == CodeKind::scalar) {
    const auto* const ranges = reinterpret_cast<const float*>(values_.data());
    return launch_encode_scalar(format(), ranges, ranges + cols, values, stride, rows.count, codes, stream);
  }
  uint8_t* const labels = has_labels(format()) ? reinterpret_cast<uint8_t*>(scratch) : codes;
  launch_nearest_codewords(*layout_, tables_.data(),
                           {values, stride, format().part_cols(), rows.count, labels, format().parts, 1}, stream);
  if (has_labels(format())) launch_pack_labels(format(), labels, rows.count, codes, stream);
}

void DeviceCodec::decode(const uint8_t* codes, int64_t code_stride, int64_t count, float* out, int64_t stride,
                         cudaStream_t stream) const {
  launch_decode(view_, codes, code_stride, count, out, stride, stream);
}

}  // namespace kith
