// The form of assignment for rows of few columns, and for codewords of any: a vector holds a column of several rows,
// and each centre is a broadcast value for each column. Included once for each instruction set.
//
// Products in f32 of vectors less an origin give each lane its nearest and second nearest. Where the bound cannot tell
// these apart, canonical keys of all that it cannot rule out decide.
//
// Cost: rows x centres x columns fused multiply-adds, and five operations for each row and centre; for keys rows x
// columns operations in double.
#if defined(KITH_KERNELS_ASSIGN_ASSIGN_COLUMNS_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_ASSIGN_ASSIGN_COLUMNS_CPU_INL
#undef KITH_KERNELS_ASSIGN_ASSIGN_COLUMNS_CPU_INL
#else
#define KITH_KERNELS_ASSIGN_ASSIGN_COLUMNS_CPU_INL
#endif

#include "kernels/assign/canonical_pair_cpu-inl.hpp"
#include "kernels/assign/compare_task.hpp"
#include "kernels/distance/to_floats_cpu-inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I32 = hn::ScalableTag<int32_t>;
constexpr int kCentres = static_cast<int>(kCentreGroup);
// Rows compared at a time, in vectors; each centre value is loaded once for all of them.
#if HWY_ARCH_ARM_A64
constexpr int kRowVectors = 4;
#else
constexpr int kRowVectors = 2;
#endif
constexpr int64_t kTileRows = kRowVectors * kFloats;
constexpr int64_t kFewRows = 4;  // so few rows are compared one by one

// Requested results: labels; labels and keys; or the centres of the least f32 values, which may not be the nearest but
// are the same with every instruction set.
enum class Columns : uint8_t { labels, keys, least_values };

// Column c of a tile's rows from columns[c * kTileRows] on.
HWY_INLINE void side_by_side(const float* rows, int64_t stride, int64_t cols, float* columns) {
  const F32 d;
  int64_t c = 0;
#if HWY_ARCH_ARM_A64
  const hn::Repartition<double, F32> pairs;
  for (; c + 4 <= cols; c += 4) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < kTileRows; r += 4) {
      const float* const from = rows + r * stride + c;
      const Vec row0 = hn::LoadU(d, from);
      const Vec row1 = hn::LoadU(d, from + stride);
      const Vec row2 = hn::LoadU(d, from + 2 * stride);
      const Vec row3 = hn::LoadU(d, from + 3 * stride);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
      float* const to = columns + c * kTileRows + r;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + kTileRows);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * kTileRows);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * kTileRows);
    }
  }
  for (; c + 2 <= cols; c += 2) {
    const hn::Half<F32> half;
#pragma GCC unroll 4
    for (int64_t r = 0; r < kTileRows; r += 4) {
      const float* const from = rows + r * stride + c;
      const Vec rows01 = hn::Combine(d, hn::LoadU(half, from + stride), hn::LoadU(half, from));
      const Vec rows23 = hn::Combine(d, hn::LoadU(half, from + 3 * stride), hn::LoadU(half, from + 2 * stride));
      hn::StoreU(hn::ConcatEven(d, rows23, rows01), d, columns + c * kTileRows + r);
      hn::StoreU(hn::ConcatOdd(d, rows23, rows01), d, columns + (c + 1) * kTileRows + r);
    }
  }
  for (; c < cols; ++c) {
    for (int64_t r = 0; r < kTileRows; ++r) columns[c * kTileRows + r] = rows[r * stride + c];
  }
#else
  const I32 di;
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
  for (; c < cols; ++c) {
    for (int v = 0; v < kRowVectors; ++v) {
      hn::StoreU(hn::GatherIndex(d, rows + v * kFloats * stride + c, places), d, columns + c * kTileRows + v * kFloats);
    }
  }
#endif
}

// Subtracts the origin from the columns, and computes the squared norms of the shifted rows.
HWY_INLINE void move_columns(const CompareTask& task, const float* columns, float* moved, Vec (&norms)[kRowVectors]) {
  const F32 d;
  for (auto& norm : norms) norm = hn::Zero(d);
  for (int64_t c = 0; c < task.cols; ++c) {
    const Vec origin = hn::Set(d, task.origin[c]);
#pragma GCC unroll 4
    for (int v = 0; v < kRowVectors; ++v) {
      const Vec value = hn::Sub(hn::LoadU(d, columns + c * kTileRows + v * kFloats), origin);
      norms[v] = hn::MulAdd(value, value, norms[v]);
      hn::StoreU(value, d, moved + c * kTileRows + v * kFloats);
    }
  }
}

// The factor of one of a group's centres in all lanes. Where the columns are unrolled on ARM, a product takes it from a
// vector of all four.
#if HWY_ARCH_ARM_A64
struct GroupVector {
  Vec factors;
  HWY_INLINE explicit GroupVector(const float* from) : factors(hn::LoadU(F32(), from)) {}
  HWY_INLINE Vec of(int w) {
    __asm__("" : "+w"(factors.raw));  // or else each is copied to a register of its own, which sums then lack
    if (w == 0) return hn::Broadcast<0>(factors);
    if (w == 1) return hn::Broadcast<1>(factors);
    return w == 2 ? hn::Broadcast<2>(factors) : hn::Broadcast<3>(factors);
  }
};
#endif
struct GroupValues {
  const float* factors;
  HWY_INLINE explicit GroupValues(const float* from) : factors(from) {}
  HWY_INLINE Vec of(int w) const { return hn::Set(F32(), factors[w]); }
};

// For kVectors vectors of rows, whose columns begin at `columns`. kCols: the columns, or 0 where they are only known at
// run time. kUsed: centres of a group that are compared; the others only fill it up.
template <Columns kWanted, int kCols, int kVectors, int kUsed = kCentres>
HWY_INLINE void nearest_of_columns(const CompareTask& task, const float* columns, Vec* best, Vec* second,
                                   hn::Vec<I32>* label) {
  const F32 d;
  const I32 di;
#if HWY_ARCH_ARM_A64
  using Group = std::conditional_t<kCols == 0, GroupValues, GroupVector>;
#else
  using Group = GroupValues;
#endif
  const int64_t cols = kCols == 0 ? task.cols : kCols;
  Vec least[kVectors];
  Vec next[kVectors];
  hn::Vec<I32> nearest[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    least[v] = next[v] = hn::Set(d, HUGE_VALF);
    nearest[v] = hn::Zero(di);
  }
  const float* group = task.groups;
  for (int64_t first = 0; first < task.count; first += kCentres, group += (cols + 1) * kCentres) {
    Vec sums[kUsed][kVectors];
#pragma GCC unroll 8
    for (int w = 0; w < kUsed; ++w) {
      const Vec term = hn::Set(d, group[w]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[w][v] = term;
    }
    const auto step = [&](int64_t c) HWY_ATTR {
      Vec row[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, columns + c * kTileRows + v * kFloats);
      Group factors(group + (c + 1) * kCentres);
#pragma GCC unroll 8
      for (int w = 0; w < kUsed; ++w) {
        const Vec factor = factors.of(w);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          sums[w][v] = kWanted == Columns::least_values ? fused(row[v], factor, sums[w][v])
                                                        : hn::MulAdd(row[v], factor, sums[w][v]);
        }
      }
    };
    if constexpr (kCols == 0) {
      for (int64_t c = 0; c < cols; ++c) step(c);
    } else {
#pragma GCC unroll 16
      for (int64_t c = 0; c < kCols; ++c) step(c);
    }
#pragma GCC unroll 8
    for (int w = 0; w < kUsed; ++w) {
      const auto number = hn::Set(di, static_cast<int32_t>(first) + w);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vec value = sums[w][v];
        const auto nearer = hn::RebindMask(di, hn::Lt(value, least[v]));
        if constexpr (kWanted != Columns::least_values) next[v] = hn::Min(next[v], hn::Max(value, least[v]));
        least[v] = hn::Min(value, least[v]);
        nearest[v] = hn::IfThenElse(nearer, number, nearest[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best[v] = least[v];
    second[v] = next[v];
    label[v] = nearest[v];
  }
}

template <Columns kWanted>
HWY_INLINE void nearest_of_columns(const CompareTask& task, const float* columns, Vec (&best)[kRowVectors],
                                   Vec (&second)[kRowVectors], hn::Vec<I32> (&label)[kRowVectors]) {
  if constexpr (kWanted == Columns::least_values) {
    return nearest_of_columns<kWanted, 0, kRowVectors>(task, columns, best, second, label);
  }
  // Two vectors at a time where the columns are unrolled: registers hold their sums beside what they are compared with.
  const auto unrolled = [&](auto known) HWY_ATTR {
#pragma GCC unroll 2
    for (int v = 0; v < kRowVectors; v += 2) {
      nearest_of_columns<kWanted, decltype(known)::value, 2>(task, columns + v * kFloats, best + v, second + v,
                                                             label + v);
    }
  };
  if (task.count <= 2) return nearest_of_columns<kWanted, 0, kRowVectors, 2>(task, columns, best, second, label);
  switch (task.cols) {
    case 2: return unrolled(std::integral_constant<int, 2>());
    case 4: return unrolled(std::integral_constant<int, 4>());
    case 8: return unrolled(std::integral_constant<int, 8>());
    default: return nearest_of_columns<kWanted, 0, kRowVectors>(task, columns, best, second, label);
  }
}

// The exact nearest centre of one row, as a packed neighbour: recomputes the values, and the canonical keys of the
// centres they cannot rule out. `slack` is infinite if values are unusable. `row` is zero-padded, `moved` is shifted.
template <typename Value>
HWY_NOINLINE uint64_t settle_row(const CompareTask& task, const Value* centres, const float* row, const float* moved,
                                 float slack) {
  const F32 d;
  uint64_t best = kPadding;
  const auto score = [&](int64_t w) HWY_ATTR {
    const PairWith<Value> pair{row, nullptr, centres + w * task.padded};
    const float key = canonical_of<KeyKind::squared_l2>(pair, task.padded);
    best = std::min(best, pack_neighbor(ordered_key(key), static_cast<uint32_t>(w)));
  };
  HWY_ALIGN float values[kMostFewCentres];
  Vec least = hn::Set(d, HUGE_VALF);
  for (int64_t w = 0; w < task.width; w += kFloats) {
    const float* const factors = task.table + w / kCentreTile * kCentreTile * task.cols + w % kCentreTile;
    Vec value = hn::LoadU(d, task.terms + w);
    for (int64_t c = 0; c < task.cols; ++c) {
      value = hn::MulAdd(hn::Set(d, moved[c]), hn::LoadU(d, factors + c * kCentreTile), value);
    }
    hn::Store(value, d, values + w);
    least = hn::Min(least, value);
  }
  const float limit = hn::GetLane(hn::MinOfLanes(d, least)) + slack;
  if (limit < HUGE_VALF) {  // false for a NaN
    for (int64_t w = 0; w < task.count; ++w) {
      if (values[w] <= limit) score(w);
    }
  }
  if (best == kPadding) {
    for (int64_t w = 0; w < task.count; ++w) score(w);
  }
  return best;
}

// Looks up a value per label for a vector of rows; `table` is padded to whole vectors.
HWY_INLINE Vec look_up(const float* table, int64_t width, hn::Vec<I32> centre) {
  if (width == kFloats) return hn::TableLookupLanes(hn::LoadU(F32(), table), hn::IndicesFromVec(F32(), centre));
  return hn::GatherIndex(F32(), table, centre);
}

// Canonical keys of several rows, one per lane of doubles, column by column.
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
  return to_floats(lanes[0]);
}

// Keys of a vector of rows, of up to kShortColumns columns, to the centres of these labels.
HWY_INLINE void keys_of_columns(const CompareTask& task, const float* columns, hn::Vec<I32> label, float* keys) {
  const F32 d;
  const F64 dd;
  const hn::Half<F32> half;
  Vec centres[kShortColumns];
  for (int64_t c = 0; c < task.cols; ++c) centres[c] = look_up(task.columns + c * task.width, task.width, label);
  const auto column = [&](int64_t c) HWY_ATTR { return hn::LoadU(d, columns + c * kTileRows); };
  const auto low = short_keys(task.cols, [&](int64_t c) HWY_ATTR {
    return hn::Sub(hn::PromoteTo(dd, hn::LowerHalf(half, column(c))),
                   hn::PromoteTo(dd, hn::LowerHalf(half, centres[c])));
  });
  const auto high = short_keys(task.cols, [&](int64_t c) HWY_ATTR {
    return hn::Sub(hn::PromoteTo(dd, hn::UpperHalf(half, column(c))),
                   hn::PromoteTo(dd, hn::UpperHalf(half, centres[c])));
  });
  hn::StoreU(low, half, keys);
  hn::StoreU(high, half, keys + kFloats / 2);
}

// Rows and where their labels go.
template <typename Label>
struct ColumnRows {
  const float* rows = nullptr;
  int64_t stride = 0;
  int64_t count = 0;
  Label* labels = nullptr;
  int64_t label_stride = 1;
  float* keys = nullptr;
  float* scratch = nullptr;  // 3 (with keys) or 2 x kTileRows x cols, and 2 padded rows

  HWY_INLINE void put(const CompareTask& task, int64_t i, uint32_t centre) const {
    labels[i * label_stride] = task.number == nullptr ? static_cast<Label>(centre) : task.number[centre];
  }
};

// By squared L2. Returns false if values exceed the range of the bounds.
template <Columns kWanted, typename Value, typename Label>
HWY_INLINE bool assign_columns(const CompareTask& task, const Value* centres, const ColumnRows<Label>& out) {
  const F32 d;
  const I32 di;
  constexpr bool kKeys = kWanted == Columns::keys;
  // Scratch: columns as stored and shifted (shared if no keys are wanted), the last rows gathered into a tile, and one
  // doubtful row as stored and shifted.
  float* const columns = out.scratch;
  float* const moved = kKeys ? columns + kTileRows * task.cols : columns;
  float* const last_rows = moved + kTileRows * task.cols;
  float* const padded = last_rows + kTileRows * task.cols;
  float* const one = padded + task.padded;
  bool bounded = true;
  const auto settle = [&](const float* row, int64_t i, float slack) HWY_ATTR {
    std::copy_n(row, task.cols, padded);
    const uint64_t best = settle_row(task, centres, padded, one, slack);
    out.put(task, i, row_of(best));
    if constexpr (kKeys) out.keys[i] = key_of_ordered(ordered_of(best));
    bounded &= slack < HUGE_VALF;
  };
  if constexpr (kWanted != Columns::least_values) {
    std::fill_n(padded, task.padded, 0.0f);
    if (out.count <= kFewRows) {
      for (int64_t i = 0; i < out.count; ++i) {
        const float* const row = out.rows + i * out.stride;
        float squares = 0;
        for (int64_t c = 0; c < task.cols; ++c) {
          one[c] = row[c] - task.origin[c];
          squares = squares + one[c] * one[c];
        }
        settle(row, i, task.slack(squares));
      }
      return bounded;
    }
  }
  const bool far = out.stride > (1 << 24);  // gathers count in 32 bits
  for (int64_t first = 0; first < out.count; first += kTileRows) {
    const int64_t some = std::min(kTileRows, out.count - first);
    const float* from = out.rows + first * out.stride;
    int64_t apart = out.stride;
    if (some < kTileRows || far) {
      for (int64_t i = 0; i < kTileRows; ++i) {
        std::copy_n(from + std::min(i, some - 1) * out.stride, task.cols, last_rows + i * task.cols);
      }
      from = last_rows;
      apart = task.cols;
    }
    side_by_side(from, apart, task.cols, columns);
    Vec norms[kRowVectors];
    Vec best[kRowVectors];
    Vec second[kRowVectors];
    hn::Vec<I32> label[kRowVectors];
    if constexpr (kWanted != Columns::least_values) move_columns(task, columns, moved, norms);
    nearest_of_columns<kWanted>(task, moved, best, second, label);
#pragma GCC unroll 4
    for (int v = 0; v < kRowVectors; ++v) {
      const int64_t here = std::min(kFloats, some - v * kFloats);
      const bool whole = here == kFloats;
      if constexpr (std::is_same_v<Label, int32_t>) {  // numbered as they are, one after the other
        if (whole) hn::StoreU(label[v], di, out.labels + first + v * kFloats);
      }
      if (!std::is_same_v<Label, int32_t> || !whole) {
        HWY_ALIGN int32_t numbers[kFloats];
        hn::Store(label[v], di, numbers);
        for (int64_t i = 0; i < here; ++i) out.put(task, first + v * kFloats + i, static_cast<uint32_t>(numbers[i]));
      }
      if constexpr (kKeys) {
        HWY_ALIGN float keys[kFloats];
        float* const to = out.keys + first + v * kFloats;
        keys_of_columns(task, columns + v * kFloats, label[v], whole ? to : keys);
        if (!whole) std::copy_n(keys, std::max<int64_t>(here, 0), to);
      }
      if constexpr (kWanted == Columns::least_values) continue;
      // No less than CompareTask::slack, without a root: c (|q| + |x|)^2 <= 2 c (|q|^2 + |x|^2). A NaN is never sure.
      const Vec error = hn::MulAdd(norms[v], hn::Set(d, 1.01f * task.bound.quadratic), hn::Set(d, task.bound.constant));
      const Vec slack = hn::Mul(hn::Set(d, 4.0f), error);
      const auto is_bounded = hn::Lt(norms[v], hn::Set(d, static_cast<float>(kLargestSquaredNorm)));
      const auto sure = hn::And(hn::Gt(hn::Sub(second[v], best[v]), slack), is_bounded);
      uint32_t doubt = bits_of(hn::Not(sure));
      if (HWY_LIKELY(doubt == 0)) continue;
      HWY_ALIGN float slacks[kFloats];
      hn::Store(hn::IfThenElse(is_bounded, slack, hn::Set(d, HUGE_VALF)), d, slacks);
      for (; doubt != 0; doubt &= doubt - 1) {
        const int64_t i = std::countr_zero(doubt);
        if (i >= here) break;
        const int64_t at = v * kFloats + i;
        for (int64_t c = 0; c < task.cols; ++c) one[c] = moved[c * kTileRows + at];
        settle(from + at * apart, first + at, slacks[i]);
      }
    }
  }
  return bounded;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
