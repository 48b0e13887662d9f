#include "rows/stored_row.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rows/stored_row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

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
  visit_dtype(view.dtype(), [&](auto stored) {
    widen(reinterpret_cast<const typename decltype(stored)::type*>(view.row(i)), view.cols(), out);
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
    const auto* row = reinterpret_cast<const typename decltype(stored)::type*>(view.row(i));
    return std::any_of(row, row + view.cols(), [&](auto value) { return test(static_cast<float>(value)); });
  });
}

}  // namespace

HWY_EXPORT(WidenRow);

void widen_row(const MatrixView& view, int64_t i, float* out) { HWY_DYNAMIC_DISPATCH(WidenRow)(view, i, out); }

bool row_is_finite(const MatrixView& view, int64_t i) {
  if (view.dtype() == DType::u8 || view.dtype() == DType::i8) return true;
  return !any_value(view, i, [](float value) { return !std::isfinite(value); });
}

bool row_has_negative(const MatrixView& view, int64_t i) {
  return view.dtype() != DType::u8 && any_value(view, i, [](float value) { return value < 0; });
}

}  // namespace kith
#endif
