#include "graph/lists/pairs/pair_keys.hpp"

#include "core/typed_row.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>

namespace kith {

void PairKeys::of(uint32_t row, const uint32_t* others, int64_t count, float* keys) {
  if (custom_ != nullptr) return by_custom(row, others, count, keys);
  const float* values = values_.data();
  if (x_.dtype() == DType::f32) {
    values = typed_row<float>(x_, row);
  } else {
    widen_row(x_, row, values_.data());
  }
  CanonicalQuery query{values, 0};
  if (kind_ == KeyKind::cosine) {
    query.inverse_norm = canonical_inverse_norm(canonical_squared_norm_cpu(values, x_.cols()));
  }
  canonical_keys_cpu(kind_, query, x_, others, count, keys);
}

void PairKeys::prefetch(uint32_t row) const {
  constexpr int64_t kLineBytes = 64;
  const auto* const from = reinterpret_cast<const char*>(x_.row(row));
  const int64_t bytes = std::min<int64_t>(x_.cols() * size_of(x_.dtype()), 8 * kLineBytes);
  for (int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(from + at);
}

void PairKeys::by_custom(uint32_t row, const uint32_t* others, int64_t count, float* keys) {
  constexpr int64_t kWidth = custom::kPanelRows;
  const int64_t cols = x_.cols();
  widen_row(x_, row, values_.data());
  float* const panel = others_.data() + kWidth * cols;
  for (int64_t first = 0; first < count; first += kWidth) {
    const int64_t here = std::min(kWidth, count - first);
    for (int64_t i = 0; i < here; ++i) widen_row(x_, others[first + i], others_.data() + i * cols);
    pack_units(others_.data(), cols, here, cols, kWidth, panel);
    float found[kWidth];
    custom_->distances(custom_->metric, values_.data(), panel, cols, found);
    std::copy_n(found, here, keys + first);
  }
}

}  // namespace kith
