// The nearest of few rows, exactly, for f32 rows of up to kShortColumns columns: nearest_of_few_cpu.cpp where a vector
// along the columns or along the few would have little to do. A vector holds a column of several rows instead, and
// distances are direct. Included once for each instruction set.
#if defined(KITH_KERNELS_DISTANCE_NEAREST_OF_SHORT_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_NEAREST_OF_SHORT_CPU_INL
#undef KITH_KERNELS_DISTANCE_NEAREST_OF_SHORT_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_NEAREST_OF_SHORT_CPU_INL
#endif

#include <kith/view.hpp>

#include "core/ordered_key.hpp"
#include "kernels/distance/few_rows_task.hpp"
#include "kernels/distance/nearest_of_handful_cpu-inl.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
using I32 = hn::ScalableTag<int32_t>;

// A value for each of a vector's rows, from one of each of the few: `table` is padded to whole vectors.
HWY_INLINE Vec look_up(const float* table, int64_t width, hn::Vec<I32> few) {
  if (width == kFloats) return hn::TableLookupLanes(hn::LoadU(F32(), table), hn::IndicesFromVec(F32(), few));
  return hn::GatherIndex(F32(), table, few);
}

// The canonical keys of some rows, one in each lane of doubles, from one column after the other.
template <typename Column>
HWY_INLINE hn::Vec<hn::Rebind<float, F64>> short_keys(int64_t cols, const Column& difference) {
  hn::Vec<F64> lanes[kCanonicalLanes];
  for (auto& lane : lanes) lane = hn::Zero(F64());
  for (int64_t c = 0; c < cols; ++c) {
    const auto apart = difference(c);
    lanes[c] = hn::Mul(apart, apart);  // added to zero
  }
  for (int apart = kCanonicalLanes / 2; apart > 0; apart /= 2) {
    for (int j = 0; j < apart; ++j) lanes[j] = hn::Add(lanes[j], lanes[j + apart]);
  }
  return hn::DemoteTo(hn::Rebind<float, F64>(), lanes[0]);
}

// Vectors of short rows at a time: where a vector is short, one value of a centre serves several.
#if HWY_ARCH_ARM_A64
constexpr int kShortVectors = 4;
#else
constexpr int kShortVectors = 1;
#endif

// Column c of these rows from columns[c * rows] on.
HWY_INLINE void side_by_side(const float* rows, int64_t stride, int64_t cols, float* columns) {
  constexpr int64_t kRows = kShortVectors * kFloats;
#if HWY_ARCH_ARM_A64
  const F32 d;
  const hn::Repartition<double, F32> pairs;
  int64_t c = 0;
  for (; c + 4 <= cols; c += 4) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < kRows; r += 4) {
      const float* const from = rows + r * stride + c;
      const Vec row0 = hn::LoadU(d, from);
      const Vec row1 = hn::LoadU(d, from + stride);
      const Vec row2 = hn::LoadU(d, from + 2 * stride);
      const Vec row3 = hn::LoadU(d, from + 3 * stride);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
      float* const to = columns + c * kRows + r;
      hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + kRows);
      hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * kRows);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * kRows);
    }
  }
  for (; c < cols; ++c) {
    for (int64_t r = 0; r < kRows; ++r) columns[c * kRows + r] = rows[r * stride + c];
  }
#else
  const I32 di;
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
  for (int64_t c = 0; c < cols; ++c) {
    hn::Store(hn::GatherIndex(F32(), rows + c, places), F32(), columns + c * kRows);
  }
#endif
}

// Rows of few columns, a vector of rows at a time: each lane has its row's nearest and second nearest, by direct
// distances, whose errors are relative. A row of which these are not apart is compared with all, canonically.
template <bool kKeys>
bool nearest_short(const FewRowsTask& task, const MatrixView& rows, int32_t* labels, float* keys, float* scratch) {
  const F32 d;
  const I32 di;
  const hn::Half<F32> half;
  const auto* const data = static_cast<const float*>(rows.data());
  const int64_t stride = rows.row_stride();
  std::fill_n(scratch, task.padded, 0.0f);
  bool bounded = true;
  const auto exactly = [&](int64_t i) HWY_ATTR {
    std::copy_n(data + i * stride, task.cols, scratch);
    uint64_t best = kPadding;
    for (int64_t few = 0; few < task.count; ++few) {
      const float own =
          canonical_of<KeyKind::squared_l2>({scratch, nullptr, task.wide + few * task.padded}, task.padded);
      best = std::min(best, pack_neighbor(ordered_key(own), static_cast<uint32_t>(few)));
    }
    labels[i] = static_cast<int32_t>(row_of(best));
    const float key = key_of_ordered(ordered_of(best));
    if constexpr (kKeys) keys[i] = key;
    if (!(key < task.largest)) bounded = false;
  };
  constexpr int64_t kRows = kShortVectors * kFloats;
  const Vec above = hn::Set(d, 1 + task.relative);
  const Vec below = hn::Set(d, 1 - task.relative);
  const Vec least = hn::Set(d, task.underflow);
  const int64_t cols = task.cols;
  const int64_t width = task.width;
  HWY_ALIGN float columns[kShortColumns * kRows];
  int64_t first = 0;
  for (; first + kRows <= rows.rows(); first += kRows) {
    side_by_side(data + first * stride, stride, task.cols, columns);
    Vec best[kShortVectors];
    Vec second[kShortVectors];
    hn::Vec<I32> label[kShortVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kShortVectors; ++v) {
      best[v] = second[v] = hn::Set(d, HUGE_VALF);
      label[v] = hn::Zero(di);
    }
    // One or two of the few, whose sums do not wait for each other.
    const auto compare = [&](int64_t few, auto together) HWY_ATTR {
      constexpr int kFew = decltype(together)::value;
      Vec value[kFew][kShortVectors];
#pragma GCC unroll 2
      for (int f = 0; f < kFew; ++f) {
#pragma GCC unroll 4
        for (int v = 0; v < kShortVectors; ++v) value[f][v] = hn::Zero(d);
      }
      const float* centres = task.columns + few;
      for (int64_t c = 0; c < cols; ++c, centres += width) {
        Vec column[kShortVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kShortVectors; ++v) column[v] = hn::Load(d, columns + c * kRows + v * kFloats);
#pragma GCC unroll 2
        for (int f = 0; f < kFew; ++f) {
          const Vec centre = hn::Set(d, centres[f]);
#pragma GCC unroll 4
          for (int v = 0; v < kShortVectors; ++v) {
            const Vec apart = hn::Sub(column[v], centre);
            value[f][v] = hn::MulAdd(apart, apart, value[f][v]);
          }
        }
      }
#pragma GCC unroll 2
      for (int f = 0; f < kFew; ++f) {
        const auto number = hn::Set(di, static_cast<int32_t>(few + f));
#pragma GCC unroll 4
        for (int v = 0; v < kShortVectors; ++v) {
          const auto nearer = hn::Lt(value[f][v], best[v]);
          second[v] = hn::Min(second[v], hn::Max(value[f][v], best[v]));
          best[v] = hn::Min(best[v], value[f][v]);
          label[v] = hn::IfThenElse(hn::RebindMask(di, nearer), number, label[v]);
        }
      }
    };
    int64_t few = 0;
    for (; few + 2 <= task.count; few += 2) compare(few, std::integral_constant<int, 2>());
    if (few < task.count) compare(few, std::integral_constant<int, 1>());
#pragma GCC unroll 4
    for (int v = 0; v < kShortVectors; ++v) {
      const int64_t from = first + v * kFloats;
      hn::StoreU(label[v], di, labels + from);
      if constexpr (kKeys) {
        Vec lower[kShortColumns];  // of the centres: which lanes' columns are widened in halves
        for (int64_t c = 0; c < task.cols; ++c) lower[c] = look_up(task.columns + c * task.width, task.width, label[v]);
        const F64 dd;
        const auto column = [&](int64_t c) HWY_ATTR { return hn::Load(d, columns + c * kRows + v * kFloats); };
        const auto low = short_keys(task.cols, [&](int64_t c) HWY_ATTR {
          return hn::Sub(hn::PromoteTo(dd, hn::LowerHalf(half, column(c))),
                         hn::PromoteTo(dd, hn::LowerHalf(half, lower[c])));
        });
        const auto high = short_keys(task.cols, [&](int64_t c) HWY_ATTR {
          return hn::Sub(hn::PromoteTo(dd, hn::UpperHalf(half, column(c))),
                         hn::PromoteTo(dd, hn::UpperHalf(half, lower[c])));
        });
        hn::StoreU(low, half, keys + from);
        hn::StoreU(high, half, keys + from + kFloats / 2);
      }
      // A NaN is never sure.
      const auto sure = hn::Gt(hn::Mul(second[v], below), hn::MulAdd(best[v], above, least));
      const auto is_one = hn::Lt(best[v], hn::Set(d, task.largest));
      if (HWY_LIKELY(hn::AllTrue(d, hn::And(sure, is_one)))) continue;
      HWY_ALIGN float flags[kFloats];
      hn::Store(hn::IfThenElseZero(hn::And(sure, is_one), hn::Set(d, 1.0f)), d, flags);
      for (int64_t j = 0; j < kFloats; ++j) {
        if (flags[j] == 0.0f) exactly(from + j);
      }
    }
  }
  for (; first < rows.rows(); ++first) exactly(first);
  return bounded;
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
