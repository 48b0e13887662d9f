#include <kith/error.hpp>

#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "io/dtype_conversion.hpp"
#include "kernels/codes/code_kernels_cuda.hpp"
#include "quantize/codec.hpp"
#include "quantize/device_codec_cuda.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kDevicePieceBytes = int64_t{64} << 20;  // of device memory for rows on their way

// The same error as on the host.
[[noreturn]] void throw_lost(const MatrixView& rows, const CodeFormat& format, uint64_t lost,
                             const DeviceContext& context) {
  const auto at = static_cast<int64_t>(lost);
  std::byte value[8] = {};
  const int64_t size = size_of(rows.dtype());
  context.copy(value, rows.row(at / format.cols) + at % format.cols * size, size);
  context.synchronize();
  std::byte made[8];
  const std::string name = "rows";
  convert_values(value, rows.dtype(), made, format.dtype, 1, {name, at, format.cols});
  throw DeviceError("a value was refused on the GPU that the host can hold");
}

}  // namespace

void encode_cuda(const EncodeTask& task, int device, const Resources& resources) {
  const auto& [codec, rows, codes, how] = task;
  (void)how;
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, resources.options().stream);
  const DeviceCodec on_device(codec, context, resources, CodecUse::all, rows.rows());
  const CodeFormat& format = codec.format;
  const bool rows_there = rows.space().kind == MemoryKind::cuda;
  const bool codes_there = codes.space().kind == MemoryKind::cuda;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const DeviceArray<uint64_t> lost(1, "the check of values", context, resources);
  const auto bytes_of = [&](int64_t count) {
    return count * ((rows_there ? 0 : row_bytes) + (codes_there ? 0 : format.bytes())) +
           on_device.scratch_bytes(rows.dtype(), count);
  };
  const int64_t piece = rows_at_a_time(rows.rows(), kDevicePieceBytes, bytes_of, resources);
  const DeviceBuffer brought(rows_there ? 0 : piece * row_bytes, "rows to encode", context, resources);
  const DeviceArray<uint8_t> made(codes_there ? 0 : piece * format.bytes(), "codes", context, resources);
  const DeviceBuffer scratch(on_device.scratch_bytes(rows.dtype(), piece), "rows to encode", context, resources);
  RowUpload upload(wants_pinned(rows.space(), rows.rows() * row_bytes, resources), resources);
  if (counts_only(resources)) return;
  ProgressMeter meter("encode", rows.rows(), resources);
  for (int64_t first = 0; first < rows.rows(); first += piece) {
    const int64_t count = std::min(piece, rows.rows() - first);
    MatrixView some = rows.slice(first, count);
    if (!rows_there) {
      upload.copy(some, brought.data(), context->stream(), meter);
      some = {brought.data(), rows.dtype(), {count, rows.cols(), rows.cols()}, MemorySpace::cuda(device)};
    }
    uint8_t* const to = codes_there ? typed_row<uint8_t>(codes, first) : made.data();
    context->fill(lost.data(), 0xFF, 1);  // kNothingLost
    on_device.encode(device_rows(some), to, scratch.data(), lost.data(), context->stream());
    if (!codes_there) context->copy(codes.row(first), to, count * format.bytes());
    uint64_t found = kNothingLost;
    if (format.stores_values()) context->copy_values(&found, lost.data(), 1);
    context->synchronize();
    if (found != kNothingLost) {
      throw_lost(rows, format, found + static_cast<uint64_t>(first * format.cols), *context);
    }
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

void decode_cuda(const CodecTables& codec, const MatrixView& codes, const MutableMatrixView& out, int device,
                 const Resources& resources) {
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, resources.options().stream);
  const DeviceCodec on_device(codec, context, resources, CodecUse::decoding);
  const CodeFormat& format = codec.format;
  const bool codes_there = codes.space().kind == MemoryKind::cuda;
  const bool out_there = out.space().kind == MemoryKind::cuda;
  const int64_t out_bytes = format.cols * 4;
  const int64_t each = (codes_there ? 0 : format.bytes()) + (out_there ? 0 : out_bytes);
  const int64_t piece = rows_at_a_time(
      codes.rows(), kDevicePieceBytes, [&](int64_t count) { return count * each; }, resources);
  const DeviceBuffer brought(codes_there ? 0 : piece * format.bytes(), "codes", context, resources);
  const DeviceArray<float> made(out_there ? 0 : piece * format.cols, "decoded rows", context, resources);
  RowUpload upload(false, resources);
  if (counts_only(resources)) return;
  ProgressMeter meter("decode", codes.rows(), resources);
  for (int64_t first = 0; first < codes.rows(); first += piece) {
    const int64_t count = std::min(piece, codes.rows() - first);
    const auto* from = typed_row<uint8_t>(codes, first);
    int64_t code_stride = codes.row_stride();
    if (!codes_there) {
      upload.copy(codes.slice(first, count), brought.data(), context->stream(), meter);
      from = brought.as<uint8_t>();
      code_stride = format.bytes();
    }
    float* const to = out_there ? typed_row<float>(out, first) : made.data();
    on_device.decode(from, code_stride, count, to, out_there ? out.row_stride() : format.cols, context->stream());
    if (!out_there) context->copy_rows(out.slice(first, count), MatrixView(to, count, format.cols));
    context->synchronize();
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

void copy_codes_cuda(const MatrixView& from, const MutableMatrixView& to, int device, const Resources& resources) {
  if (from.rows() == 0 || counts_only(resources)) return;
  const DeviceGuard guard(device);
  const DeviceContext context(device, resources.options().stream);
  context.copy_rows(to, from);
  context.synchronize();
}

void widen_ranges_cuda(const MatrixView& rows, float* leasts, float* largests, const Resources& resources) {
  const int device = rows.space().device;
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, resources.options().stream);
  const auto cols = rows.cols();
  std::vector<uint32_t> keys(static_cast<size_t>(2 * cols));
  for (int64_t c = 0; c < cols; ++c) {
    keys[static_cast<size_t>(c)] = ordered_key(leasts[c]);
    keys[static_cast<size_t>(cols + c)] = ordered_key(largests[c]);
  }
  const DeviceArray<uint32_t> there(2 * cols, "ranges of columns", context, resources);
  context->copy_values(there.data(), keys.data(), there.size());
  launch_column_ranges(device_rows(rows), cols, there.data(), there.data() + cols, context->stream());
  context->copy_values(keys.data(), there.data(), there.size());
  context->synchronize();
  for (int64_t c = 0; c < cols; ++c) {
    leasts[c] = key_of_ordered(keys[static_cast<size_t>(c)]);
    largests[c] = key_of_ordered(keys[static_cast<size_t>(cols + c)]);
  }
}

}  // namespace kith
