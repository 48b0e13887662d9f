// A codec's tables on a device, for who encodes and decodes there again and again.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "kernels/assign/codewords_cuda.hpp"
#include "quantize/additive/beam_search_cuda.hpp"
#include "quantize/additive/icm_search_cuda.hpp"
#include "quantize/code_encoder.hpp"
#include "rows/device_rows.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// What it is for: what finds additive codes is not made for who decodes alone.
enum class CodecUse : uint8_t { all, decoding };

class DeviceCodec {
 public:
  static constexpr int64_t kManyRows = int64_t{1} << 20;

  // Copies on the context's stream, and waits. `rows`: so many are expected to be encoded, for what pays then.
  DeviceCodec(const CodecTables& codec, std::shared_ptr<const DeviceContext> context, const Resources& resources,
              CodecUse use = CodecUse::all, int64_t rows = kManyRows);

  const CodeFormat& format() const { return view_.format; }
  const CodecView& view() const { return view_; }  // of device memory
  int64_t bytes() const {
    return values_.bytes() + tables_.bytes() + (local_ ? local_->bytes() : 0) + (beam_ ? beam_->bytes() : 0);
  }
  // Device memory that encode() needs for so many rows of a dtype.
  int64_t scratch_bytes(DType dtype, int64_t rows) const;

  // Both enqueue. `lost`: of stored values (launch_encode_stored); codes follow each other. Norms of additive codes are
  // those of the decoded vectors, without a centre.
  void encode(const DeviceRowsView& rows, uint8_t* codes, std::byte* scratch, uint64_t* lost,
              cudaStream_t stream) const;
  void decode(const uint8_t* codes, int64_t code_stride, int64_t count, float* out, int64_t stride,
              cudaStream_t stream) const;

 private:
  struct Scratch;

  int64_t search_rows(int64_t rows) const;
  void encode_additive(const DeviceRowsView& rows, const float* values, int64_t stride, const Scratch& places,
                       std::byte* scratch, uint8_t* labels, cudaStream_t stream) const;

  CodecView view_;
  std::optional<ProductTableLayout> layout_;
  DeviceArray<float> values_;  // scalar: leasts, spans, bases, steps; product: codewords; additive: codebooks, levels
  DeviceBuffer tables_;        // product
  std::optional<IcmSearch> local_;    // additive
  std::optional<BeamOnDevice> beam_;  // likewise
};

}  // namespace kith
