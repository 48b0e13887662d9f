#include "kernels/distance/nearest_of_few_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/nearest_of_few_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/few_rows_task.hpp"
#include "kernels/distance/nearest_of_handful_cpu-inl.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I32 = hn::ScalableTag<int32_t>;

// Rows and vectors of the few in registers at a time.
#if HWY_TARGET <= HWY_AVX3
constexpr int kGroup = 8;
constexpr int kMostVectors = 3;
#elif HWY_ARCH_ARM_A64
constexpr int kGroup = 6;
constexpr int kMostVectors = 4;
#else
constexpr int kGroup = 6;
constexpr int kMostVectors = 2;
#endif

// Rows that are compared at a time.
struct RowGroup {
  int64_t first = 0;
  int64_t count = 0;
  const float* rows = nullptr;    // widened and padded
  const float* values = nullptr;  // of each row for all of the few
  const float* norms = nullptr;   // squared, of rows less the origin
};

// The products of a group of rows with kVectors vectors of the few, from number `first` on.
template <int kVectors>
HWY_INLINE void multiply(const FewRowsTask& task, const float* rows, int64_t first, float* values) {
  const F32 d;
  Vec sums[kGroup][kVectors];
  const float* tables[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = first + v * kFloats;
    tables[v] = task.table + at / kFewRowsTile * kFewRowsTile * task.cols + at % kFewRowsTile;
    const Vec term = hn::LoadU(d, task.terms + at);
#pragma GCC unroll 8
    for (int r = 0; r < kGroup; ++r) sums[r][v] = term;
  }
  const float* row[kGroup];
#pragma GCC unroll 8
  for (int r = 0; r < kGroup; ++r) row[r] = rows + r * task.padded;
  const int64_t cols = task.cols;
  for (int64_t c = 0; c < cols; ++c) {
    Vec few[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) few[v] = hn::LoadU(d, tables[v] + c * kFewRowsTile);
#pragma GCC unroll 8
    for (int r = 0; r < kGroup; ++r) {
      const Vec value = hn::Set(d, row[r][c]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, few[v], sums[r][v]);
#if HWY_ARCH_ARM_A64
      __asm__ volatile("" ::: "memory");  // or else all values are loaded first, and sums have no register left
#endif
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kGroup; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, values + r * task.width + first + v * kFloats);
  }
}

// Calls use(number), in ascending order, for the values up to a limit, and returns how many there were. A NaN is none.
template <typename Use>
HWY_INLINE int64_t for_up_to(const float* values, int64_t width, float limit, const Use& use) {
  const F32 d;
  const Vec most = hn::Set(d, limit);
  int64_t found = 0;
  for (int64_t first = 0; first < width; first += kFloats) {
    for (uint32_t bits = bits_of(hn::Le(hn::LoadU(d, values + first), most)); bits != 0; bits &= bits - 1) {
      use(first + std::countr_zero(bits));
      ++found;
    }
  }
  return found;
}

HWY_INLINE float least_of(const float* values, int64_t width) {
  const F32 d;
  Vec least = hn::LoadU(d, values);
  for (int64_t v = kFloats; v < width; v += kFloats) least = hn::Min(least, hn::LoadU(d, values + v));
  return hn::GetLane(hn::MinOfLanes(d, least));
}

// How far two values of a row can be from where they should be, together; not finite where nothing is sure.
HWY_INLINE float slack_of(const FewRowsTask& task, float squared_norm) {
  if (!(squared_norm < static_cast<float>(kLargestSquaredNorm))) return HUGE_VALF;
  const float norm = std::sqrt(squared_norm) * 1.001f;  // its own rounding
  return 2 * (task.constant + norm * (task.linear + norm * task.quadratic));
}

// Which of the few are near enough to be a row's.
enum class Settled : uint8_t { one, best_of_some, best_of_all };

// The row's label, of canonical keys where several are within the slack or values are beyond what bounds hold for;
// then its key too.
template <KeyKind kKind>
HWY_INLINE Settled settle(const FewRowsTask& task, const float* row, const float* values, float squared_norm,
                          int32_t* label, float* key) {
  const float slack = slack_of(task, squared_norm);
  const float limit = least_of(values, task.width) + slack;
  int64_t found = 0;
  if (slack < HUGE_VALF) {
    int64_t last = 0;
    found = for_up_to(values, task.width, limit, [&](int64_t few) HWY_ATTR { last = few; });
    *label = static_cast<int32_t>(last);
    if (HWY_LIKELY(found == 1)) return Settled::one;
  }
  uint64_t best = kPadding;
  const auto score = [&](int64_t few) HWY_ATTR {
    const float own = canonical_of<kKind>({row, nullptr, task.wide + few * task.padded}, task.padded);
    best = std::min(best, pack_neighbor(ordered_key(own), static_cast<uint32_t>(few)));
  };
  if (found > 0) {
    for_up_to(values, task.width, limit, score);
  } else {  // whatever is not finite, or close to it
    for (int64_t few = 0; few < task.count; ++few) score(few);
  }
  *label = static_cast<int32_t>(row_of(best));
  *key = key_of_ordered(ordered_of(best));
  return found > 0 ? Settled::best_of_some : Settled::best_of_all;
}

// A group's labels, and keys unless they are null. False where values were beyond what bounds hold for.
template <KeyKind kKind>
HWY_INLINE bool settle_group(const FewRowsTask& task, const RowGroup& group, int32_t* labels, float* keys) {
  bool bounded = true;
  bool each_one = true;
  float own_keys[kGroup];
  Settled settled[kGroup];
  for (int64_t r = 0; r < group.count; ++r) {
    settled[r] = settle<kKind>(task, group.rows + r * task.padded, group.values + r * task.width, group.norms[r],
                               labels + r, own_keys + r);
    bounded &= settled[r] != Settled::best_of_all;
    each_one &= settled[r] == Settled::one;
  }
  if (keys == nullptr) return bounded;
  CanonicalPair pairs[kGroup];
  for (int64_t r = 0; r < group.count; ++r) {
    pairs[r] = {group.rows + r * task.padded, nullptr, task.wide + labels[r] * task.padded};
  }
  if (HWY_LIKELY(each_one)) {
    canonical_of_all<kKind>(pairs, group.count, task.padded, keys);
    return true;
  }
  for (int64_t r = 0; r < group.count; ++r) {
    if (settled[r] == Settled::one)
      own_keys[r] = key_of_ordered(ordered_key(canonical_of<kKind>(pairs[r], task.padded)));
    keys[r] = own_keys[r];
  }
  return bounded;
}

// Copies a row, widened, and the same less the origin; both padded with zeros. Returns the latter's squared norm. Where
// `past_end`, what lies behind the row may be read.
template <typename T>
HWY_INLINE float bring(const FewRowsTask& task, const T* from, bool past_end, float* row, float* moved) {
  const F32 d;
  const int64_t whole = task.cols / kFloats * kFloats;
  Vec squares = hn::Zero(d);
  const auto take = [&](Vec value, int64_t c) HWY_ATTR {
    hn::StoreU(value, d, row + c);
    const Vec apart = hn::Sub(value, hn::LoadU(d, task.origin + c));
    hn::StoreU(apart, d, moved + c);
    squares = hn::MulAdd(apart, apart, squares);
  };
  for (int64_t c = 0; c < whole; c += kFloats) take(load_floats(from + c), c);
  if (whole < task.cols) {
    if (past_end) {
      const auto real = hn::FirstN(d, static_cast<size_t>(task.cols - whole));
      take(hn::IfThenElseZero(real, load_floats(from + whole)), whole);
    } else {
      HWY_ALIGN T tail[kFloats] = {};
      std::copy(from + whole, from + task.cols, tail);
      take(load_floats(tail), whole);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, squares));
}

// Goes over the rows, a group at a time: use(group).
template <typename T, typename Use>
HWY_INLINE void for_rows(const FewRowsTask& task, const MatrixView& rows, float* scratch, const Use& use) {
  const auto* const data = static_cast<const T*>(rows.data());
  float* const group = scratch;
  float* const moved = group + kFewRowsTogether * task.padded;
  float* const values = moved + kFewRowsTogether * task.padded;
  static_assert(kGroup <= kFewRowsTogether);
  std::fill_n(group, 2 * kFewRowsTogether * task.padded, 0.0f);
  // Rows behind which a vector of values of the same matrix lies.
  const int64_t behind = rows.row_stride() > 0 ? divide_up(kFloats, rows.row_stride()) : rows.rows();
  const int64_t readable = rows.rows() - behind;
  float norms[kGroup] = {};
  const int64_t row_bytes = task.cols * static_cast<int64_t>(sizeof(T));
  const int64_t ahead = std::max<int64_t>(kBytesAhead / row_bytes, kGroup);
  for (int64_t first = 0; first < rows.rows(); first += kGroup) {
    const int64_t count = std::min<int64_t>(kGroup, rows.rows() - first);
    for (int64_t r = 0; r < count; ++r) {
      if (first + r + ahead < rows.rows()) {
        fetch_ahead(data + (first + r + ahead) * rows.row_stride(), row_bytes);
      }
      norms[r] = bring(task, data + (first + r) * rows.row_stride(), first + r < readable, group + r * task.padded,
                       moved + r * task.padded);
    }
    for (int64_t at = 0; at < task.width;) {
      const int64_t vectors = std::min<int64_t>((task.width - at) / kFloats, kMostVectors);
      if (vectors == kMostVectors) {
        multiply<kMostVectors>(task, moved, at, values);
      } else if (vectors >= 2) {
        multiply<2>(task, moved, at, values);
      } else {
        multiply<1>(task, moved, at, values);
      }
      at += (vectors == kMostVectors ? vectors : std::min<int64_t>(vectors, 2)) * kFloats;
    }
    use(RowGroup{first, count, group, values, norms});
  }
}

#if HWY_TARGET != HWY_SCALAR
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

bool NearestOfFew(const FewRowsTask& task, const MatrixView& rows, int32_t* labels, float* keys, float* scratch) {
#if HWY_TARGET != HWY_SCALAR
  // Among values that are not numbers the nearest might be overlooked: the constant is finite where the few are.
  const bool short_rows = task.cols <= kShortColumns && rows.row_stride() <= (1 << 20) && std::isfinite(task.constant);
  if (short_rows && rows.dtype() == DType::f32 && task.kind == KeyKind::squared_l2) {
    return keys == nullptr ? nearest_short<false>(task, rows, labels, keys, scratch)
                           : nearest_short<true>(task, rows, labels, keys, scratch);
  }
  if (rows.dtype() == DType::f32 && is_handful(task.count)) {
    return nearest_of_handful(task, rows, labels, keys, scratch);
  }
#endif
  bool bounded = true;
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    const auto keys_of = [&](const RowGroup& group) { return keys == nullptr ? nullptr : keys + group.first; };
    if (task.kind == KeyKind::inner_product) {
      for_rows<T>(task, rows, scratch, [&](const RowGroup& group) HWY_ATTR {
        bounded &= settle_group<KeyKind::inner_product>(task, group, labels + group.first, keys_of(group));
      });
    } else {
      for_rows<T>(task, rows, scratch, [&](const RowGroup& group) HWY_ATTR {
        bounded &= settle_group<KeyKind::squared_l2>(task, group, labels + group.first, keys_of(group));
      });
    }
  });
  return bounded;
}

// Squared distances to each of the few that is nearer than what the row has; the others are left.
void NearerOfFew(const FewRowsTask& task, const MatrixView& rows, const float* nearest, float* distances,
                 int64_t stride, float* scratch) {
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    for_rows<T>(task, rows, scratch, [&](const RowGroup& group) HWY_ATTR {
      for (int64_t r = 0; r < group.count; ++r) {
        const int64_t i = group.first + r;
        const float* const row = group.rows + r * task.padded;
        const auto score = [&](int64_t few) HWY_ATTR {
          if (few >= task.count) return;
          const double* const other = task.wide + few * task.padded;
          const float key = canonical_of<KeyKind::squared_l2>({row, nullptr, other}, task.padded);
          float& distance = distances[few * stride + i];
          distance = std::min(distance, key_of_ordered(ordered_key(key)));
        };
        const float slack = slack_of(task, group.norms[r]);
        if (slack < HUGE_VALF && nearest[i] < HUGE_VALF) {
          for_up_to(group.values + r * task.width, task.width, nearest[i] - group.norms[r] + slack, score);
        } else {
          for (int64_t few = 0; few < task.count; ++few) score(few);
        }
      }
    });
  });
}

// A weight times a value is exact in double, so that a fused step rounds as two do.
template <bool kWeighted, typename T>
void add_type(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums, double* weight_sums) {
  const int64_t cols = rows.cols();
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const T* const row = static_cast<const T*>(rows.data()) + i * rows.row_stride();
    double* const sum = sums + labels[i] * cols;
    const double weight = kWeighted ? static_cast<double>(weights[i]) : 1.0;
    const auto w = hn::Set(F64(), weight);
    const auto add = [&](int64_t c) HWY_ATTR {
      auto value = load_doubles(row + c);
      if constexpr (kWeighted) value = hn::Mul(w, value);
      hn::StoreU(hn::Add(hn::LoadU(F64(), sum + c), value), F64(), sum + c);
    };
    int64_t c = 0;
    for (; c + 2 * kDoubles <= cols; c += 2 * kDoubles) {
      add(c);
      add(c + kDoubles);
    }
    for (; c + kDoubles <= cols; c += kDoubles) add(c);
    for (; c < cols; ++c) sum[c] += weight * static_cast<double>(static_cast<float>(row[c]));
    weight_sums[labels[i]] += weight;
  }
}

void AddRows(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums, double* weight_sums) {
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    weights == nullptr ? add_type<false, T>(rows, labels, weights, sums, weight_sums)
                       : add_type<true, T>(rows, labels, weights, sums, weight_sums);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(NearestOfFew);
HWY_EXPORT(NearerOfFew);
HWY_EXPORT(AddRows);

namespace {

constexpr int64_t kPad = kFewRowsTile;  // a multiple of every vector's floats and of the canonical lanes
static_assert(kPad % kCanonicalLanes == 0);

int64_t padded(int64_t count) { return round_up(count, kPad); }
int64_t short_columns(int64_t cols) { return cols <= kShortColumns ? cols : 0; }

}  // namespace

int64_t FewRows::bytes_for(int64_t count, int64_t cols) {
  return array_bytes<float>((cols + 1 + short_columns(cols)) * padded(count)) +
         array_bytes<double>(count * padded(cols)) + array_bytes<float>((1 + kHandful) * padded(cols));
}

int64_t FewRows::scratch_floats(int64_t cols) { return kFewRowsTogether * (2 * padded(cols) + padded(kMostFewRows)); }

FewRows::FewRows(KeyKind kind, std::vector<float> origin, int64_t capacity, const Resources& resources)
    : kind_(kind),
      origin_(std::move(origin)),
      cols_(static_cast<int64_t>(origin_.size())),
      table_(cols_ * padded(capacity), "the centres", resources),
      terms_(padded(capacity), "the centres", resources),
      columns_(short_columns(cols_) * padded(capacity), "the centres", resources),
      lines_(kHandful * padded(cols_), "the centres", resources),
      wide_(capacity * padded(cols_), "the centres", resources) {
  if (kind == KeyKind::inner_product) std::fill(origin_.begin(), origin_.end(), 0.0f);
  origin_.resize(static_cast<size_t>(padded(cols_)), 0.0f);
}

void FewRows::set(const MatrixView& rows) {
  count_ = rows.rows();
  const int64_t width = padded(count_);
  const bool differences = kind_ != KeyKind::inner_product;
  std::fill_n(table_.data(), cols_ * width, 0.0f);
  std::fill_n(wide_.data(), count_ * padded(cols_), 0.0);
  std::fill_n(terms_.data(), width, HUGE_VALF);
  std::fill_n(columns_.data(), short_columns(cols_) * width, 0.0f);
  std::fill_n(lines_.data(), kHandful * padded(cols_), 0.0f);
  double largest = 0;
  for (int64_t i = 0; i < count_; ++i) {
    const auto* const row = reinterpret_cast<const float*>(rows.row(i));
    double squares = 0;
    for (int64_t c = 0; c < cols_; ++c) {
      const float moved = row[c] - origin_[static_cast<size_t>(c)];
      squares += static_cast<double>(moved) * static_cast<double>(moved);
      const int64_t tile = i / kFewRowsTile * kFewRowsTile;
      const float factor = (differences ? -2.0f : -1.0f) * moved;
      table_[tile * cols_ + c * kFewRowsTile + i - tile] = factor;
      if (count_ <= kHandful) lines_[i * padded(cols_) + c] = factor;
      wide_[i * padded(cols_) + c] = static_cast<double>(row[c]);
      if (cols_ <= kShortColumns) columns_[c * width + i] = row[c];
    }
    terms_[i] = differences ? static_cast<float>(squares) : 0.0f;
    largest = std::max(largest, squares);
    if (std::isnan(squares)) largest = HUGE_VAL;
  }
  norm_ = largest < kLargestSquaredNorm ? static_cast<float>(std::sqrt(largest) * 1.001) : HUGE_VALF;
}

FewRowsTask FewRows::task() const {
  FewRowsTask task;
  task.kind = kind_;
  task.cols = cols_;
  task.padded = padded(cols_);
  task.count = count_;
  task.width = padded(count_);
  task.origin = origin_.data();
  task.table = table_.data();
  task.terms = terms_.data();
  task.lines = lines_.data();
  task.wide = wide_.data();
  task.columns = columns_.data();
  task.relative = direct_error(cols_);
  task.underflow = static_cast<float>(underflow_error(cols_));
  // error_bound.hpp with the rows' and the few's parts the other way round: c (|q| + |x|)^2, or c |q| |x|.
  const double error = product_error(cols_);
  const auto norm = static_cast<double>(norm_);
  const bool differences = kind_ != KeyKind::inner_product;
  task.constant = static_cast<float>((differences ? error * norm * norm : 0.0) + underflow_error(cols_));
  task.linear = static_cast<float>((differences ? 2 : 1) * error * norm);
  task.quadratic = static_cast<float>(differences ? error : 0.0);
  return task;
}

bool FewRows::nearest(const MatrixView& rows, int32_t* labels, float* keys, float* scratch) const {
  return HWY_DYNAMIC_DISPATCH(NearestOfFew)(task(), rows, labels, keys, scratch);
}

void FewRows::nearer(const MatrixView& rows, const float* nearest, float* distances, int64_t stride,
                     float* scratch) const {
  HWY_DYNAMIC_DISPATCH(NearerOfFew)(task(), rows, nearest, distances, stride, scratch);
}

void add_rows_cpu(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums,
                  double* weight_sums) {
  HWY_DYNAMIC_DISPATCH(AddRows)(rows, labels, weights, sums, weight_sums);
}

}  // namespace kith
#endif
