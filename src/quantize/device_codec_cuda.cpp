#include "quantize/device_codec_cuda.hpp"

#include "core/divide.hpp"
#include "quantize/additive/code_norms_cuda.hpp"
#include "quantize/codec_kernels_cuda.hpp"

#include <algorithm>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kAlignment = 256;

bool is_widened(DType dtype) { return dtype != DType::f32; }

// Whether codes are not the labels, one after the other.
bool has_labels(const CodeFormat& format) {
  if (format.kind == CodeKind::additive) return format.bits != 8 || format.bytes() != format.parts;
  return format.kind == CodeKind::product && format.bits != 8;
}

}  // namespace

DeviceCodec::DeviceCodec(const CodecTables& codec, std::shared_ptr<const DeviceContext> context,
                         const Resources& resources, CodecUse use, int64_t rows) {
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
    const Codebooks books{codec.values.data(), host.format.parts, host.format.bits, host.format.cols};
    if (use == CodecUse::decoding) {
      // nothing more
    } else if (host.format.search == AdditiveSearch::beam) {
      beam_.emplace(books, host.format.effort, context, resources);
    } else {
      local_.emplace(books, codec_encoding(host.format), rows, context, resources);
    }
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

// That local search has memory for at a time.
int64_t DeviceCodec::search_rows(int64_t rows) const {
  constexpr int64_t kBatches = 4;  // of a good one, which takes a row's size three times over
  return std::min(rows, local_->good_batch() / kBatches);
}

int64_t DeviceCodec::scratch_bytes(DType dtype, int64_t rows) const {
  if (format().kind == CodeKind::additive) {
    const int64_t labels = has_labels(format()) ? round_up(rows * format().parts, kAlignment) : 0;
    if (local_) return labels + local_->workspace_bytes(search_rows(rows));
    return labels + round_up(beam_->scratch_bytes(), kAlignment) + (is_widened(dtype) ? rows * format().cols * 4 : 0);
  }
  const int64_t widened = is_widened(dtype) ? round_up(rows * format().cols * 4, kAlignment) : 0;
  return widened + (has_labels(format()) ? rows * format().parts : 0);
}

void DeviceCodec::encode_additive(const DeviceRowsView& rows, uint8_t* codes, std::byte* scratch,
                                  cudaStream_t stream) const {
  uint8_t* labels = codes;
  if (has_labels(format())) {
    labels = reinterpret_cast<uint8_t*>(scratch);
    scratch += round_up(rows.count * format().parts, kAlignment);
  }
  if (local_) {
    const int64_t batch = search_rows(rows.count);
    for (int64_t first = 0; first < rows.count; first += batch) {
      const int64_t count = std::min(batch, rows.count - first);
      local_->prepare(slice_rows(rows, first, count), 0, scratch, stream);
      local_->search(count, 0, local_->rounds(), true, labels + first * format().parts, nullptr, scratch, stream);
    }
  } else {
    const auto* values = static_cast<const float*>(rows.data);
    int64_t stride = rows.stride;
    if (is_widened(rows.dtype)) {
      auto* const widened = reinterpret_cast<float*>(scratch + round_up(beam_->scratch_bytes(), kAlignment));
      launch_widen_rows(rows, format().cols, widened, stream);
      values = widened;
      stride = format().cols;
    }
    beam_->encode(values, stride, rows.count, labels, scratch, stream);
  }
  if (has_labels(format())) launch_pack_labels(format(), labels, rows.count, codes, stream);
  if (format().has_norm()) launch_write_code_norms(view_, codes, rows.count, {}, stream);
}

void DeviceCodec::encode(const DeviceRowsView& rows, uint8_t* codes, std::byte* scratch, uint64_t* lost,
                         cudaStream_t stream) const {
  if (rows.count == 0) return;
  if (format().kind == CodeKind::additive) return encode_additive(rows, codes, scratch, stream);
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
