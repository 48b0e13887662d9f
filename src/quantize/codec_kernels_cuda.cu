#include "quantize/codec_kernels_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "quantize/scalar_code.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace kith {
namespace {

constexpr int kThreads = 256;

// Blocks for so many threads that each has few turns.
unsigned blocks_for(int64_t work) {
  return static_cast<unsigned>(std::clamp<int64_t>(divide_up(work, kThreads), 1, 1 << 20));
}

__device__ int64_t first_turn() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ int64_t turn_step() { return static_cast<int64_t>(gridDim.x) * kThreads; }

template <typename X>
__global__ void __launch_bounds__(kThreads) widen_kernel(DeviceRowsView rows, int64_t cols, float* out) {
  for (int64_t i = first_turn(); i < rows.count * cols; i += turn_step()) {
    out[i] = static_cast<float>(rows.row<X>(i / cols)[i % cols]);
  }
}

// The sub-codes that a byte holds bits of.
template <typename SubCode>
__device__ uint8_t packed_byte(int64_t byte, int bits, int64_t count, const SubCode& code_of) {
  uint32_t value = 0;
  const int64_t first_bit = byte * 8;
  for (int64_t i = first_bit / bits; i < count && i * bits < first_bit + 8; ++i) {
    const auto shift = static_cast<int>(i * bits - first_bit);
    const uint32_t code = code_of(i);
    value |= shift >= 0 ? code << shift : code >> -shift;
  }
  return static_cast<uint8_t>(value);
}

__global__ void __launch_bounds__(kThreads)
    encode_scalar_kernel(CodeFormat format, int64_t bytes, const float* leasts, const float* spans, const float* rows,
                         int64_t stride, int64_t count, uint8_t* codes) {
  for (int64_t i = first_turn(); i < count * bytes; i += turn_step()) {
    const float* const row = rows + i / bytes * stride;
    codes[i] = packed_byte(i % bytes, format.bits, format.cols,
                           [&](int64_t c) { return scalar_code(row[c], leasts[c], spans[c], format.bits); });
  }
}

__global__ void __launch_bounds__(kThreads)
    pack_labels_kernel(CodeFormat format, int64_t bytes, const uint8_t* labels, int64_t count, uint8_t* codes) {
  for (int64_t i = first_turn(); i < count * bytes; i += turn_step()) {
    const uint8_t* const row = labels + i / bytes * format.parts;
    codes[i] = packed_byte(i % bytes, format.bits, format.parts, [&](int64_t p) { return uint32_t{row[p]}; });
  }
}

// The nearest value of type T (io/dtype_conversion.hpp); false where T cannot hold it.
template <typename T>
__device__ bool narrow(float value, T& out) {
  if constexpr (std::is_same_v<T, float>) {
    out = value;
    return true;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    if constexpr (std::is_same_v<T, Half>) {
      out = half_of(value);
    } else {
      out = bfloat16_of(value);
    }
    const uint32_t infinity = std::is_same_v<T, Half> ? 0x7C00u : 0x7F80u;
    return (out.bits & 0x7FFFu) != infinity || (bits_of_float(value) & 0x7FFFFFFFu) >= 0x7F800000u;
  } else {
    constexpr float kLowest = std::is_signed_v<T> ? -128.0f : 0.0f;
    constexpr float kLargest = std::is_signed_v<T> ? 127.0f : 255.0f;
    const float raised = value > kLowest ? value : kLowest;
    out = static_cast<T>(static_cast<int32_t>(raised < kLargest ? raised : kLargest));
    return static_cast<float>(out) == value;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    encode_stored_kernel(int64_t cols, const float* rows, int64_t stride, int64_t count, T* out, uint64_t* lost) {
  for (int64_t i = first_turn(); i < count * cols; i += turn_step()) {
    if (!narrow(rows[i / cols * stride + i % cols], out[i])) {
      atomicMin(reinterpret_cast<unsigned long long*>(lost), static_cast<unsigned long long>(i));
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    decode_stored_kernel(int64_t cols, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                         int64_t stride) {
  for (int64_t i = first_turn(); i < count * cols; i += turn_step()) {
    const int64_t row = i / cols;
    T value;
    memcpy(&value, codes + row * code_stride + i % cols * sizeof(T), sizeof value);
    out[row * stride + i % cols] = static_cast<float>(value);
  }
}

__global__ void __launch_bounds__(kThreads)
    decode_scalar_kernel(CodecView codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                         int64_t stride) {
  const int64_t cols = codec.format.cols;
  for (int64_t i = first_turn(); i < count * cols; i += turn_step()) {
    const int64_t row = i / cols;
    const int64_t c = i % cols;
    const uint32_t code = sub_code(codes + row * code_stride, c, codec.format.bits);
    out[row * stride + c] = fmaf(static_cast<float>(code), codec.steps[c], codec.bases[c]);
  }
}

__global__ void __launch_bounds__(kThreads)
    decode_product_kernel(CodecView codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                          int64_t stride) {
  const int64_t cols = codec.format.cols;
  const int64_t part_cols = codec.format.part_cols();
  for (int64_t i = first_turn(); i < count * cols; i += turn_step()) {
    const int64_t row = i / cols;
    const int64_t c = i % cols;
    const int64_t p = c / part_cols;
    const int64_t word = p * codec.format.codewords() + sub_code(codes + row * code_stride, p, codec.format.bits);
    out[row * stride + c] = codec.codewords[word * part_cols + c % part_cols];
  }
}

template <typename X>
__global__ void __launch_bounds__(kThreads)
    column_ranges_kernel(DeviceRowsView rows, int64_t cols, uint32_t* leasts, uint32_t* largests) {
  const int64_t c = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= cols) return;
  uint32_t least = kNanKey;
  uint32_t largest = 0;
  for (int64_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
    const uint32_t key = ordered_key(static_cast<float>(rows.row<X>(i)[c]));
    if (key == kNanKey) continue;  // neither below nor above anything
    least = key < least ? key : least;
    largest = key > largest ? key : largest;
  }
  if (least != kNanKey) atomicMin(leasts + c, least);
  if (largest != 0) atomicMax(largests + c, largest);
}

}  // namespace

void launch_widen_rows(const DeviceRowsView& rows, int64_t cols, float* out, cudaStream_t stream) {
  if (rows.count == 0) return;
  visit_dtype(rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    widen_kernel<X><<<blocks_for(rows.count * cols), kThreads, 0, stream>>>(rows, cols, out);
  });
  KITH_CUDA_CHECK_LAUNCH("widen_kernel");
}

void launch_encode_scalar(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                          int64_t stride, int64_t count, uint8_t* codes, cudaStream_t stream) {
  if (count == 0) return;
  encode_scalar_kernel<<<blocks_for(count * format.bytes()), kThreads, 0, stream>>>(format, format.bytes(), leasts,
                                                                                    spans, rows, stride, count, codes);
  KITH_CUDA_CHECK_LAUNCH("encode_scalar_kernel");
}

void launch_encode_stored(const CodeFormat& format, const float* rows, int64_t stride, int64_t count, uint8_t* codes,
                          uint64_t* lost, cudaStream_t stream) {
  if (count == 0) return;
  visit_dtype(format.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    encode_stored_kernel<<<blocks_for(count * format.cols), kThreads, 0, stream>>>(format.cols, rows, stride, count,
                                                                                   reinterpret_cast<T*>(codes), lost);
  });
  KITH_CUDA_CHECK_LAUNCH("encode_stored_kernel");
}

void launch_pack_labels(const CodeFormat& format, const uint8_t* labels, int64_t count, uint8_t* codes,
                        cudaStream_t stream) {
  if (count == 0) return;
  pack_labels_kernel<<<blocks_for(count * format.bytes()), kThreads, 0, stream>>>(format, format.bytes(), labels, count,
                                                                                  codes);
  KITH_CUDA_CHECK_LAUNCH("pack_labels_kernel");
}

void launch_decode(const CodecView& codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                   int64_t stride, cudaStream_t stream) {
  if (count == 0) return;
  const CodeFormat& format = codec.format;
  const unsigned blocks = blocks_for(count * format.cols);
  if (format.kind == CodeKind::product) {
    decode_product_kernel<<<blocks, kThreads, 0, stream>>>(codec, codes, code_stride, count, out, stride);
  } else if (format.kind == CodeKind::scalar) {
    decode_scalar_kernel<<<blocks, kThreads, 0, stream>>>(codec, codes, code_stride, count, out, stride);
  } else {
    visit_dtype(format.dtype, [&](auto stored) {
      using T = typename decltype(stored)::type;
      decode_stored_kernel<T><<<blocks, kThreads, 0, stream>>>(format.cols, codes, code_stride, count, out, stride);
    });
  }
  KITH_CUDA_CHECK_LAUNCH("decode_kernel");
}

void launch_column_ranges(const DeviceRowsView& rows, int64_t cols, uint32_t* leasts, uint32_t* largests,
                          cudaStream_t stream) {
  if (rows.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<int64_t>(rows.count, 2048)),
                  static_cast<unsigned>(divide_up(cols, kThreads)));
  visit_dtype(rows.dtype, [&](auto stored) {
    column_ranges_kernel<typename decltype(stored)::type><<<grid, kThreads, 0, stream>>>(rows, cols, leasts, largests);
  });
  KITH_CUDA_CHECK_LAUNCH("column_ranges_kernel");
}

}  // namespace kith
