#include "kernels/distance/canonical_block.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/few_columns_block_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "kernels/distance/distance_tile_cpu-inl.hpp"
#include "kernels/panels/panel_packing.hpp"

#include <algorithm>
#include <type_traits>

#ifndef KITH_KERNELS_DISTANCE_FEW_COLUMNS_BLOCK_CPU_ONCE
#define KITH_KERNELS_DISTANCE_FEW_COLUMNS_BLOCK_CPU_ONCE
namespace kith {
namespace {

constexpr int64_t kWidenedRows = 64;  // side by side; a multiple of every vector

// Some rows side by side: column c of row i at c * kWidenedRows + i, zeros for rows and columns that there are not.
struct WidenedRows {
  alignas(64) double values[kCanonicalLanes * kWidenedRows];
  alignas(64) double inverses[kWidenedRows];  // of their norms, for cosine
};

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of kCols values, one after the other.
template <int kCols>
HWY_INLINE void widen_close(const float* from, double* to) {
  const hn::Rebind<float, F64> d;
  for (int64_t i = 0; i < kWidenedRows; i += kDoubles, from += kCols * kDoubles) {
    hn::Vec<decltype(d)> columns[4];
    if constexpr (kCols == 1) columns[0] = hn::LoadU(d, from);
    if constexpr (kCols == 2) hn::LoadInterleaved2(d, from, columns[0], columns[1]);
    if constexpr (kCols == 3) hn::LoadInterleaved3(d, from, columns[0], columns[1], columns[2]);
    if constexpr (kCols == 4) hn::LoadInterleaved4(d, from, columns[0], columns[1], columns[2], columns[3]);
#pragma GCC unroll 4
    for (int c = 0; c < kCols; ++c) hn::Store(hn::PromoteTo(F64(), columns[c]), F64(), to + c * kWidenedRows + i);
  }
}

void widen_floats(const float* from, int64_t stride, int64_t count, int64_t cols, double* to) {
  if (stride == cols && count == kWidenedRows) {
    if (cols == 1) return widen_close<1>(from, to);
    if (cols == 2) return widen_close<2>(from, to);
    if (cols == 3) return widen_close<3>(from, to);
    if (cols == 4) return widen_close<4>(from, to);
  }
  HWY_ALIGN float panel[kCanonicalLanes * kWidenedRows];
  pack_units(from, stride, count, cols, kWidenedRows, panel);
  for (int64_t i = 0; i < cols * kWidenedRows; i += kDoubles) {
    hn::Store(hn::PromoteTo(F64(), hn::Load(hn::Rebind<float, F64>(), panel + i)), F64(), to + i);
  }
}

void widen_rows(const MatrixView& rows, double* to) {
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    const auto* const from = static_cast<const T*>(rows.data());
    if constexpr (std::is_same_v<T, float>) {
      widen_floats(from, rows.row_stride(), rows.rows(), rows.cols(), to);
    } else {
      for (int64_t c = 0; c < rows.cols(); ++c) {
        double* const column = to + c * kWidenedRows;
        for (int64_t i = 0; i < rows.rows(); ++i) column[i] = static_cast<float>(from[i * rows.row_stride() + c]);
        std::fill(column + rows.rows(), column + kWidenedRows, 0.0);
      }
    }
  });
}

// Lanes kLane, kLane + kApart, ... of the canonical tree, of those below kLanes: term(lane).
template <int kLanes, int kLane = 0, int kApart = 1, typename Term>
HWY_INLINE Doubles tree_of(const Term& term) {
  if constexpr (kApart < kCanonicalLanes) {
    const Doubles some = tree_of<kLanes, kLane, 2 * kApart>(term);
    if constexpr (kLane + kApart >= kLanes) return some;
    return hn::Add(some, tree_of<kLanes, (kLane + kApart) % kCanonicalLanes, 2 * kApart>(term));
  }
  return term(kLane);
}

// Divides the rows by their norms. Columns that there are not stay zeros, whatever the norms: the next rows have them
// too.
template <int kLanes>
HWY_INLINE void normalise(WidenedRows& rows, int64_t cols) {
  for (int64_t i = 0; i < kWidenedRows; i += kDoubles) {
    double* const from = rows.values + i;
    const Doubles squared = tree_of<kLanes>([&](int lane) HWY_ATTR {
      const Doubles x = hn::Load(F64(), from + lane * kWidenedRows);
      return first_in_lane<KeyKind::inner_product>(x, x);
    });
    hn::Store(squared, F64(), rows.inverses + i);
    for (int64_t j = i; j < i + kDoubles; ++j) rows.inverses[j] = canonical_inverse_norm(rows.inverses[j]);
    const Doubles inverse = hn::Load(F64(), rows.inverses + i);
    for (int64_t c = 0; c < cols; ++c) {
      double* const at = from + c * kWidenedRows;
      hn::Store(hn::Mul(hn::Load(F64(), at), inverse), F64(), at);
    }
  }
}

template <KeyKind kKind, int kLanes>
HWY_INLINE void keys_of_query(const CanonicalQuery& query, int64_t cols, const WidenedRows& rows, float* keys) {
  constexpr KeyKind kTerm = has_differences(kKind) || kKind == KeyKind::cosine ? KeyKind::squared_l2 : kKind;
  double values[kLanes] = {};
  for (int64_t c = 0; c < cols; ++c) {
    values[c] = static_cast<double>(query.values[c]) * (kKind == KeyKind::cosine ? query.inverse_norm : 1.0);
  }
  Doubles q[kLanes];
#pragma GCC unroll 16
  for (int lane = 0; lane < kLanes; ++lane) q[lane] = hn::Set(F64(), values[lane]);
  for (int64_t i = 0; i < kWidenedRows; i += kDoubles) {
    const Doubles sum = tree_of<kLanes>([&](int lane) HWY_ATTR {
      return first_in_lane<kTerm>(q[lane], hn::Load(F64(), rows.values + lane * kWidenedRows + i));
    });
    const Doubles inverse = kKind == KeyKind::cosine ? hn::Load(F64(), rows.inverses + i) : hn::Zero(F64());
    hn::StoreU(key_of<kKind>(sum, inverse, query.inverse_norm), hn::Rebind<float, F64>(), keys + i);
  }
}

// Columns up to kLanes are filled up with zeros, which add nothing.
template <KeyKind kKind, int kLanes>
HWY_NOINLINE void run_few_columns(const CanonicalBlock& block) {
  const int64_t cols = block.rows.cols();
  WidenedRows rows;
  std::fill(rows.values + cols * kWidenedRows, rows.values + kLanes * kWidenedRows, 0.0);
  for (int64_t first = 0; first < block.rows.rows(); first += kWidenedRows) {
    const int64_t count = std::min(kWidenedRows, block.rows.rows() - first);
    widen_rows(block.rows.slice(first, count), rows.values);
    if constexpr (kKind == KeyKind::cosine) normalise<kLanes>(rows, cols);
    for (int64_t q = 0; q < block.query_count; ++q) {
      float* const keys = block.keys + q * block.stride + first;
      if (HWY_LIKELY(count == kWidenedRows)) {
        keys_of_query<kKind, kLanes>(block.queries[q], cols, rows, keys);
      } else {
        float some[kWidenedRows];
        keys_of_query<kKind, kLanes>(block.queries[q], cols, rows, some);
        std::copy_n(some, count, keys);
      }
    }
  }
}

void RunFewColumns(const CanonicalBlock& block) {
  const int64_t cols = block.rows.cols();
  visit_kind(block.kind, [&](auto tag) {
    if constexpr (has_short_sums(tag.kind)) {
      if (cols <= 2) return run_few_columns<tag.kind, 2>(block);
      if (cols <= 4) return run_few_columns<tag.kind, 4>(block);
      if (cols <= 8) return run_few_columns<tag.kind, 8>(block);
      run_few_columns<tag.kind, kCanonicalLanes>(block);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(RunFewColumns);

void few_columns_block_cpu(const CanonicalBlock& block) { HWY_DYNAMIC_DISPATCH(RunFewColumns)(block); }

}  // namespace kith
#endif
