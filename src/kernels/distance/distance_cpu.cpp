// The lanes of a canonical sum are spread over vectors of doubles: 2 x 8 with AVX-512, 4 x 4 with AVX2, 8 x 2 with
// NEON. Lane j is the same lane everywhere, so the bits agree. The fast scan takes four rows at a time, which hides the
// latency of the additions and loads each query value once.
#include "kernels/distance/distance_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/distance_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32 = hn::ScalableTag<float>;
constexpr int64_t kDoubles = hn::MaxLanes(F64());
constexpr int64_t kFloats = hn::MaxLanes(F32());
constexpr int64_t kVectors = kCanonicalLanes / kDoubles;  // vectors that hold the 16 lanes

HWY_INLINE hn::Vec<F64> load_doubles(const float* from) {
  return hn::PromoteTo(F64(), hn::LoadU(hn::Rebind<float, F64>(), from));
}
HWY_INLINE hn::Vec<F64> load_doubles(const uint8_t* from) {
  const auto bytes = hn::LoadU(hn::Rebind<uint8_t, F64>(), from);
  return hn::PromoteTo(F64(), hn::PromoteTo(hn::Rebind<int32_t, F64>(), bytes));
}
HWY_INLINE hn::Vec<F32> load_floats(const float* from) { return hn::LoadU(F32(), from); }
HWY_INLINE hn::Vec<F32> load_floats(const uint8_t* from) {
  const auto bytes = hn::LoadU(hn::Rebind<uint8_t, F32>(), from);
  return hn::ConvertTo(F32(), hn::PromoteTo(hn::Rebind<int32_t, F32>(), bytes));
}

// a * b + c with one rounding, also where the instruction set has no such instruction.
HWY_INLINE hn::Vec<F64> fused(hn::Vec<F64> a, hn::Vec<F64> b, hn::Vec<F64> c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  HWY_ALIGN double x[kDoubles], y[kDoubles], z[kDoubles];
  hn::Store(a, F64(), x);
  hn::Store(b, F64(), y);
  hn::Store(c, F64(), z);
  for (int64_t i = 0; i < kDoubles; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(F64(), z);
#endif
}

template <KeyKind kKind, typename T>
class CanonicalSum {
 public:
  HWY_INLINE CanonicalSum() {
    for (auto& lanes : lanes_) lanes = hn::Zero(F64());
  }

  // The squared norm of x, for the same lanes.
  HWY_INLINE double squared_norm(const T* x, int64_t cols) {
    return sum(
        cols, [&](int64_t at) HWY_ATTR { return x + at; },
        [&](const T* from, int64_t, int64_t v) HWY_ATTR {
          const auto value = load_doubles(from + v * kDoubles);
          lanes_[v] = fused(value, value, lanes_[v]);
        });
  }

  HWY_INLINE double pair(const float* q, const T* x, int64_t cols, double inverse_q, double inverse_x) {
    const auto iq = hn::Set(F64(), inverse_q);
    const auto ix = hn::Set(F64(), inverse_x);
    HWY_ALIGN float q_tail[kCanonicalLanes] = {};
    const int64_t whole = cols / kCanonicalLanes * kCanonicalLanes;
    std::copy(q + whole, q + cols, q_tail);
    return sum(
        cols, [&](int64_t at) HWY_ATTR { return x + at; },
        [&](const T* from, int64_t at, int64_t v) HWY_ATTR {
          const auto a = load_doubles((at == whole ? q_tail : q + at) + v * kDoubles);
          const auto b = load_doubles(from + v * kDoubles);
          if constexpr (kKind == KeyKind::inner_product) {
            lanes_[v] = fused(a, b, lanes_[v]);
          } else if constexpr (kKind == KeyKind::cosine) {
            const auto difference = hn::Sub(hn::Mul(a, iq), hn::Mul(b, ix));
            lanes_[v] = fused(difference, difference, lanes_[v]);
          } else {
            const auto difference = hn::Sub(a, b);
            lanes_[v] = fused(difference, difference, lanes_[v]);
          }
        });
  }

 private:
  // Calls step(pointer, column, vector) for each slab of 16 columns; the last, partial one is padded with zeros.
  template <typename At, typename Step>
  HWY_INLINE double sum(int64_t cols, const At& at_column, const Step& step) {
    int64_t at = 0;
    for (; at + kCanonicalLanes <= cols; at += kCanonicalLanes) {
      const T* from = at_column(at);
      for (int64_t v = 0; v < kVectors; ++v) step(from, at, v);
    }
    if (at < cols) {
      HWY_ALIGN T tail[kCanonicalLanes] = {};
      std::copy(at_column(at), at_column(at) + (cols - at), tail);
      for (int64_t v = 0; v < kVectors; ++v) step(tail, at, v);
    }
    HWY_ALIGN double lanes[kCanonicalLanes];
    for (int64_t v = 0; v < kVectors; ++v) hn::Store(lanes_[v], F64(), lanes + v * kDoubles);
    return canonical_tree(lanes);
  }

  hn::Vec<F64> lanes_[kVectors];
};

template <KeyKind kKind, typename T>
void keys_of_rows(const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows, int64_t count,
                  float* keys) {
  const int64_t cols = base.cols();
  const int64_t row_bytes = cols * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    // The rows lie anywhere: those to come are asked for while this one is summed.
    const std::byte* ahead = base.row(rows[std::min(i + 4, count - 1)]);
    for (int64_t at = 0; at < std::min<int64_t>(row_bytes, 2048); at += 64) __builtin_prefetch(ahead + at);
    const T* x = reinterpret_cast<const T*>(base.row(rows[i]));
    double inverse_x = 0;
    if constexpr (kKind == KeyKind::cosine) {
      inverse_x = canonical_inverse_norm(CanonicalSum<kKind, T>().squared_norm(x, cols));
    }
    const double sum = CanonicalSum<kKind, T>().pair(query.values, x, cols, query.inverse_norm, inverse_x);
    keys[i] = canonical_key<kKind>(sum, query.inverse_norm, inverse_x);
  }
}

template <typename T>
void keys_of_type(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                  int64_t count, float* keys) {
  switch (kind) {
    case KeyKind::l2: return keys_of_rows<KeyKind::l2, T>(query, base, rows, count, keys);
    case KeyKind::squared_l2: return keys_of_rows<KeyKind::squared_l2, T>(query, base, rows, count, keys);
    case KeyKind::inner_product: return keys_of_rows<KeyKind::inner_product, T>(query, base, rows, count, keys);
    case KeyKind::cosine: return keys_of_rows<KeyKind::cosine, T>(query, base, rows, count, keys);
  }
}

void CanonicalKeys(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                   int64_t count, float* keys) {
  if (base.dtype() == DType::u8) {
    keys_of_type<uint8_t>(kind, query, base, rows, count, keys);
  } else {
    keys_of_type<float>(kind, query, base, rows, count, keys);
  }
}

double CanonicalSquaredNorm(const float* row, int64_t cols) {
  return CanonicalSum<KeyKind::inner_product, float>().squared_norm(row, cols);
}

// One step of the fast scan: a vector of columns of one row.
template <bool kDifference>
HWY_INLINE void accumulate(hn::Vec<F32> q, hn::Vec<F32> x, hn::Vec<F32>& value, hn::Vec<F32>& norm) {
  if constexpr (kDifference) {
    const auto difference = hn::Sub(q, x);
    value = hn::MulAdd(difference, difference, value);
  } else {
    value = hn::MulAdd(q, x, value);
    norm = hn::MulAdd(x, x, norm);
  }
}

template <bool kDifference, int kRows, typename T>
HWY_INLINE void scan_group(const float* query, const T* first, int64_t stride, int64_t cols, float* values,
                           float* norms) {
  hn::Vec<F32> value[kRows];
  hn::Vec<F32> norm[kRows];
  for (int r = 0; r < kRows; ++r) {
    value[r] = hn::Zero(F32());
    norm[r] = hn::Zero(F32());
  }
  int64_t at = 0;
  for (; at + kFloats <= cols; at += kFloats) {
    const auto q = load_floats(query + at);
    for (int r = 0; r < kRows; ++r) accumulate<kDifference>(q, load_floats(first + r * stride + at), value[r], norm[r]);
  }
  if (at < cols) {
    HWY_ALIGN float q_tail[kFloats] = {};
    std::copy(query + at, query + cols, q_tail);
    const auto q = load_floats(q_tail);
    for (int r = 0; r < kRows; ++r) {
      HWY_ALIGN T tail[kFloats] = {};
      std::copy(first + r * stride + at, first + r * stride + cols, tail);
      accumulate<kDifference>(q, load_floats(tail), value[r], norm[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    values[r] = hn::GetLane(hn::SumOfLanes(F32(), value[r]));
    if constexpr (!kDifference) norms[r] = hn::GetLane(hn::SumOfLanes(F32(), norm[r]));
  }
}

template <bool kDifference, typename T>
void scan_type(const float* query, const MatrixView& base, float* values, float* norms) {
  const T* rows = static_cast<const T*>(base.data());
  const int64_t stride = base.row_stride();
  int64_t i = 0;
  for (; i + 4 <= base.rows(); i += 4) {
    scan_group<kDifference, 4>(query, rows + i * stride, stride, base.cols(), values + i,
                               kDifference ? nullptr : norms + i);
  }
  for (; i < base.rows(); ++i) {
    scan_group<kDifference, 1>(query, rows + i * stride, stride, base.cols(), values + i,
                               kDifference ? nullptr : norms + i);
  }
}

void ScanRows(KeyKind kind, const float* query, const MatrixView& base, float* values, float* norms) {
  const bool difference = has_differences(kind);
  if (base.dtype() == DType::u8) {
    difference ? scan_type<true, uint8_t>(query, base, values, norms)
               : scan_type<false, uint8_t>(query, base, values, norms);
  } else {
    difference ? scan_type<true, float>(query, base, values, norms)
               : scan_type<false, float>(query, base, values, norms);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(CanonicalKeys);
HWY_EXPORT(CanonicalSquaredNorm);
HWY_EXPORT(ScanRows);

void canonical_keys_cpu(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                        int64_t count, float* keys) {
  HWY_DYNAMIC_DISPATCH(CanonicalKeys)(kind, query, base, rows, count, keys);
}

double canonical_squared_norm_cpu(const float* row, int64_t cols) {
  return HWY_DYNAMIC_DISPATCH(CanonicalSquaredNorm)(row, cols);
}

void scan_rows_cpu(KeyKind kind, const float* query, const MatrixView& base, float* values, float* squared_norms) {
  HWY_DYNAMIC_DISPATCH(ScanRows)(kind, query, base, values, squared_norms);
}

void widen_row(const MatrixView& view, int64_t i, float* out) {
  if (view.dtype() == DType::u8) {
    const uint8_t* row = reinterpret_cast<const uint8_t*>(view.row(i));
    for (int64_t c = 0; c < view.cols(); ++c) out[c] = static_cast<float>(row[c]);
  } else {
    std::memcpy(out, view.row(i), static_cast<size_t>(view.cols()) * sizeof(float));
  }
}

bool row_is_finite(const MatrixView& view, int64_t i) {
  if (view.dtype() == DType::u8) return true;
  const float* row = reinterpret_cast<const float*>(view.row(i));
  return std::all_of(row, row + view.cols(), [](float value) { return std::isfinite(value); });
}

}  // namespace kith
#endif
