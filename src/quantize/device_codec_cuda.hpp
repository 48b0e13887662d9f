// A codec's tables on a device, for repeated encoding and decoding.
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

// `decoding` leaves out the tables that only the search for additive codes needs.
enum class CodecUse : uint8_t { all, decoding };

class DeviceCodec {
 public:
  static constexpr int64_t kManyRows = int64_t{1} << 20;

  // Copies on the context's stream, and waits. `rows`: how many will be encoded, to decide which tables pay.
  DeviceCodec(const CodecTables& codec, std::shared_ptr<const DeviceContext> context, const Resources& resources,
              CodecUse use = CodecUse::all, int64_t rows = kManyRows);

  const CodeFormat& format() const { return view_.format; }
  const CodecView& view() const { return view_; }  // of device memory
  int64_t bytes() const {
    return values_.bytes() + tables_.bytes() + (local_ ? local_->bytes() : 0) + (beam_ ? beam_->bytes() : 0);
  }
  // Device memory that encode() needs for `rows` rows.
  int64_t scratch_bytes(DType dtype, int64_t rows) const;

  // Both enqueue. `lost`: as in launch_encode_stored(), for stored values. Codes are contiguous. Norms of additive
  // codes are those of the decoded vectors, without a centre.
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
  std::optional<IcmSearch> local_;    // additive, by local search
  std::optional<BeamOnDevice> beam_;  // additive, by beam search
};

}  // namespace kith
