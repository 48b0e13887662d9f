#include "kernels/panels/panel_product.hpp"

#include "kernels/panels/instruction_family.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels/panel_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kFloats = hn::MaxLanes(F32());

// The tile fills the registers: sums, one vector for each group of rows, and the query values. With 32 registers
// 8 x 3 vectors of sums, with 16 registers 6 x 2.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kQueries = 8;
constexpr int kVectors = 3;
#else
constexpr int kQueries = 6;
constexpr int kVectors = 2;
#endif
constexpr int64_t kRows = kVectors * kFloats;

using Vec = hn::Vec<F32>;

// sum + (query - row)^2 / (query + row), nothing where query + row = 0; within kReciprocalError and what underflows.
HWY_INLINE Vec add_chi_square(Vec query, Vec row, Vec sum) {
  const Vec apart = hn::Sub(query, row);
  const Vec total = hn::Add(query, row);
  // The ratio is at most 1, so that the product loses nothing to underflow that the sum would keep.
#if HWY_ARCH_X86
  // Divisions would take most of the time. The estimate of 1 / total is within kReciprocalError; where the total is too
  // small for one the term is no larger, and counts as underflow.
  const Vec quotient = hn::Mul(apart, hn::ApproximateReciprocal(total));
  const Vec ratio = hn::IfThenElseZero(hn::Ge(total, hn::Set(F32(), 0x1p-124f)), quotient);
#else
  const Vec ratio = hn::IfThenZeroElse(hn::Eq(total, hn::Zero(F32())), hn::Div(apart, total));
#endif
  return hn::MulAdd(ratio, apart, sum);
}

template <PanelStep kStep>
HWY_INLINE Vec accumulate(Vec query, Vec row, Vec sum) {
  if constexpr (kStep == PanelStep::l1) return hn::Add(sum, hn::AbsDiff(query, row));
  if constexpr (kStep == PanelStep::linf) return hn::Max(sum, hn::AbsDiff(query, row));
  if constexpr (kStep == PanelStep::chi_square) return add_chi_square(query, row, sum);
  return hn::MulAdd(query, row, sum);
}

template <PanelStep kStep>
HWY_INLINE void accumulate_row(Vec query, const Vec (&rows)[kVectors], Vec (&sums)[kVectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = accumulate<kStep>(query, rows[v], sums[v]);
}

// One column of a tile. NEON multiplies by a lane of a register, so four query values come with one load; elsewhere
// a load that broadcasts is free beside the arithmetic.
template <PanelStep kStep>
HWY_INLINE void tile_step(const float* queries, const float* rows, Vec (&sums)[kQueries][kVectors]) {
  const F32 d;
  Vec r[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) r[v] = hn::Load(d, rows + v * kFloats);
#if HWY_ARCH_ARM_A64
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; q += 4) {
    if constexpr (kStep == PanelStep::product) {
      const Vec four = hn::Load(d, queries + q);
      accumulate_row<kStep>(hn::Broadcast<0>(four), r, sums[q]);
      accumulate_row<kStep>(hn::Broadcast<1>(four), r, sums[q + 1]);
      accumulate_row<kStep>(hn::Broadcast<2>(four), r, sums[q + 2]);
      accumulate_row<kStep>(hn::Broadcast<3>(four), r, sums[q + 3]);
    } else {
#pragma GCC unroll 4
      for (int i = q; i < q + 4; ++i) {
        accumulate_row<kStep>(hn::Set(d, queries[i]), r, sums[i]);
        __asm__ volatile("" ::: "memory");  // or else all values are loaded first, and sums have no register left
      }
    }
  }
#else
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) accumulate_row<kStep>(hn::Set(d, queries[q]), r, sums[q]);
#endif
}

// One column of one query.
HWY_INLINE void add_column(float query, const float* rows, Vec (&sums)[kVectors]) {
  const F32 d;
  const Vec one = hn::Set(d, query);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::MulAdd(one, hn::Load(d, rows + v * kFloats), sums[v]);
}

// What each query of a panel accepts from rows of this norm.
HWY_INLINE void tile_limits(const PanelQueries& queries, int64_t first, float norm, float* limits) {
  for (int q = 0; q < kQueries; ++q) {
    limits[q] = queries.limits[first + q] + (queries.constant[first + q] +
                                             norm * (queries.linear[first + q] + norm * queries.quadratic[first + q]));
  }
}

// Lane by lane. Where a value could be a NaN the limit is infinite, so that everything passes, lost NaN or not.
HWY_INLINE Vec smallest(const Vec (&sums)[kVectors]) {
  Vec least = sums[0];
#pragma GCC unroll 8
  for (int v = 1; v < kVectors; ++v) least = hn::Min(least, sums[v]);
  return least;
}

// Products of many columns, segment by segment, added to the totals: in a function of their own, beside which a tile's
// sums stay in registers.
HWY_NOINLINE void add_segments(const float* query_panel, const float* rows, int64_t cols,
                               float (&totals)[kQueries][kRows]) {
  const F32 d;
  for (int64_t first = 0; first < cols; first += kSegmentColumns) {
    const int64_t count = std::min(kSegmentColumns, cols - first);
    Vec sums[kQueries][kVectors];
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[q][v] = hn::Zero(d);
    }
    for (int64_t c = 0; c < count; ++c) {
      tile_step<PanelStep::product>(query_panel, rows, sums);
      query_panel += kQueries;
      rows += kRows;
    }
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        float* const total = totals[q] + v * kFloats;
        hn::Store(hn::Add(sums[q][v], hn::Load(d, total)), d, total);
      }
    }
  }
}

// Compares one panel of queries with one of rows and reports the queries whose values pass.
template <PanelStep kStep, bool kSegments>
HWY_NOINLINE void scan_tile(const PanelQueries& queries, int64_t first_query, const float* query_panel,
                            const PanelBase& base, int64_t panel, PanelHits& hits) {
  const F32 d;
  const float* terms = base.terms + panel * kRows;
  Vec sums[kQueries][kVectors];
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[q][v] = hn::Load(d, terms + v * kFloats);
  }
  const float* rows = static_cast<const float*>(base.panels) + base.place(panel) * base.cols * kRows;
  if constexpr (kSegments) {
    HWY_ALIGN float totals[kQueries][kRows];
    for (int q = 0; q < kQueries; ++q) std::copy_n(terms, kRows, totals[q]);
    add_segments(query_panel, rows, base.cols, totals);
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[q][v] = hn::Load(d, totals[q] + v * kFloats);
    }
  } else {
    for (int64_t c = 0; c < base.cols; ++c) {
      tile_step<kStep>(query_panel, rows, sums);
      query_panel += kQueries;
      rows += kRows;
    }
  }

  HWY_ALIGN float limits[kQueries];
  tile_limits(queries, first_query, base.norms[panel], limits);
  // Nearly every tile has nothing to report, which one test must find out.
  auto all_above = hn::Gt(smallest(sums[0]), hn::Set(d, limits[0]));
#pragma GCC unroll 16
  for (int q = 1; q < kQueries; ++q) all_above = hn::And(all_above, hn::Gt(smallest(sums[q]), hn::Set(d, limits[q])));
  if (HWY_LIKELY(hn::AllTrue(d, all_above))) return;

  HWY_ALIGN float values[kQueries][kRows];
  uint32_t passed = 0;
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
    passed |= hn::AllTrue(d, hn::Gt(smallest(sums[q]), hn::Set(d, limits[q]))) ? 0u : 1u << q;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[q][v], d, values[q] + v * kFloats);
  }
  for (; passed != 0; passed &= passed - 1) {
    const int q = std::countr_zero(passed);
    if (first_query + q < queries.count) hits.on_hit(first_query + q, panel, values[q]);
  }
}

template <PanelStep kStep, bool kSegments = false>
void scan_all(const PanelQueries& queries, const PanelBase& base, int64_t first, int64_t count, PanelHits& hits) {
  for (int64_t panel = first; panel < first + count; ++panel) {
    for (int64_t q = 0; q < queries.count; q += kQueries) {
      scan_tile<kStep, kSegments>(queries, q, static_cast<const float*>(queries.panels) + q * base.cols, base, panel,
                                  hits);
    }
  }
}

void ScanPanels(const PanelQueries& queries, const PanelBase& base, int64_t first, int64_t count, PanelHits& hits) {
  switch (base.step) {
    case PanelStep::product:
      if (has_segments(base.cols)) return scan_all<PanelStep::product, true>(queries, base, first, count, hits);
      return scan_all<PanelStep::product>(queries, base, first, count, hits);
    case PanelStep::l1: return scan_all<PanelStep::l1>(queries, base, first, count, hits);
    case PanelStep::linf: return scan_all<PanelStep::linf>(queries, base, first, count, hits);
    case PanelStep::chi_square: return scan_all<PanelStep::chi_square>(queries, base, first, count, hits);
  }
}

// Columns in four groups, whose sums do not wait for each other; segments are as long in each.
void PanelValues(const PanelQueries& queries, const PanelBase& base, int64_t query, int64_t panel, float* values) {
  constexpr int kGroups = 4;
  const F32 d;
  const int64_t within = query % kQueries;
  const float* q = static_cast<const float*>(queries.panels) + (query - within) * base.cols + within;
  const float* rows = static_cast<const float*>(base.panels) + base.place(panel) * base.cols * kRows;
  Vec sums[kGroups][kVectors];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sums[g][v] = g == 0 ? hn::Load(d, base.terms + panel * kRows + v * kFloats) : hn::Zero(d);
    }
  }
  int64_t c = 0;
  for (int64_t segment = 0; segment < base.cols; segment += kGroups * kSegmentColumns) {
    const int64_t end = std::min(segment + kGroups * kSegmentColumns, base.cols);
    for (; c + kGroups <= end; c += kGroups) {
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) add_column(q[(c + g) * kQueries], rows + (c + g) * kRows, sums[g]);
    }
    for (; c < end; ++c) add_column(q[c * kQueries], rows + c * kRows, sums[0]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Vec sum = hn::Add(hn::Add(sums[0][v], sums[1][v]), hn::Add(sums[2][v], sums[3][v]));
      hn::Store(segment == 0 ? sum : hn::Add(sum, hn::Load(d, values + v * kFloats)), d, values + v * kFloats);
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) sums[g][v] = hn::Zero(d);
    }
  }
}

// Chi-square of some rows side by side, which hides the latency of the additions. Zeros past the last column add
// nothing.
template <int kCount>
HWY_INLINE void chi_square_group(const float* query, const float* const* rows, int64_t cols, float* values) {
  Vec sums[kCount];
#pragma GCC unroll 4
  for (int r = 0; r < kCount; ++r) sums[r] = hn::Zero(F32());
  for (int64_t c = 0; c < cols; c += kFloats) {
    const Vec q = load_padded(query + c, cols - c);
#pragma GCC unroll 4
    for (int r = 0; r < kCount; ++r) sums[r] = add_chi_square(q, load_padded(rows[r] + c, cols - c), sums[r]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kCount; ++r) values[r] = hn::GetLane(hn::SumOfLanes(F32(), sums[r]));
}

void ChiSquareValues(const float* query, const float* const* rows, int64_t count, int64_t cols, float* values) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) chi_square_group<4>(query, rows + i, cols, values + i);
  for (; i < count; ++i) chi_square_group<1>(query, rows + i, cols, values + i);
}

PanelShape Shape() { return {kRows, kQueries, false, false}; }

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(ScanPanels);
HWY_EXPORT(PanelValues);
HWY_EXPORT(ChiSquareValues);
HWY_EXPORT(Shape);

PanelShape f32_panel_shape() { return HWY_DYNAMIC_DISPATCH(Shape)(); }

void scan_panels(const PanelQueries& queries, const PanelBase& base, int64_t first, int64_t count, PanelHits& hits) {
#if defined(KITH_X86)
  if (base.format == PanelFormat::bf16) return scan_panels_amx(queries, base, first, count, hits);
#endif
  HWY_DYNAMIC_DISPATCH(ScanPanels)(queries, base, first, count, hits);
}

void panel_values(const PanelQueries& queries, const PanelBase& base, int64_t query, int64_t panel, float* values) {
  HWY_DYNAMIC_DISPATCH(PanelValues)(queries, base, query, panel, values);
}

void chi_square_values_cpu(const float* query, const float* const* rows, int64_t count, int64_t cols, float* values) {
  HWY_DYNAMIC_DISPATCH(ChiSquareValues)(query, rows, count, cols, values);
}

namespace {

class CopiedValues final : public PanelHits {
 public:
  CopiedValues(float* values, int64_t stride, int64_t width) : values_(values), stride_(stride), width_(width) {}
  void on_hit(int64_t query, int64_t panel, const float* values) override {
    std::copy_n(values, width_, values_ + query * stride_ + panel * width_);
  }

 private:
  float* const values_;
  const int64_t stride_;
  const int64_t width_;  // of a panel
};

}  // namespace

void all_values(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values, int64_t stride) {
#if defined(KITH_X86)
  if (base.format == PanelFormat::bf16 && !has_segments(base.cols)) {
    return all_values_amx(queries, base, panels, values, stride);
  }
#endif
  CopiedValues copied(values, stride, panel_shape(base.format).rows_per_panel);
  scan_panels(queries, base, 0, panels, copied);
}

}  // namespace kith
#endif
