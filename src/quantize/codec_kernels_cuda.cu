#include "quantize/codec_kernels_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "quantize/scalar_code.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// A warp for each row, or a part of one where there are few: calls use(row, i) for i in [0, width), which are
// neighbours in neighbouring lanes. No division of 64-bit numbers, which would take longer than all the rest.
template <typename Use>
__device__ void for_each_value(int64_t rows, int64_t width, const Use& use) {
  const int64_t apart = static_cast<int64_t>(gridDim.x) * kWarps;
  const auto end = static_cast<int>(width);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows; row += apart) {
#pragma unroll 4
    for (int i = static_cast<int>(blockIdx.y * 32 + threadIdx.x % 32); i < end; i += static_cast<int>(gridDim.y * 32)) {
      use(row, i);
    }
  }
}

Grid grid_over(int64_t rows, int64_t width) {
  if (rows == 0) return {};
  constexpr int64_t kEnough = 8192;  // blocks
  const int64_t row_blocks = std::min<int64_t>(divide_up(rows, kWarps), 1 << 20);
  const int64_t across = std::clamp<int64_t>(kEnough / row_blocks, 1, std::min<int64_t>(divide_up(width, 32), 65535));
  return {dim3(static_cast<unsigned>(row_blocks), static_cast<unsigned>(across)), dim3(kThreads)};
}

template <typename X>
__global__ void __launch_bounds__(kThreads) widen_kernel(DeviceRowsView rows, int64_t cols, float* out) {
  for_each_value(rows.count, cols,
                 [&](int64_t row, int c) { out[row * cols + c] = static_cast<float>(rows.row<X>(row)[c]); });
}

// The sub-codes that a byte holds bits of.
template <typename SubCode>
__device__ uint8_t packed_byte(int byte, int bits, int64_t count, const SubCode& code_of) {
  uint32_t value = 0;
  const int64_t first_bit = int64_t{byte} * 8;
  const auto first =
      bits == 8 ? byte : static_cast<int>(static_cast<uint64_t>(first_bit) / static_cast<uint32_t>(bits));
  for (int i = first; i < count && int64_t{i} * bits < first_bit + 8; ++i) {
    const auto shift = static_cast<int>(int64_t{i} * bits - first_bit);
    const uint32_t code = code_of(i);
    value |= shift >= 0 ? code << shift : code >> -shift;
  }
  return static_cast<uint8_t>(value);
}

__global__ void __launch_bounds__(kThreads)
    encode_scalar_kernel(CodeFormat format, int64_t bytes, const float* leasts, const float* spans, const float* rows,
                         int64_t stride, int64_t count, uint8_t* codes) {
  for_each_value(count, bytes, [&](int64_t i, int byte) {
    const float* const row = rows + i * stride;
    codes[i * bytes + byte] = packed_byte(byte, format.bits, format.cols,
                                          [&](int c) { return scalar_code(row[c], leasts[c], spans[c], format.bits); });
  });
}

__global__ void __launch_bounds__(kThreads)
    pack_labels_kernel(CodeFormat format, int64_t bytes, const uint8_t* labels, int64_t count, uint8_t* codes) {
  for_each_value(count, bytes, [&](int64_t i, int byte) {
    const uint8_t* const row = labels + i * format.parts;
    codes[i * bytes + byte] = packed_byte(byte, format.bits, format.parts, [&](int p) { return uint32_t{row[p]}; });
  });
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
  for_each_value(count, cols, [&](int64_t row, int c) {
    const int64_t at = row * cols + c;
    if (narrow(rows[row * stride + c], out[at])) return;
    atomicMin(vectors<unsigned long long>(lost), static_cast<unsigned long long>(at));
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    decode_stored_kernel(int64_t cols, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                         int64_t stride) {
  for_each_value(count, cols, [&](int64_t row, int c) {
    T value;
    memcpy(&value, codes + row * code_stride + static_cast<int64_t>(c) * sizeof(T), sizeof value);
    out[row * stride + c] = static_cast<float>(value);
  });
}

__global__ void __launch_bounds__(kThreads)
    decode_scalar_kernel(CodecView codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                         int64_t stride) {
  const int64_t cols = codec.format.cols;
  for_each_value(count, cols, [&](int64_t row, int c) {
    const uint32_t code = sub_code(codes + row * code_stride, c, codec.format.bits);
    out[row * stride + c] = fmaf(static_cast<float>(code), codec.steps[c], codec.bases[c]);
  });
}

__global__ void __launch_bounds__(kThreads)
    decode_product_kernel(CodecView codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                          int64_t stride) {
  const int64_t cols = codec.format.cols;
  const auto part_cols = static_cast<int>(codec.format.part_cols());
  const int64_t part_values = codec.format.codewords() * part_cols;
  for_each_value(count, cols, [&](int64_t row, int c) {
    const int p = c / part_cols;
    const uint32_t word = sub_code(codes + row * code_stride, p, codec.format.bits);
    out[row * stride + c] = codec.codewords[p * part_values + static_cast<int64_t>(word) * part_cols + c % part_cols];
  });
}

__global__ void __launch_bounds__(kThreads)
    decode_additive_kernel(CodecView codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                           int64_t stride) {
  const int64_t cols = codec.format.cols;
  const int bits = codec.format.bits;
  for_each_value(count, cols, [&](int64_t row, int c) {
    const uint8_t* const code = codes + row * code_stride;
    float sum = codec.codewords[sub_code(code, 0, bits) * cols + c];
    for (int64_t p = 1; p < codec.format.parts; ++p) {
      sum = __fadd_rn(sum, codec.codewords[((p << bits) + sub_code(code, p, bits)) * cols + c]);
    }
    out[row * stride + c] = sum;
  });
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
  visit_dtype(rows.dtype, [&](auto stored) {
    launch(widen_kernel<typename decltype(stored)::type>, grid_over(rows.count, cols), stream, rows, cols, out);
  });
}

void launch_encode_scalar(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                          int64_t stride, int64_t count, uint8_t* codes, cudaStream_t stream) {
  launch(encode_scalar_kernel, grid_over(count, format.bytes()), stream, format, format.bytes(), leasts, spans, rows,
         stride, count, codes);
}

void launch_encode_stored(const CodeFormat& format, const float* rows, int64_t stride, int64_t count, uint8_t* codes,
                          uint64_t* lost, cudaStream_t stream) {
  visit_dtype(format.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    launch(encode_stored_kernel<T>, grid_over(count, format.cols), stream, format.cols, rows, stride, count,
           vectors<T>(codes), lost);
  });
}

void launch_pack_labels(const CodeFormat& format, const uint8_t* labels, int64_t count, uint8_t* codes,
                        cudaStream_t stream) {
  launch(pack_labels_kernel, grid_over(count, format.bytes()), stream, format, format.bytes(), labels, count, codes);
}

void launch_decode(const CodecView& codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                   int64_t stride, cudaStream_t stream) {
  const CodeFormat& format = codec.format;
  const Grid grid = grid_over(count, format.cols);
  if (format.kind == CodeKind::stored) {
    visit_dtype(format.dtype, [&](auto stored) {
      launch(decode_stored_kernel<typename decltype(stored)::type>, grid, stream, format.cols, codes, code_stride,
             count, out, stride);
    });
    return;
  }
  const auto kernel = format.kind == CodeKind::product    ? decode_product_kernel
                      : format.kind == CodeKind::additive ? decode_additive_kernel
                                                          : decode_scalar_kernel;
  launch(kernel, grid, stream, codec, codes, code_stride, count, out, stride);
}

void launch_column_ranges(const DeviceRowsView& rows, int64_t cols, uint32_t* leasts, uint32_t* largests,
                          cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(std::min<int64_t>(rows.count, 2048)),
                    static_cast<unsigned>(divide_up(cols, kThreads)));
  visit_dtype(rows.dtype, [&](auto stored) {
    launch(column_ranges_kernel<typename decltype(stored)::type>, {blocks, dim3(kThreads)}, stream, rows, cols, leasts,
           largests);
  });
}

}  // namespace kith
