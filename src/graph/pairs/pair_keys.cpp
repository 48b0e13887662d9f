#include "graph/pairs/pair_keys.hpp"

#include "rows/stored_row.hpp"

namespace kith {

void PairKeys::of(uint32_t row, const uint32_t* others, int64_t count, float* keys) {
  const float* values = values_.data();
  if (x_.dtype() == DType::f32) {
    values = reinterpret_cast<const float*>(x_.row(row));
  } else {
    widen_row(x_, row, values_.data());
  }
  CanonicalQuery query{values, 0};
  if (kind_ == KeyKind::cosine) {
    query.inverse_norm = canonical_inverse_norm(canonical_squared_norm_cpu(values, x_.cols()));
  }
  canonical_keys_cpu(kind_, query, x_, others, count, keys);
}

}  // namespace kith
