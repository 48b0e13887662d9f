#include "quantize/device_codec_cuda.hpp"

#include <kith/error.hpp>

#include "cuda/workspace_layout.hpp"
#include "kernels/codes/code_kernels_cuda.hpp"
#include "kernels/codes/sign_code_cuda.hpp"
#include "quantize/additive/code_norms_cuda.hpp"

#include <algorithm>
#include <vector>

namespace kith {
namespace {

bool is_widened(DType dtype) { return dtype != DType::f32; }

// Whether labels must be packed to become codes.
bool has_labels(const CodeFormat& format) {
  if (format.adds_codewords()) return format.bits != 8 || format.bytes() != format.parts;
  return format.copies_codewords() && format.bits != 8;
}

}  // namespace

DeviceCodec::DeviceCodec(const CodecTables& codec, std::shared_ptr<const DeviceContext> context,
                         const Resources& resources, CodecUse use, int64_t rows) {
  const CodecView host = codec.view();
  view_.format = host.format;
  if (use == CodecUse::all && !codec.recipe.code->on_gpus()) {
    throw Unsupported("codes " + codec.recipe.code->name(codec.recipe) + " are made on the CPU alone");
  }
  if (host.format.stores_values()) return;
  std::vector<float> values = codec.values;
  if (host.format.steps_columns()) {
    values.insert(values.end(), host.bases, host.bases + host.format.cols);
    values.insert(values.end(), host.steps, host.steps + host.format.cols);
  }
  if (host.format.has_levels()) values.insert(values.end(), host.levels, host.levels + kNormLevels);
  values_ = DeviceArray<float>(static_cast<int64_t>(values.size()), "a codec", context, resources);
  context->copy_values(values_.data(), values.data(), values_.size());
  const float* const floats = values_.data();
  std::vector<std::byte> tables;
  if (host.format.steps_columns()) {
    view_.bases = floats + 2 * host.format.cols;
    view_.steps = floats + 3 * host.format.cols;
  } else if (host.format.has_signs()) {
    view_.codewords = floats;
  } else if (host.format.adds_codewords()) {
    view_.codewords = floats;
    if (host.format.has_levels()) view_.levels = floats + codec.values.size();
    const Codebooks books{codec.values.data(), host.format.parts, host.format.bits, host.format.cols};
    if (use == CodecUse::decoding) {
      // nothing more
    } else if (codec.recipe.code == kResidualCode) {
      beam_.emplace(books, codec.recipe.effort, context, resources);
    } else {
      local_.emplace(books, encoding_of(codec.recipe, nullptr), rows, context, resources);
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

// Rows that local search has memory for at a time.
int64_t DeviceCodec::search_rows(int64_t rows) const {
  constexpr int64_t kBatches = 4;  // of a good one, which takes a row's size three times over
  return std::min(rows, local_->good_batch() / kBatches);
}

struct DeviceCodec::Scratch : WorkspaceLayout {
  Scratch(const DeviceCodec& codec, DType dtype, int64_t rows) {
    const CodeFormat& format = codec.format();
    const bool is_local = codec.local_.has_value();
    labels = take<uint8_t>(has_labels(format) ? rows : 0, format.parts);
    if (is_local) search = take<std::byte>(codec.local_->workspace_bytes(codec.search_rows(rows)));
    if (codec.beam_) residuals = take<float>(codec.beam_->scratch_values());
    widened = take<float>(is_widened(dtype) && !is_local ? rows : 0, format.cols);
  }

  Slot<uint8_t> labels;
  Slot<std::byte> search;  // of local search
  Slot<float> residuals;   // of a beam
  Slot<float> widened;
};

int64_t DeviceCodec::scratch_bytes(DType dtype, int64_t rows) const { return Scratch(*this, dtype, rows).bytes; }

void DeviceCodec::encode_additive(const DeviceRowsView& rows, const float* values, int64_t stride,
                                  const Scratch& places, std::byte* scratch, uint8_t* labels,
                                  cudaStream_t stream) const {
  if (!local_) return beam_->encode(values, stride, rows.count, labels, places.residuals.in(scratch), stream);
  const int64_t batch = search_rows(rows.count);
  std::byte* const workspace = places.search.in(scratch);
  for (int64_t first = 0; first < rows.count; first += batch) {
    const int64_t count = std::min(batch, rows.count - first);
    local_->prepare(slice_rows(rows, first, count), 0, workspace, stream);
    local_->search(count, 0, local_->rounds(), true, labels + first * format().parts, nullptr, workspace, stream);
  }
}

void DeviceCodec::encode(const DeviceRowsView& rows, uint8_t* codes, std::byte* scratch, uint64_t* lost,
                         cudaStream_t stream) const {
  if (rows.count == 0) return;
  const Scratch places(*this, rows.dtype, rows.count);
  const int64_t cols = format().cols;
  const auto* values = static_cast<const float*>(rows.data);
  int64_t stride = rows.stride;
  if (places.widened.count > 0) {
    float* const widened = places.widened.in(scratch);
    launch_widen_rows(rows, cols, widened, stream);
    values = widened;
    stride = cols;
  }
  if (format().stores_values()) {
    return launch_encode_stored(format(), values, stride, rows.count, codes, lost, stream);
  }
  if (format().steps_columns()) {
    const float* const ranges = values_.data();
    return launch_encode_scalar(format(), ranges, ranges + cols, values, stride, rows.count, codes, stream);
  }
  if (format().has_signs()) {
    launch_encode_signs(view_, values, stride, rows.count, codes, stream);
    return launch_write_code_norms(view_, codes, rows.count, {}, stream);
  }
  uint8_t* const labels = has_labels(format()) ? places.labels.in(scratch) : codes;
  if (format().adds_codewords()) {
    encode_additive(rows, values, stride, places, scratch, labels, stream);
  } else {
    launch_nearest_codewords(*layout_, tables_.data(),
                             {values, stride, format().part_cols(), rows.count, labels, format().parts, 1}, stream);
  }
  if (has_labels(format())) launch_pack_labels(format(), labels, rows.count, codes, stream);
  if (format().has_norm()) launch_write_code_norms(view_, codes, rows.count, {}, stream);
}

void DeviceCodec::decode(const uint8_t* codes, int64_t code_stride, int64_t count, float* out, int64_t stride,
                         cudaStream_t stream) const {
  launch_decode(view_, codes, code_stride, count, out, stride, stream);
}

}  // namespace kith
