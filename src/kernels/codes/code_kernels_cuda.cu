#include "kernels/codes/code_kernels_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/codes/code_reader_cuda.hpp"
#include "kernels/codes/scalar_code.hpp"
#include "kernels/distance/load_four_cuda.hpp"

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
  return Grid::of(row_blocks, across, kThreads);
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

// Any code at any alignment: assembles stored values from their bytes.
class UnalignedReader {
 public:
  __device__ UnalignedReader(const CodecView& codec, const uint8_t*) : codec_(codec) {}
  __device__ FourFloats four(const uint8_t* code, int first) const {
    const CodeFormat& format = codec_.format;
    if (!format.stores_values()) return decode_four(codec_, code, first);
    const int bytes = stored_bytes(format.dtype);
    FourFloats four = {};
    for (int i = 0; i < 4 && first + i < format.cols; ++i) {
      uint32_t value = 0;
      memcpy(&value, code + static_cast<int64_t>(first + i) * bytes, static_cast<size_t>(bytes));
      four.values[i] = stored_value(vectors<uint8_t>(&value), format.dtype, 0);
    }
    return four;
  }

 private:
  const CodecView& codec_;
};

// Four threads per code. kWide: rows of the output, and thus all groups of four, are aligned to 16 bytes.
template <typename Reader, bool kWide>
__global__ void __launch_bounds__(kThreads)
    decode_kernel(const __grid_constant__ CodecView codec, const uint8_t* codes, int64_t code_stride, int64_t count,
                  float* out, int64_t stride) {
  constexpr int kRows = kThreads / kRowThreads;
  const auto cols = static_cast<int>(codec.format.cols);
  const Reader reader(codec, codes);
  const int64_t apart = static_cast<int64_t>(gridDim.x) * kRows;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kRowThreads; row < count; row += apart) {
    float* const to = out + row * stride;
    for_stored(codec, reader, codes + row * code_stride, nullptr, [&](int first, const FourFloats& four) {
      const auto& v = four.values;
      if constexpr (kWide) {
        store_vector(to + first, float4{v[0], v[1], v[2], v[3]});
      } else {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (first + i < cols) to[first + i] = v[i];
        }
      }
    });
  }
}

template <typename Reader>
void launch_decode_with(const CodecView& codec, const uint8_t* codes, int64_t code_stride, int64_t count, float* out,
                        int64_t stride, cudaStream_t stream) {
  const bool wide = codec.format.cols % 4 == 0 && stride % 4 == 0 && is_aligned(out, 16);
  const Grid grid = Grid::of(std::min<int64_t>(divide_up(count * kRowThreads, kThreads), 1 << 20), kThreads);
  launch(wide ? decode_kernel<Reader, true> : decode_kernel<Reader, false>, grid, stream, codec, codes, code_stride,
         count, out, stride);
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
  visit_dtype(rows.dtype, [&]<typename T>(StoredAs<T>) {
    launch(widen_kernel<T>, grid_over(rows.count, cols), stream, rows, cols, out);
  });
}

void launch_encode_scalar(const CodeFormat& format, const float* leasts, const float* spans, const float* rows,
                          int64_t stride, int64_t count, uint8_t* codes, cudaStream_t stream) {
  launch(encode_scalar_kernel, grid_over(count, format.bytes()), stream, format, format.bytes(), leasts, spans, rows,
         stride, count, codes);
}

void launch_encode_stored(const CodeFormat& format, const float* rows, int64_t stride, int64_t count, uint8_t* codes,
                          uint64_t* lost, cudaStream_t stream) {
  visit_dtype(format.dtype, [&]<typename T>(StoredAs<T>) {
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
  if (code_stride != codec.format.bytes() || !is_aligned(codes, 16)) {
    return launch_decode_with<UnalignedReader>(codec, codes, code_stride, count, out, stride, stream);
  }
  visit_reader(codec.format, [&](auto tag) {
    launch_decode_with<typename decltype(tag)::type>(codec, codes, code_stride, count, out, stride, stream);
  });
}

void launch_column_ranges(const DeviceRowsView& rows, int64_t cols, uint32_t* leasts, uint32_t* largests,
                          cudaStream_t stream) {
  const Grid grid = Grid::of(std::min<int64_t>(rows.count, 2048), divide_up(cols, kThreads), kThreads);
  visit_dtype(rows.dtype, [&]<typename T>(StoredAs<T>) {
    launch(column_ranges_kernel<T>, grid, stream, rows, cols, leasts, largests);
  });
}

}  // namespace kith
