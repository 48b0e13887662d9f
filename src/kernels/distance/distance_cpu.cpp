// The lanes of a canonical sum are spread over vectors of doubles: 2 x 8 with AVX-512, 4 x 4 with AVX2, 8 x 2 with
// NEON. Lane j is the same lane everywhere, so the bits agree.
#include "kernels/distance/distance_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/distance_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kDoubles = hn::MaxLanes(F64());
constexpr int64_t kVectors = kCanonicalLanes / kDoubles;  // vectors that hold the 16 lanes

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
          if constexpr (kKind == KeyKind::l1) {
            lanes_[v] = hn::Add(lanes_[v], hn::Abs(hn::Sub(a, b)));
          } else if constexpr (kKind == KeyKind::linf) {
            const auto apart = hn::Abs(hn::Sub(a, b));
            lanes_[v] = hn::IfThenElse(hn::Or(hn::Gt(apart, lanes_[v]), hn::IsNaN(apart)), apart, lanes_[v]);
          } else if constexpr (kKind == KeyKind::chi_square) {
            const auto difference = hn::Sub(a, b);
            const auto total = hn::Add(a, b);
            const auto ratio = hn::Div(hn::Mul(difference, difference), total);
            lanes_[v] = hn::Add(lanes_[v], hn::IfThenZeroElse(hn::Eq(total, hn::Zero(F64())), ratio));
          } else if constexpr (kKind == KeyKind::inner_product) {
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
    return canonical_tree<kKind>(lanes);
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

// The bits that differ: whole numbers, so that no order of adding them matters.
void hamming_of_rows(const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows, int64_t count,
                     float* keys) {
  for (int64_t i = 0; i < count; ++i) {
    const auto* x = reinterpret_cast<const uint8_t*>(base.row(rows[i]));
    int64_t bits = 0;
    for (int64_t c = 0; c < base.cols(); ++c)
      bits += std::popcount(uint8_t(static_cast<uint8_t>(query.values[c]) ^ x[c]));
    keys[i] = static_cast<float>(bits);
  }
}

void CanonicalKeys(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                   int64_t count, float* keys) {
  visit_kind(kind, [&](auto tag) {
    if constexpr (tag.kind == KeyKind::hamming) {
      hamming_of_rows(query, base, rows, count, keys);
    } else {
      visit_dtype(base.dtype(), [&](auto stored) {
        keys_of_rows<tag.kind, typename decltype(stored)::type>(query, base, rows, count, keys);
      });
    }
  });
}

double CanonicalSquaredNorm(const float* row, int64_t cols) {
  return CanonicalSum<KeyKind::inner_product, float>().squared_norm(row, cols);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(CanonicalKeys);
HWY_EXPORT(CanonicalSquaredNorm);

void canonical_keys_cpu(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                        int64_t count, float* keys) {
  HWY_DYNAMIC_DISPATCH(CanonicalKeys)(kind, query, base, rows, count, keys);
}

double canonical_squared_norm_cpu(const float* row, int64_t cols) {
  return HWY_DYNAMIC_DISPATCH(CanonicalSquaredNorm)(row, cols);
}

}  // namespace kith
#endif
