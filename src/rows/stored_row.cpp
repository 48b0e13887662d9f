#include "rows/stored_row.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rows/stored_row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "core/typed_row.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void widen(const T* from, int64_t cols, float* to) {
  constexpr int64_t kFloats = hn::MaxLanes(F32());
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) hn::StoreU(load_floats(from + c), F32(), to + c);
  for (; c < cols; ++c) to[c] = static_cast<float>(from[c]);
}

void WidenRow(const MatrixView& view, int64_t i, float* out) {
  visit_dtype(view.dtype(),
              [&](auto stored) { widen(typed_row<typename decltype(stored)::type>(view, i), view.cols(), out); });
}

// A finite value minus itself is +0, with all bits zero; a value that is not finite minus itself is NaN.
template <typename T>
bool all_finite(const T* from, int64_t count) {
  const F32 d;
  constexpr int64_t kFloats = hn::MaxLanes(F32());
  constexpr int kSums = 4;
  hn::Vec<F32> left[kSums];
  for (auto& own : left) own = hn::Zero(d);
  int64_t i = 0;
  for (; i + kSums * kFloats <= count; i += kSums * kFloats) {
#pragma GCC unroll 4
    for (int v = 0; v < kSums; ++v) {
      const auto value = load_floats(from + i + v * kFloats);
      left[v] = hn::Or(left[v], hn::Sub(value, value));
    }
  }
  bool finite = true;
  for (; i < count; ++i) finite &= std::isfinite(static_cast<float>(from[i]));
  const auto any = hn::Or(hn::Or(left[0], left[1]), hn::Or(left[2], left[3]));
  const hn::RebindToUnsigned<F32> bits;
  return finite && hn::AllTrue(bits, hn::Eq(hn::BitCast(bits, any), hn::Zero(bits)));
}

bool RowsAreFinite(const MatrixView& rows) {
  return visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    const auto* const data = static_cast<const T*>(rows.data());
    if (rows.row_stride() == rows.cols()) return all_finite(data, rows.rows() * rows.cols());
    for (int64_t i = 0; i < rows.rows(); ++i) {
      if (!all_finite(data + i * rows.row_stride(), rows.cols())) return false;
    }
    return true;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {
namespace {

template <typename Test>
bool any_value(const MatrixView& view, int64_t i, const Test& test) {
  return visit_dtype(view.dtype(), [&](auto stored) {
    const auto* row = typed_row<typename decltype(stored)::type>(view, i);
    return std::any_of(row, row + view.cols(), [&](auto value) { return test(static_cast<float>(value)); });
  });
}

}  // namespace

HWY_EXPORT(WidenRow);
HWY_EXPORT(RowsAreFinite);

void widen_row(const MatrixView& view, int64_t i, float* out) { HWY_DYNAMIC_DISPATCH(WidenRow)(view, i, out); }

const float* floats_of(const MatrixView& view, int64_t i, float* room) {
  if (view.dtype() == DType::f32) return typed_row<float>(view, i);
  widen_row(view, i, room);
  return room;
}

bool rows_are_finite(const MatrixView& rows) {
  if (rows.dtype() == DType::u8 || rows.dtype() == DType::i8) return true;
  return HWY_DYNAMIC_DISPATCH(RowsAreFinite)(rows);
}

bool row_is_finite(const MatrixView& view, int64_t i) { return rows_are_finite(view.slice(i, 1)); }

bool row_has_negative(const MatrixView& view, int64_t i) {
  return view.dtype() != DType::u8 && any_value(view, i, [](float value) { return value < 0; });
}

}  // namespace kith
#endif
