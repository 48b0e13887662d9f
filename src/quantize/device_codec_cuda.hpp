// A codec's tables on a device, for who encodes and decodes there again and again.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_buffer.hpp"
#include "kernels/distance/device_rows.hpp"
#include "quantize/codec_tables.hpp"
#include "quantize/product_nearest_cuda.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kith {

class DeviceCodec {
 public:
  // Copies on the context's stream, and waits.
  DeviceCodec(const CodecTables& codec, std::shared_ptr<const DeviceContext> context, const Resources& resources);

  const CodeFormat& format() const { return view_.format; }
  const CodecView& view() const { return view_; }  // of device memory
  int64_t bytes() const { return values_.bytes() + tables_.bytes(); }
  // Device memory that encode() needs for so many rows of a dtype.
  int64_t scratch_bytes(DType dtype, int64_t rows) const;

  // Both enqueue. `lost`: of stored values (launch_encode_stored); codes follow each other.
  void encode(const DeviceRowsView& rows, uint8_t* codes, std::byte* scratch, uint64_t* lost,
              cudaStream_t stream) const;
  void decode(const uint8_t* codes, int64_t code_stride, int64_t count, float* out, int64_t stride,
              cudaStream_t stream) const;

 private:
  CodecView view_;
  std::optional<ProductTableLayout> layout_;
  DeviceBuffer values_;  // scalar: leasts, spans, bases, steps; product: codewords; additive: codebooks, levels
  DeviceBuffer tables_;  // product
};

}  // namespace kith
