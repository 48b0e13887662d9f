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

using Vec = hn::Vec<F32>;
using I32 = hn::ScalableTag<int32_t>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
constexpr int64_t kLaneVectors = kCanonicalLanes / kDoubles;

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

// The rest of the canonical tree: lanes half a vector apart, then a quarter, ...
template <typename D>
HWY_INLINE double add_halves(D, hn::Vec<D> lanes) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(lanes);
  } else {
    const hn::Half<D> half;
    return add_halves(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
}

// The canonical key of a row and one of the few, both padded with zeros.
template <KeyKind kKind>
HWY_INLINE float canonical_of(const float* row, const double* few, int64_t padded) {
  Doubles lanes[kLaneVectors];
  for (auto& lane : lanes) lane = hn::Zero(F64());
  for (int64_t c = 0; c < padded; c += kCanonicalLanes) {
    for (int64_t v = 0; v < kLaneVectors; ++v) {
      const auto a = load_doubles(row + c + v * kDoubles);
      const auto b = hn::LoadU(F64(), few + c + v * kDoubles);
      lanes[v] = step_lanes<kKind>(lanes[v], a, b);
    }
  }
  // Vectors whole lanes apart are added as vectors: the tree's first levels.
  int64_t vectors = kLaneVectors;
  for (; vectors > 1; vectors /= 2) {
    for (int64_t v = 0; v < vectors / 2; ++v) lanes[v] = hn::Add(lanes[v], lanes[v + vectors / 2]);
  }
  return canonical_key<kKind>(add_halves(F64(), lanes[0]), 0, 0);
}

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
  for (int64_t c = 0; c < task.cols; ++c) {
    Vec few[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) few[v] = hn::LoadU(d, tables[v] + c * kFewRowsTile);
#pragma GCC unroll 8
    for (int r = 0; r < kGroup; ++r) {
      const Vec value = hn::Set(d, rows[r * task.padded + c]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, few[v], sums[r][v]);
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
    // As wide as what is stored, which a processor passes on at once.
    using Bits = std::conditional_t<(kFloats > 8), uint16_t, uint8_t>;
    HWY_ALIGN uint8_t bytes[8];
    hn::StoreMaskBits(d, hn::Le(hn::LoadU(d, values + first), most), bytes);
    Bits stored;
    std::memcpy(&stored, bytes, sizeof stored);
    for (uint32_t bits = stored & ((1u << kFloats) - 1); bits != 0; bits &= bits - 1) {
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

template <KeyKind kKind>
HWY_INLINE void settle(const FewRowsTask& task, const float* row, const float* values, float squared_norm,
                       int32_t* label, float* key) {
  uint64_t best = kPadding;
  const auto score = [&](int64_t few) HWY_ATTR {
    const float own = canonical_of<kKind>(row, task.wide + few * task.padded, task.padded);
    best = std::min(best, pack_neighbor(ordered_key(own), static_cast<uint32_t>(few)));
  };
  const float slack = slack_of(task, squared_norm);
  // Whatever is not finite, or close to it, is compared with all.
  if (!(slack < HUGE_VALF) || for_up_to(values, task.width, least_of(values, task.width) + slack, score) == 0) {
    for (int64_t few = 0; few < task.count; ++few) score(few);
  }
  *label = static_cast<int32_t>(row_of(best));
  *key = key_of_ordered(ordered_of(best));
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

// Goes over the rows, a group at a time: use(row, widened values, values of the few, squared norm).
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
  for (int64_t first = 0; first < rows.rows(); first += kGroup) {
    const int64_t count = std::min<int64_t>(kGroup, rows.rows() - first);
    for (int64_t r = 0; r < count; ++r) {
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
    for (int64_t r = 0; r < count; ++r) {
      use(first + r, group + r * task.padded, values + r * task.width, norms[r]);
    }
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

// Rows of few columns, a vector of rows at a time: each lane has its row's nearest and second nearest, by direct
// distances, whose errors are relative. A row of which these are not apart is compared with all, canonically.
void nearest_short(const FewRowsTask& task, const MatrixView& rows, int32_t* labels, float* keys, float* scratch) {
  const F32 d;
  const I32 di;
  const hn::Half<F32> half;
  const auto* const data = static_cast<const float*>(rows.data());
  const int64_t stride = rows.row_stride();
  std::fill_n(scratch, task.padded, 0.0f);
  const auto exactly = [&](int64_t i) HWY_ATTR {
    std::copy_n(data + i * stride, task.cols, scratch);
    uint64_t best = kPadding;
    for (int64_t few = 0; few < task.count; ++few) {
      const float own = canonical_of<KeyKind::squared_l2>(scratch, task.wide + few * task.padded, task.padded);
      best = std::min(best, pack_neighbor(ordered_key(own), static_cast<uint32_t>(few)));
    }
    labels[i] = static_cast<int32_t>(row_of(best));
    keys[i] = key_of_ordered(ordered_of(best));
  };
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
  const Vec above = hn::Set(d, 1 + task.relative);
  const Vec below = hn::Set(d, 1 - task.relative);
  const Vec least = hn::Set(d, task.underflow);
  int64_t first = 0;
  for (; first + kFloats <= rows.rows(); first += kFloats) {
    Vec columns[kShortColumns];
    for (int64_t c = 0; c < task.cols; ++c) columns[c] = hn::GatherIndex(d, data + first * stride + c, places);
    Vec best = hn::Set(d, HUGE_VALF);
    Vec second = best;
    auto label = hn::Zero(di);
    for (int64_t few = 0; few < task.count; ++few) {
      Vec value = hn::Zero(d);
      for (int64_t c = 0; c < task.cols; ++c) {
        const Vec apart = hn::Sub(columns[c], hn::Set(d, task.columns[c * task.width + few]));
        value = hn::MulAdd(apart, apart, value);
      }
      const auto nearer = hn::Lt(value, best);
      second = hn::Min(second, hn::Max(value, best));
      best = hn::Min(best, value);
      label = hn::IfThenElse(hn::RebindMask(di, nearer), hn::Set(di, static_cast<int32_t>(few)), label);
    }
    hn::StoreU(label, di, labels + first);
    Vec lower[kShortColumns];  // of the centres: which lanes' columns are widened in halves
    for (int64_t c = 0; c < task.cols; ++c) lower[c] = look_up(task.columns + c * task.width, task.width, label);
    const F64 dd;
    const auto low = short_keys(task.cols, [&](int64_t c) HWY_ATTR {
      return hn::Sub(hn::PromoteTo(dd, hn::LowerHalf(half, columns[c])),
                     hn::PromoteTo(dd, hn::LowerHalf(half, lower[c])));
    });
    const auto high = short_keys(task.cols, [&](int64_t c) HWY_ATTR {
      return hn::Sub(hn::PromoteTo(dd, hn::UpperHalf(half, columns[c])),
                     hn::PromoteTo(dd, hn::UpperHalf(half, lower[c])));
    });
    hn::StoreU(low, half, keys + first);
    hn::StoreU(high, half, keys + first + kFloats / 2);
    // A NaN is never sure.
    const auto sure = hn::Gt(hn::Mul(second, below), hn::MulAdd(best, above, least));
    const auto is_one = hn::Lt(best, hn::Set(d, task.largest));
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(sure, is_one)))) continue;
    HWY_ALIGN float flags[kFloats];
    hn::Store(hn::IfThenElseZero(hn::And(sure, is_one), hn::Set(d, 1.0f)), d, flags);
    for (int64_t j = 0; j < kFloats; ++j) {
      if (flags[j] == 0.0f) exactly(first + j);
    }
  }
  for (; first < rows.rows(); ++first) exactly(first);
}
#endif

void NearestOfFew(const FewRowsTask& task, const MatrixView& rows, int32_t* labels, float* keys, float* scratch) {
#if HWY_TARGET != HWY_SCALAR
  // Among values that are not numbers the nearest might be overlooked: the constant is finite where the few are.
  const bool short_rows = task.cols <= kShortColumns && rows.row_stride() <= (1 << 20) && std::isfinite(task.constant);
  if (short_rows && rows.dtype() == DType::f32 && task.kind == KeyKind::squared_l2) {
    return nearest_short(task, rows, labels, keys, scratch);
  }
#endif
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    if (task.kind == KeyKind::inner_product) {
      for_rows<T>(task, rows, scratch, [&](int64_t i, const float* row, const float* values, float norm) HWY_ATTR {
        settle<KeyKind::inner_product>(task, row, values, norm, labels + i, keys + i);
      });
    } else {
      for_rows<T>(task, rows, scratch, [&](int64_t i, const float* row, const float* values, float norm) HWY_ATTR {
        settle<KeyKind::squared_l2>(task, row, values, norm, labels + i, keys + i);
      });
    }
  });
}

// Squared distances to each of the few that is nearer than what the row has; the others are left.
void NearerOfFew(const FewRowsTask& task, const MatrixView& rows, const float* nearest, float* distances,
                 int64_t stride, float* scratch) {
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    for_rows<T>(task, rows, scratch, [&](int64_t i, const float* row, const float* values, float norm) HWY_ATTR {
      const auto score = [&](int64_t few) HWY_ATTR {
        if (few >= task.count) return;
        const float key = canonical_of<KeyKind::squared_l2>(row, task.wide + few * task.padded, task.padded);
        float& distance = distances[few * stride + i];
        distance = std::min(distance, key_of_ordered(ordered_key(key)));
      };
      const float slack = slack_of(task, norm);
      if (slack < HUGE_VALF && nearest[i] < HUGE_VALF) {
        for_up_to(values, task.width, nearest[i] - norm + slack, score);
      } else {
        for (int64_t few = 0; few < task.count; ++few) score(few);
      }
    });
  });
}

// A weight times a value is exact in double, so that a fused step rounds as two do.
template <typename T>
void add_type(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums, double* weight_sums) {
  const int64_t cols = rows.cols();
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const T* const row = static_cast<const T*>(rows.data()) + i * rows.row_stride();
    double* const sum = sums + labels[i] * cols;
    const double weight = weights == nullptr ? 1.0 : static_cast<double>(weights[i]);
    const auto w = hn::Set(F64(), weight);
    int64_t c = 0;
    for (; c + kDoubles <= cols; c += kDoubles) {
      hn::StoreU(hn::Add(hn::LoadU(F64(), sum + c), hn::Mul(w, load_doubles(row + c))), F64(), sum + c);
    }
    for (; c < cols; ++c) sum[c] += weight * static_cast<double>(static_cast<float>(row[c]));
    weight_sums[labels[i]] += weight;
  }
}

void AddRows(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums, double* weight_sums) {
  visit_dtype(rows.dtype(), [&](auto stored) {
    add_type<typename decltype(stored)::type>(rows, labels, weights, sums, weight_sums);
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
         array_bytes<double>(count * padded(cols)) + array_bytes<float>(padded(cols));
}

int64_t FewRows::scratch_floats(int64_t cols) { return kFewRowsTogether * (2 * padded(cols) + padded(kMostFewRows)); }

FewRows::FewRows(KeyKind kind, std::vector<float> origin, int64_t capacity, const Resources& resources)
    : kind_(kind),
      origin_(std::move(origin)),
      cols_(static_cast<int64_t>(origin_.size())),
      table_(cols_ * padded(capacity), "the centres", resources),
      terms_(padded(capacity), "the centres", resources),
      columns_(short_columns(cols_) * padded(capacity), "the centres", resources),
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
  double largest = 0;
  for (int64_t i = 0; i < count_; ++i) {
    const auto* const row = reinterpret_cast<const float*>(rows.row(i));
    double squares = 0;
    for (int64_t c = 0; c < cols_; ++c) {
      const float moved = row[c] - origin_[static_cast<size_t>(c)];
      squares += static_cast<double>(moved) * static_cast<double>(moved);
      const int64_t tile = i / kFewRowsTile * kFewRowsTile;
      table_[tile * cols_ + c * kFewRowsTile + i - tile] = (differences ? -2.0f : -1.0f) * moved;
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

void FewRows::nearest(const MatrixView& rows, int32_t* labels, float* keys, float* scratch) const {
  HWY_DYNAMIC_DISPATCH(NearestOfFew)(task(), rows, labels, keys, scratch);
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
