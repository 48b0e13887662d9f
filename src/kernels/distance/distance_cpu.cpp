// The lanes of a canonical sum are spread over vectors of doubles: 2 x 8 with AVX-512, 4 x 4 with AVX2, 8 x 2 with
// NEON. Lane j is the same lane everywhere, so the bits agree. Several rows are summed side by side, so that one's
// additions do not wait for another's.
#include "kernels/distance/distance_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/distance_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "core/typed_row.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kVectors = kCanonicalLanes / kDoubles;  // registers for the 16 lanes
[[maybe_unused]] constexpr int64_t kFloats = hn::MaxLanes(F32());
// Rows summed at the same time, limited by the registers for their lanes.
#if HWY_TARGET <= HWY_AVX3
constexpr int kSideBySide = 4;
#elif HWY_TARGET == HWY_AVX2 || HWY_ARCH_ARM_A64
constexpr int kSideBySide = 2;
#else
constexpr int kSideBySide = 1;
#endif

// Loads the next 16 elements, one per lane.
using Slab = Doubles[kVectors];

template <typename T>
HWY_INLINE void load_slab(const T* from, Slab& slab) {
#pragma GCC unroll 16
  for (int64_t v = 0; v < kVectors; ++v) slab[v] = load_doubles(from + v * kDoubles);
}

// Loads `count` < 16 elements, padded with zeros. Reads nothing past them.
template <typename T>
HWY_INLINE void load_tail(const T* from, int64_t count, Slab& slab) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<T, float>) {
    const hn::Rebind<float, F64> d;
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t here = std::clamp<int64_t>(count - v * kDoubles, 0, kDoubles);
      const auto mask = hn::FirstN(d, static_cast<size_t>(here));
      slab[v] = hn::PromoteTo(F64(), hn::MaskedLoad(mask, d, from + v * kDoubles));
    }
    return;
  }
#elif HWY_ARCH_ARM_A64
  if constexpr (std::is_same_v<T, float>) {  // masked loads: loading what was just stored in parts stalls
    const hn::Rebind<float, F64> d;
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) {
      slab[v] = hn::Zero(F64());
      if (count >= (v + 1) * kDoubles) {
        slab[v] = load_doubles(from + v * kDoubles);
      } else if (count > v * kDoubles) {
        slab[v] = hn::PromoteTo(F64(), hn::IfThenElseZero(hn::FirstN(d, 1), hn::Set(d, from[v * kDoubles])));
      }
    }
    return;
  }
#endif
  HWY_ALIGN T tail[kCanonicalLanes] = {};
  // Copies in at most four pieces of fixed length, which beats a call of memcpy.
  int64_t at = 0;
  for (const int64_t piece : {8, 4, 2, 1}) {
    if ((count & piece) == 0) continue;
    for (int64_t i = 0; i < piece; ++i) tail[at + i] = from[at + i];
    at += piece;
  }
  load_slab(tail, slab);
}

// Reduces a vector of lanes by halves.
template <KeyKind kKind, typename D>
HWY_INLINE double join_halves(D, hn::Vec<D> lanes) {
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return join_halves<kKind>(half, join_lanes<kKind>(half, hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
  return hn::GetLane(lanes);
}

// canonical_tree, unrolled: a loop of unknown length would keep the lanes in memory.
template <KeyKind kKind, int64_t kCount = kVectors>
HWY_INLINE double join_all(Doubles (&lanes)[kVectors]) {
  if constexpr (kCount == 1) {
    return join_halves<kKind>(F64(), lanes[0]);
  } else {
#pragma GCC unroll 8
    for (int64_t v = 0; v < kCount / 2; ++v) lanes[v] = join_lanes<kKind>(F64(), lanes[v], lanes[v + kCount / 2]);
    return join_all<kKind, kCount / 2>(lanes);
  }
}

// Sums of kRows rows, slab after slab: lanes = step(lanes, row, query's elements, row's elements). The query's are
// of(column), or for a last slab that is not whole tail_of(column, slab). Vector by vector, or else a slab's elements
// take the registers of the sums.
template <KeyKind kKind, int kRows, typename T, typename Of, typename TailOf, typename Step>
HWY_INLINE void sum_rows(const T* const (&rows)[kRows], int64_t cols, double (&sums)[kRows], const Of& of,
                         const TailOf& tail_of, const Step& step) {
  Doubles lanes[kRows][kVectors];
  const T* from[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    from[r] = rows[r];
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) lanes[r][v] = hn::Zero(F64());
  }
  int64_t at = 0;
  for (; at + kCanonicalLanes <= cols; at += kCanonicalLanes) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) {
      const Doubles q = of(at + v * kDoubles);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        lanes[r][v] = step(lanes[r][v], r, q, load_doubles(from[r] + at + v * kDoubles));
      }
#if HWY_ARCH_ARM_A64
      __asm__ volatile("" ::: "memory");  // keeps the order of loads
#endif
    }
  }
  if (at < cols) {
    Slab q;
    tail_of(at, q);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      Slab x;
      load_tail(rows[r] + at, cols - at, x);
#pragma GCC unroll 16
      for (int64_t v = 0; v < kVectors; ++v) lanes[r][v] = step(lanes[r][v], r, q[v], x[v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r] = join_all<kKind>(lanes[r]);
}

template <int kRows, typename T>
HWY_INLINE void squared_norms(const T* const (&rows)[kRows], int64_t cols, double (&sums)[kRows]) {
  const auto nothing = [](int64_t) HWY_ATTR { return hn::Zero(F64()); };
  const auto none = [](int64_t, Slab& slab) HWY_ATTR {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) slab[v] = hn::Zero(F64());
  };
  const auto square = [](Doubles lanes, int, Doubles, Doubles x) HWY_ATTR { return fused(x, x, lanes); };
  sum_rows<KeyKind::inner_product>(rows, cols, sums, nothing, none, square);
}

// `wide`: the query's values as doubles, up to the last whole slab, or null.
template <KeyKind kKind, int kRows, typename T>
HWY_INLINE void keys_of_group(const CanonicalQuery& query, const double* wide, const T* const (&rows)[kRows],
                              int64_t cols, float* keys) {
  double inverses[kRows] = {};
  if constexpr (kKind == KeyKind::cosine) {
    squared_norms(rows, cols, inverses);
    for (double& inverse : inverses) inverse = canonical_inverse_norm(inverse);
  }
  double sums[kRows];
  const auto scaled = [&](Doubles q) HWY_ATTR {
    return kKind == KeyKind::cosine ? hn::Mul(q, hn::Set(F64(), query.inverse_norm)) : q;
  };
  const float* const values = query.values;
  sum_rows<kKind>(
      rows, cols, sums,
      [&](int64_t c)
          HWY_ATTR { return scaled(wide != nullptr ? hn::LoadU(F64(), wide + c) : load_doubles(values + c)); },
      [&](int64_t c, Slab& tail) HWY_ATTR {
        load_tail(values + c, cols - c, tail);
#pragma GCC unroll 16
        for (int64_t v = 0; v < kVectors; ++v) tail[v] = scaled(tail[v]);
      },
      [&](Doubles lanes, int r, Doubles q, Doubles x) HWY_ATTR {
        const Doubles value = kKind == KeyKind::cosine ? hn::Mul(x, hn::Set(F64(), inverses[r])) : x;
        return step_lanes<kKind>(lanes, q, value);
      });
  for (int r = 0; r < kRows; ++r) keys[r] = canonical_key<kKind>(sums[r], query.inverse_norm, inverses[r]);
}

#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
// Rows of up to 16 values in kCount vectors, `last` of them in the last vector. Each lane has one term, and lanes
// without a column are skipped in the tree, since they add nothing.
template <int kCount, typename T>
HWY_INLINE void load_short(const T* from, int64_t last, Doubles (&x)[kCount]) {
  const hn::Rebind<float, F64> d;
#pragma GCC unroll 8
  for (int v = 0; v + 1 < kCount; ++v) x[v] = load_doubles(from + v * kDoubles);
  from += (kCount - 1) * kDoubles;
#if HWY_ARCH_ARM_A64
  static_assert(kDoubles == 2);
  const auto one = hn::IfThenElseZero(hn::FirstN(d, 1), hn::Set(d, static_cast<float>(*from)));
  x[kCount - 1] = last == 1 ? hn::PromoteTo(F64(), one) : load_doubles(from);
#else
  x[kCount - 1] = hn::PromoteTo(F64(), hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(last)), d, from));
#endif
}

template <KeyKind kKind, int kCount>
HWY_INLINE double join_short(Doubles (&lanes)[kCount]) {
#pragma GCC unroll 4
  for (int half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int v = 0; v < half; ++v) {
      if (v + half < kCount) lanes[v] = join_lanes<kKind>(F64(), lanes[v], lanes[v + half]);
    }
  }
  return join_halves<kKind>(F64(), lanes[0]);
}

template <KeyKind kKind, int kCount, typename T>
HWY_NOINLINE void keys_of_short_rows(const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                                     int64_t count, float* keys) {
  const int64_t last = base.cols() - (kCount - 1) * kDoubles;
  const auto* const first = static_cast<const T*>(base.data());
  const int64_t stride = base.row_stride();
  Doubles q[kCount];
  load_short<kCount>(query.values, last, q);
  if constexpr (kKind == KeyKind::cosine) {
    for (Doubles& values : q) values = hn::Mul(values, hn::Set(F64(), query.inverse_norm));
  }
  for (int64_t i = 0; i < count; ++i) {
    Doubles x[kCount];
    load_short<kCount>(first + int64_t{rows[i]} * stride, last, x);
    Doubles lanes[kCount];
    double inverse = 0;
    if constexpr (kKind == KeyKind::cosine) {
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) lanes[v] = fused(x[v], x[v], hn::Zero(F64()));
      inverse = canonical_inverse_norm(join_short<KeyKind::inner_product, kCount>(lanes));
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) x[v] = hn::Mul(x[v], hn::Set(F64(), inverse));
    }
#pragma GCC unroll 8
    for (int v = 0; v < kCount; ++v) lanes[v] = step_lanes<kKind>(hn::Zero(F64()), q[v], x[v]);
    keys[i] = canonical_key<kKind>(join_short<kKind, kCount>(lanes), query.inverse_norm, inverse);
  }
}

template <KeyKind kKind, typename T, int kCount = 1>
HWY_INLINE void keys_of_short(const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows, int64_t count,
                              float* keys) {
  if constexpr (kCount < kVectors) {
    if (base.cols() > kCount * kDoubles) return keys_of_short<kKind, T, kCount + 1>(query, base, rows, count, keys);
  }
  keys_of_short_rows<kKind, kCount, T>(query, base, rows, count, keys);
}
#endif

template <KeyKind kKind, typename T>
void keys_of_rows(const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows, int64_t count,
                  float* keys) {
  if constexpr (kKind == KeyKind::cosine) {
    if (query.inverse_norm == 0.0) {  // the key of a zero vector
      std::fill_n(keys, count, 1.0f);
      return;
    }
  }
  const int64_t cols = base.cols();
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
  if constexpr (std::is_same_v<T, float> || (HWY_ARCH_ARM_A64 && std::is_same_v<T, uint8_t>)) {
    // Cosine needs the norms of the rows first: beyond half the lanes, the transposed form is faster.
    constexpr int64_t kMost = kKind == KeyKind::cosine ? kCanonicalLanes / 2 : kCanonicalLanes;
    if (cols > 0 && cols <= kMost) return keys_of_short<kKind, T>(query, base, rows, count, keys);
  }
#endif
  constexpr int64_t kLine = 64 / sizeof(T);  // values of a cache line
  const int64_t ahead_cols = std::min(cols, 32 * kLine);
  const T* const first = static_cast<const T*>(base.data());
  const int64_t stride = base.row_stride();
  const auto row = [&](int64_t i) HWY_ATTR { return first + int64_t{rows[i]} * stride; };
  // Rows are at arbitrary addresses: prefetches the next ones while these are summed.
  const auto prefetch = [&](int64_t i) HWY_ATTR {
    const T* const ahead = row(std::min(i, count - 1));
    for (int64_t at = 0; at < ahead_cols; at += kLine) __builtin_prefetch(ahead + at);
  };
  // Widening the query once pays off for several rows.
  constexpr int64_t kMostWidened = 2048;
  HWY_ALIGN double widened[kMostWidened];
  const bool widens = HWY_ARCH_ARM_A64 && count >= 4 * kSideBySide && cols >= kCanonicalLanes && cols <= kMostWidened;
  for (int64_t c = 0; widens && c + kDoubles <= cols; c += kDoubles) {
    hn::Store(load_doubles(query.values + c), F64(), widened + c);
  }
  const double* const wide = widens ? widened : nullptr;
  int64_t i = 0;
#if HWY_ARCH_ARM_A64
  // Two values at a time take as long to widen as to add up: rows that are looked at twice are widened first, by whole
  // vectors.
  if constexpr (kKind == KeyKind::cosine && !std::is_same_v<T, float>) {
    HWY_ALIGN float copies[kSideBySide][kMostWidened];
    for (; cols >= kCanonicalLanes && cols <= kMostWidened && i + kSideBySide <= count; i += kSideBySide) {
      const float* group[kSideBySide];
      for (int r = 0; r < kSideBySide; ++r) {
        const T* const from = row(i + r);
        prefetch(i + r + 4);
        int64_t c = 0;
        for (; c + kFloats <= cols; c += kFloats) hn::StoreU(load_floats(from + c), F32(), copies[r] + c);
        for (; c < cols; ++c) copies[r][c] = static_cast<float>(from[c]);
        group[r] = copies[r];
      }
      keys_of_group<kKind, kSideBySide>(query, wide, group, cols, keys + i);
    }
  }
#endif
  for (; i + kSideBySide <= count; i += kSideBySide) {
    const T* group[kSideBySide];
    for (int r = 0; r < kSideBySide; ++r) {
      group[r] = row(i + r);
      prefetch(i + r + 4);
    }
    keys_of_group<kKind, kSideBySide>(query, wide, group, cols, keys + i);
  }
  for (; i < count; ++i) {
    const T* const one[] = {row(i)};
    keys_of_group<kKind, 1>(query, wide, one, cols, keys + i);
  }
}

// The number of differing bits in `count` bytes.
HWY_INLINE int64_t differing_bits_of(const uint8_t* a, const uint8_t* b, int64_t count) {
  int64_t bits = 0;
  int64_t c = 0;
  for (; c + 8 <= count; c += 8) {
    uint64_t left, right;
    std::memcpy(&left, a + c, 8);
    std::memcpy(&right, b + c, 8);
    bits += __builtin_popcountll(left ^ right);
  }
  for (; c < count; ++c) bits += differing_bits(a[c], b[c]);
  return bits;
}

// The bits that differ: whole numbers, so that no order of adding them matters. The query's bytes are made once for
// some columns and rows.
void hamming_of_rows(const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows, int64_t count,
                     float* keys) {
  constexpr int64_t kCols = 1024;
  constexpr int64_t kRows = 128;
  HWY_ALIGN uint8_t bytes[kCols];
  int64_t bits[kRows];
  for (int64_t first = 0; first < count; first += kRows) {
    const int64_t end = std::min(kRows, count - first);
    std::fill_n(bits, end, int64_t{0});
    for (int64_t at = 0; at < base.cols(); at += kCols) {
      const int64_t cols = std::min(kCols, base.cols() - at);
      for (int64_t c = 0; c < cols; ++c) bytes[c] = static_cast<uint8_t>(query.values[at + c]);
      for (int64_t i = 0; i < end; ++i) {
        bits[i] += differing_bits_of(bytes, typed_row<uint8_t>(base, rows[first + i]) + at, cols);
      }
    }
    for (int64_t i = 0; i < end; ++i) keys[first + i] = static_cast<float>(bits[i]);
  }
}

void CanonicalProducts(const float* query, const float* rows, int64_t count, int64_t cols, double* products) {
  for (int64_t i = 0; i < count; ++i) {
    const float* const one[] = {rows + i * cols};
    double sum[1];
    sum_rows<KeyKind::inner_product>(
        one, cols, sum, [&](int64_t c) HWY_ATTR { return load_doubles(query + c); },
        [&](int64_t c, Slab& tail) HWY_ATTR { load_tail(query + c, cols - c, tail); },
        [&](Doubles lanes, int, Doubles q, Doubles x)
            HWY_ATTR { return step_lanes<KeyKind::inner_product>(lanes, q, x); });
    products[i] = sum[0];
  }
}

void CanonicalKeys(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                   int64_t count, float* keys) {
  visit_kind(kind, [&](auto tag) {
    if constexpr (tag.kind == KeyKind::hamming) {
      hamming_of_rows(query, base, rows, count, keys);
    } else {
      visit_dtype(base.dtype(),
                  [&]<typename T>(StoredAs<T>) { keys_of_rows<tag.kind, T>(query, base, rows, count, keys); });
    }
  });
}

template <int kRows, typename T>
HWY_INLINE void inverse_norms(const MatrixView& rows, int64_t first, double* out) {
  const T* from[kRows];
  for (int r = 0; r < kRows; ++r) from[r] = typed_row<T>(rows, first + r);
  double sums[kRows];
  squared_norms(from, rows.cols(), sums);
  for (int r = 0; r < kRows; ++r) out[first + r] = canonical_inverse_norm(sums[r]);
}

void CanonicalInverseNorms(const MatrixView& rows, double* inverses) {
  visit_dtype(rows.dtype(), [&]<typename T>(StoredAs<T>) {
    int64_t i = 0;
    for (; i + kSideBySide <= rows.rows(); i += kSideBySide) inverse_norms<kSideBySide, T>(rows, i, inverses);
    for (; i < rows.rows(); ++i) inverse_norms<1, T>(rows, i, inverses);
  });
}

double CanonicalSquaredNorm(const float* row, int64_t cols) {
  const float* const one[] = {row};
  double sums[1];
  squared_norms(one, cols, sums);
  return sums[0];
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(CanonicalKeys);
HWY_EXPORT(CanonicalProducts);
HWY_EXPORT(CanonicalInverseNorms);
HWY_EXPORT(CanonicalSquaredNorm);

void canonical_keys_cpu(KeyKind kind, const CanonicalQuery& query, const MatrixView& base, const uint32_t* rows,
                        int64_t count, float* keys) {
  HWY_DYNAMIC_DISPATCH(CanonicalKeys)(kind, query, base, rows, count, keys);
}

void canonical_products_cpu(const float* query, const float* rows, int64_t count, int64_t cols, double* products) {
  HWY_DYNAMIC_DISPATCH(CanonicalProducts)(query, rows, count, cols, products);
}

void canonical_inverse_norms_cpu(const MatrixView& rows, double* inverses) {
  HWY_DYNAMIC_DISPATCH(CanonicalInverseNorms)(rows, inverses);
}

double canonical_squared_norm_cpu(const float* row, int64_t cols) {
  return HWY_DYNAMIC_DISPATCH(CanonicalSquaredNorm)(row, cols);
}

}  // namespace kith
#endif
