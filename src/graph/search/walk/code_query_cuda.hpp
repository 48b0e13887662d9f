// Encodes a query for walks with one warp, in the same float64 arithmetic as WalkCoder::query(), so to the same code.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/warp.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"

#include <cstdint>

namespace kith {

class CodedQuery {
 public:
  // Called by all lanes of the warp.
  __device__ CodedQuery(const WalkTaskCuda& task, const DeviceRowsView& queries, int64_t query)
      : task_(task), row_(row_bytes_at(queries, query)), dtype_(queries.dtype) {
    const auto cols = static_cast<int>(task_.cols);
    if (task_.unit_length) find_length();
    double least = 0;
    double most = 0;
    bool bad = false;
#pragma unroll 4  // overlaps the loads
    for (int col = lane_index(); col < cols; col += 32) {
      const double x = moved(col);
      bad |= !(x - x == 0.0);
      least = fmin(least, x);
      most = fmax(most, x);
    }
    finite_ = !__any_sync(kAllLanes, bad);
    KITH_UNROLL
    for (int apart = 16; apart > 0; apart /= 2) {
      least = fmin(least, __shfl_xor_sync(kAllLanes, least, apart));
      most = fmax(most, __shfl_xor_sync(kAllLanes, most, apart));
    }
    const double largest = fmax(-least, most);
    inverse_ = task_.inverse_step;
    if (task_.kind == WalkKind::products) {
      const bool whole = dtype_ == DType::u8 || dtype_ == DType::i8;
      inverse_ = whole || largest == 0 ? 1.0 : 127.0 / largest;
    } else if (largest * inverse_ > task_.widest) {
      inverse_ = task_.widest / largest;
    }
    bytes_ = rint(least * inverse_) >= -128 && rint(most * inverse_) <= 127;
  }

  __device__ bool finite() const { return finite_; }
  // Whether all values fit bytes; else the code has 16-bit words.
  __device__ bool bytes() const { return bytes_; }

  // Calls use(column, value) for the lane's columns, padded with zeros to the stride; returns the squared norm.
  template <typename Use>
  __device__ uint32_t visit(const Use& use) const {
    uint32_t norm = 0;
#pragma unroll 1
    for (int col = lane_index(); col < task_.stride; col += 32) {
      const int level = col < task_.cols ? static_cast<int>(rint(moved(col) * inverse_)) : 0;
      norm += static_cast<uint32_t>(level) * static_cast<uint32_t>(level);
      use(col, level);
    }
    return warp_sum(norm);
  }

 private:
  // For cosine, whose rows are normalized: the norm by four threads, in the canonical order.
  __device__ void find_length() {
    const auto cols = static_cast<int>(task_.cols);
    double lanes[kRowThreadLanes] = {};
#pragma unroll 1
    for (int first = lane_index() % kRowThreads * kRowThreadLanes; first < cols; first += kCanonicalLanes) {
      KITH_UNROLL
      for (int i = 0; i < kRowThreadLanes; ++i) {
        const double x = first + i < cols ? stored_value(row_, dtype_, first + i) : 0.0;
        lanes[i] = fma(x, x, lanes[i]);
      }
    }
    const double square = __shfl_sync(kAllLanes, join_row_threads(lanes, row_threads()), 0);
    to_unit_ = canonical_inverse_norm(square);
  }

  // Minus the column's offset.
  __device__ double moved(int col) const {
    double x = stored_value(row_, dtype_, col);
    if (task_.unit_length) x = static_cast<double>(static_cast<float>(x * to_unit_));
    return task_.kind == WalkKind::products ? x : x - static_cast<double>(task_.offsets[col]);
  }

  const WalkTaskCuda& task_;
  const void* row_;
  DType dtype_;
  double to_unit_ = 1;
  double inverse_ = 1;
  bool finite_ = true;
  bool bytes_ = true;
};

// The code of a query whose bytes are its code (WalkTaskCuda::plain), with one warp: calls use(i, word) for the i-th
// four bytes, padded with zeros to the stride; returns the squared norm.
template <typename Use>
KITH_DEVICE_INLINE uint32_t visit_plain_code(const WalkTaskCuda& task, const DeviceRowsView& queries, int64_t query,
                                             const Use& use) {
  const auto* const row = reinterpret_cast<const uint8_t*>(row_bytes_at(queries, query));
  const auto cols = static_cast<int>(task.cols);
  const bool aligned = is_aligned(row, 4);
  const uint32_t turned = queries.dtype == DType::u8 ? 0x80U : 0U;  // subtracts 128: a signed byte
  uint32_t norm = 0;
  for (int first = 4 * lane_index(); first < task.stride; first += 128) {
    uint32_t word = 0;
    if (aligned && first + 4 <= cols) {
      word = load_vector<uint32_t>(row + first) ^ turned * 0x01010101U;
    } else {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (first + i < cols) word |= (row[first + i] ^ turned) << (8 * i);
      }
    }
    use(first / 4, word);
    norm += static_cast<uint32_t>(__dp4a(static_cast<int>(word), static_cast<int>(word), 0));
  }
  return warp_sum(norm);
}

}  // namespace kith
