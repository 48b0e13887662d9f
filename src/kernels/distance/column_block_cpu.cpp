// Keys of blocks with rows side by side, column after column (distance_block_cpu.hpp): rows of up to 16 columns, and
// the largest differences.
#include "kernels/distance/distance_block_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/column_block_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "core/slot.hpp"
#include "kernels/distance/distance_tile_cpu-inl.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <type_traits>

#ifndef KITH_KERNELS_DISTANCE_COLUMN_BLOCK_CPU_ONCE
#define KITH_KERNELS_DISTANCE_COLUMN_BLOCK_CPU_ONCE
namespace kith {
namespace {

constexpr int64_t kWidenedRows = 64;  // a multiple of every vector length

// Transposed rows: column c of row i is at c * kWidenedRows + i; missing rows and columns are zero.
struct WidenedRows {
  alignas(64) double values[kCanonicalLanes * kWidenedRows];
  alignas(64) double inverses[kWidenedRows];  // inverse norms, for cosine
};

constexpr int64_t kPanelRows = 64;  // a multiple of every tile's
constexpr int64_t kLinfQueries = 4;
constexpr int64_t kLinfColumns = 1024;  // packed at a time

// A slab of columns of a panel's rows.
struct LinfPanelPlace {
  const float* panel;
  int64_t first_row;
  int64_t rows;
  int64_t first_col;
  int64_t cols;
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
  visit_dtype(rows.dtype(), [&]<typename T>(StoredAs<T>) {
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

// Scales the rows to length 1. Padding columns stay zero whatever the norms, since the next rows rely on them.
//
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

// Pads with zero columns up to kLanes; they add nothing.
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

constexpr int64_t kWide = hn::MaxLanes(F32());
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kLinfVectors = 4;
#else
constexpr int kLinfVectors = 2;
#endif
constexpr int64_t kLinfRows = kLinfVectors * kWide;
static_assert(kPanelRows % kLinfRows == 0);

using Magnitude = hn::Vec<hn::RebindToSigned<F32>>;

// kLinfRows rows of a panel, from `panel` on, against a group of queries, padded by repeating the last one.
void linf_tile(const float* const (&queries)[kLinfQueries], const float* panel, int64_t cols,
               Magnitude (&largest)[kLinfQueries][kLinfVectors]) {
  const F32 d;
  const hn::RebindToSigned<F32> bits;
  Magnitude found[kLinfQueries][kLinfVectors];
#pragma GCC unroll 4
  for (int q = 0; q < kLinfQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kLinfVectors; ++v) found[q][v] = hn::Zero(bits);
  }
  for (int64_t c = 0; c < cols; ++c) {
    hn::Vec<F32> x[kLinfVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kLinfVectors; ++v) x[v] = hn::LoadU(d, panel + c * kPanelRows + v * kWide);
#pragma GCC unroll 4
    for (int q = 0; q < kLinfQueries; ++q) {
      const auto value = hn::Set(d, queries[q][c]);
#pragma GCC unroll 4
      for (int v = 0; v < kLinfVectors; ++v) {
        found[q][v] = hn::Max(found[q][v], hn::BitCast(bits, hn::Abs(hn::Sub(value, x[v]))));
      }
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kLinfQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kLinfVectors; ++v) largest[q][v] = found[q][v];
  }
}

// All queries against the rows of a panel. The block already holds the maxima over earlier columns.
void LinfPanel(const CanonicalBlock& block, const LinfPanelPlace& place) {
  const F32 d;
  const hn::RebindToSigned<F32> bits;
  for (int64_t first = 0; first < block.query_count; first += kLinfQueries) {
    const float* queries[kLinfQueries];
    for (int64_t q = 0; q < kLinfQueries; ++q) {
      queries[q] = block.queries[std::min(first + q, block.query_count - 1)].values + place.first_col;
    }
    const int64_t query_count = std::min(kLinfQueries, block.query_count - first);
    for (int64_t tile = 0; tile < place.rows; tile += kLinfRows) {
      Magnitude largest[kLinfQueries][kLinfVectors];
      linf_tile(queries, place.panel + tile, place.cols, largest);
      for (int64_t q = 0; q < query_count; ++q) {
        float* const keys = block.keys + (first + q) * block.stride + place.first_row + tile;
        for (int v = 0; v < kLinfVectors; ++v) {
          const int64_t left = std::min(place.rows - tile - v * kWide, kWide);
          if (left <= 0) break;
          HWY_ALIGN float some[kWide] = {};
          float* const to = left == kWide ? keys + v * kWide : some;
          if (place.first_col > 0) {
            if (to == some) std::copy_n(keys + v * kWide, left, some);
            largest[q][v] = hn::Max(largest[q][v], hn::BitCast(bits, hn::LoadU(d, to)));
          }
          hn::StoreU(hn::BitCast(d, largest[q][v]), d, to);
          if (to == some) std::copy_n(some, left, keys + v * kWide);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(RunFewColumns);
HWY_EXPORT(LinfPanel);

void few_columns_block_cpu(const CanonicalBlock& block) { HWY_DYNAMIC_DISPATCH(RunFewColumns)(block); }

// Scratch: a panel, and a slab of one widened row.
int64_t linf_block_bytes(int64_t cols) {
  return (kPanelRows + 1) * std::min(cols, kLinfColumns) * static_cast<int64_t>(sizeof(float));
}

void linf_block_cpu(const CanonicalBlock& block, std::byte* memory) {
  float* const scratch = Slot<float>{}.in(memory);
  const MatrixView& all = block.rows;
  for (int64_t col = 0; col < all.cols(); col += kLinfColumns) {
    const int64_t cols = std::min(kLinfColumns, all.cols() - col);
    float* const widened = scratch + kPanelRows * cols;
    for (int64_t first = 0; first < all.rows(); first += kPanelRows) {
      const int64_t count = std::min(kPanelRows, all.rows() - first);
      const MatrixView rows(all.row(first) + col * size_of(all.dtype()), all.dtype(), {count, cols, all.row_stride()},
                            all.space());
      if (rows.dtype() == DType::f32) {
        pack_units(static_cast<const float*>(rows.data()), rows.row_stride(), count, cols, kPanelRows, scratch);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          widen_row(rows, i, widened);
          for (int64_t c = 0; c < cols; ++c) scratch[c * kPanelRows + i] = widened[c];
        }
      }
      HWY_DYNAMIC_DISPATCH(LinfPanel)(block, {scratch, first, count, col, cols});
    }
  }
}

}  // namespace kith
#endif
