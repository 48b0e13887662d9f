#include "quantize/product/product_nearest_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/product/product_nearest_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "kernels/distance/error_bound.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Vec = hn::Vec<F32>;
using I32 = hn::ScalableTag<int32_t>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
constexpr int kGroup = static_cast<int>(NearestCodeword::kWordGroup);
constexpr int kRowVectors = 2;  // rows at a time, in vectors: a codeword's value is loaded for both
constexpr int64_t kRows = kRowVectors * kFloats;
constexpr int64_t kFewRows = 4;  // as cheap one by one
constexpr int64_t kLaneVectors = kCanonicalLanes / kDoubles;

// Lanes half a vector apart, then a quarter, ...: the end of the canonical tree.
template <typename D>
HWY_INLINE double add_halves(D, hn::Vec<D> lanes) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(lanes);
  } else {
    const hn::Half<D> half;
    return add_halves(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
}

// Both padded with zeros to whole groups of canonical lanes.
HWY_INLINE float canonical_distance(const float* row, const float* word, int64_t padded) {
  Doubles lanes[kLaneVectors];
  for (auto& lane : lanes) lane = hn::Zero(F64());
  for (int64_t c = 0; c < padded; c += kCanonicalLanes) {
    for (int64_t v = 0; v < kLaneVectors; ++v) {
      lanes[v] = step_lanes<KeyKind::squared_l2>(lanes[v], load_doubles(row + c + v * kDoubles),
                                                 load_doubles(word + c + v * kDoubles));
    }
  }
  for (int64_t vectors = kLaneVectors; vectors > 1; vectors /= 2) {
    for (int64_t v = 0; v < vectors / 2; ++v) lanes[v] = hn::Add(lanes[v], lanes[v + vectors / 2]);
  }
  return canonical_key<KeyKind::squared_l2>(add_halves(F64(), lanes[0]), 0, 0);
}

// The exact answer for one row: canonical keys of what the values, anew, cannot rule out. `slack` is finite where the
// values are good for anything. `padded` holds the row, `moved` the same less the origin.
HWY_NOINLINE uint8_t settle(const NearestCodewordTask& task, const float* padded, const float* moved, float slack) {
  const F32 d;
  const int64_t padded_cols = round_up(task.cols, kCanonicalLanes);
  uint64_t best = kPadding;
  const auto score = [&](int64_t w) HWY_ATTR {
    const float key = canonical_distance(padded, task.words + w * padded_cols, padded_cols);
    best = std::min(best, pack_neighbor(ordered_key(key), static_cast<uint32_t>(w)));
  };
  HWY_ALIGN float values[256];
  Vec least = hn::Set(d, HUGE_VALF);
  for (int64_t w = 0; w < task.width; w += kFloats) {
    Vec value = hn::LoadU(d, task.terms + w);
    for (int64_t c = 0; c < task.cols; ++c) {
      value = hn::MulAdd(hn::Set(d, moved[c]), hn::LoadU(d, task.columns + c * task.width + w), value);
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
  return task.number[row_of(best)];
}

// A column of kRows rows after the other, less the origin.
HWY_INLINE void bring_columns(const NearestCodewordTask& task, const float* rows, int64_t stride, float* columns,
                              Vec (&norms)[kRowVectors]) {
  const F32 d;
  const I32 di;
  for (auto& norm : norms) norm = hn::Zero(d);
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
  for (int64_t c = 0; c < task.cols; ++c) {
    const Vec origin = hn::Set(d, task.origin[c]);
    for (int v = 0; v < kRowVectors; ++v) {
      const Vec moved = hn::Sub(hn::GatherIndex(d, rows + v * kFloats * stride + c, places), origin);
      norms[v] = hn::MulAdd(moved, moved, norms[v]);
      hn::StoreU(moved, d, columns + c * kRows + v * kFloats);
    }
  }
}

// Which of a vector's rows are in doubt, as bits.
HWY_INLINE uint32_t bits_of(hn::Mask<F32> mask) {
  HWY_ALIGN uint8_t bytes[8] = {};
  hn::StoreMaskBits(F32(), mask, bytes);
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits & ((1u << kFloats) - 1);
}

// kCols: the columns, or 0 where they are only known at run time.
template <int kCols>
HWY_INLINE void nearest_of_columns(const NearestCodewordTask& task, const float* columns, Vec (&best)[kRowVectors],
                                   Vec (&second)[kRowVectors], hn::Vec<I32> (&label)[kRowVectors]) {
  const F32 d;
  const I32 di;
  const int64_t cols = kCols == 0 ? task.cols : kCols;
#pragma GCC unroll 8
  for (int v = 0; v < kRowVectors; ++v) {
    best[v] = second[v] = hn::Set(d, HUGE_VALF);
    label[v] = hn::Zero(di);
  }
  const float* group = task.groups;
  for (int64_t first = 0; first < task.count; first += kGroup, group += (cols + 1) * kGroup) {
    Vec sums[kGroup][kRowVectors];
#pragma GCC unroll 8
    for (int w = 0; w < kGroup; ++w) {
#pragma GCC unroll 8
      for (int v = 0; v < kRowVectors; ++v) sums[w][v] = hn::Set(d, group[w]);
    }
    const auto step = [&](int64_t c) HWY_ATTR {
      Vec row[kRowVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kRowVectors; ++v) row[v] = hn::LoadU(d, columns + c * kRows + v * kFloats);
#pragma GCC unroll 8
      for (int w = 0; w < kGroup; ++w) {
        const Vec factor = hn::Set(d, group[(c + 1) * kGroup + w]);
#pragma GCC unroll 8
        for (int v = 0; v < kRowVectors; ++v) sums[w][v] = hn::MulAdd(row[v], factor, sums[w][v]);
      }
    };
    if constexpr (kCols == 0) {
      for (int64_t c = 0; c < cols; ++c) step(c);
    } else {
#pragma GCC unroll 16
      for (int64_t c = 0; c < kCols; ++c) step(c);
    }
#pragma GCC unroll 8
    for (int w = 0; w < kGroup; ++w) {
      const auto number = hn::Set(di, static_cast<int32_t>(first) + w);
#pragma GCC unroll 8
      for (int v = 0; v < kRowVectors; ++v) {
        const Vec value = sums[w][v];
        const auto nearer = hn::RebindMask(di, hn::Lt(value, best[v]));
        second[v] = hn::Min(second[v], hn::Max(value, best[v]));
        best[v] = hn::Min(value, best[v]);
        label[v] = hn::IfThenElse(nearer, number, label[v]);
      }
    }
  }
}

void NearestOfCodewords(const NearestCodewordTask& task, const float* rows, int64_t stride, int64_t count,
                        uint8_t* labels, int64_t label_stride, float* scratch) {
  const F32 d;
  const I32 di;
  const int64_t padded_cols = round_up(task.cols, kCanonicalLanes);
  // Columns; the same of the last rows, brought together; one row in doubt, as it is and less the origin.
  float* const columns = scratch;
  float* const last_rows = columns + kRows * task.cols;
  float* const padded = last_rows + kRows * task.cols;
  float* const moved = padded + padded_cols;
  std::fill_n(padded, padded_cols, 0.0f);
  if (count <= kFewRows) {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(rows + i * stride, task.cols, padded);
      float squares = 0;
      for (int64_t c = 0; c < task.cols; ++c) {
        moved[c] = padded[c] - task.origin[c];
        squares = squares + moved[c] * moved[c];
      }
      const float norm = std::sqrt(squares) * 1.001f;
      const bool bounded = squares < static_cast<float>(kLargestSquaredNorm);
      const float error = task.constant + norm * (task.linear + norm * task.quadratic);
      labels[i * label_stride] = settle(task, padded, moved, bounded ? 2 * error : HUGE_VALF);
    }
    return;
  }
  // Gathers count in 32 bits.
  const bool far = stride > (1 << 24);
  for (int64_t first = 0; first < count; first += kRows) {
    const int64_t some = std::min(kRows, count - first);
    const float* from = rows + first * stride;
    int64_t apart = stride;
    if (some < kRows || far) {
      for (int64_t i = 0; i < kRows; ++i) {
        std::copy_n(from + std::min(i, some - 1) * stride, task.cols, last_rows + i * task.cols);
      }
      from = last_rows;
      apart = task.cols;
    }
    Vec norms[kRowVectors];
    Vec best[kRowVectors];
    Vec second[kRowVectors];
    hn::Vec<I32> label[kRowVectors];
    bring_columns(task, from, apart, columns, norms);
    switch (task.cols) {
      case 2: nearest_of_columns<2>(task, columns, best, second, label); break;
      case 4: nearest_of_columns<4>(task, columns, best, second, label); break;
      case 8: nearest_of_columns<8>(task, columns, best, second, label); break;
      default: nearest_of_columns<0>(task, columns, best, second, label);
    }
    for (int v = 0; v < kRowVectors; ++v) {
      HWY_ALIGN int32_t numbers[kFloats];
      hn::Store(label[v], di, numbers);
      const int64_t here = std::min(kFloats, some - v * kFloats);
      for (int64_t i = 0; i < here; ++i) {
        labels[(first + v * kFloats + i) * label_stride] = task.number[numbers[i]];
      }
      // How far two values can be from where they should be, together; the norm's own rounding is in 1.001.
      const Vec norm = hn::Mul(hn::Sqrt(norms[v]), hn::Set(d, 1.001f));
      const Vec error = hn::MulAdd(norm, hn::MulAdd(norm, hn::Set(d, task.quadratic), hn::Set(d, task.linear)),
                                   hn::Set(d, task.constant));
      const Vec slack = hn::Add(error, error);
      // A NaN is never sure.
      const auto sure = hn::And(hn::Gt(hn::Sub(second[v], best[v]), slack),
                                hn::Lt(norms[v], hn::Set(d, static_cast<float>(kLargestSquaredNorm))));
      uint32_t doubt = bits_of(hn::Not(sure));
      if (HWY_LIKELY(doubt == 0)) continue;
      HWY_ALIGN float slacks[kFloats];
      hn::Store(slack, d, slacks);
      for (; doubt != 0; doubt &= doubt - 1) {
        const int64_t i = std::countr_zero(doubt);
        if (i >= here) break;
        const int64_t at = v * kFloats + i;
        std::copy_n(from + at * apart, task.cols, padded);
        for (int64_t c = 0; c < task.cols; ++c) moved[c] = columns[c * kRows + at];
        labels[(first + at) * label_stride] = settle(task, padded, moved, slacks[i]);
      }
    }
  }
}

void AddRowsByLabel(const float* rows, int64_t count, int64_t cols, const uint8_t* labels, double* sums,
                    int64_t* counts) {
  for (int64_t i = 0; i < count; ++i) {
    const float* const row = rows + i * cols;
    double* const sum = sums + labels[i] * cols;
    int64_t c = 0;
    for (; c + kDoubles <= cols; c += kDoubles) {
      hn::StoreU(hn::Add(hn::LoadU(F64(), sum + c), load_doubles(row + c)), F64(), sum + c);
    }
    for (; c < cols; ++c) sum[c] += static_cast<double>(row[c]);
    ++counts[labels[i]];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(NearestOfCodewords);
HWY_EXPORT(AddRowsByLabel);

namespace {

constexpr int64_t kMostLanes = 16;  // floats of the widest vector

// Numbers of the distinct ones, ascending: the first of those that are equal. Zeros of either sign are equal.
std::vector<uint8_t> distinct_rows(const float* rows, int64_t count, int64_t cols) {
  std::vector<uint8_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  const auto row = [&](uint8_t i) { return rows + i * cols; };
  const auto less = [&](uint8_t a, uint8_t b) {
    for (int64_t c = 0; c < cols; ++c) {
      if (row(a)[c] != row(b)[c]) return row(a)[c] < row(b)[c];
    }
    return a < b;
  };
  // NaN would make this no order.
  const bool numbers = std::none_of(rows, rows + count * cols, [](float value) { return std::isnan(value); });
  if (!numbers) return order;
  std::sort(order.begin(), order.end(), less);
  const auto equal = [&](uint8_t a, uint8_t b) { return std::equal(row(a), row(a) + cols, row(b)); };
  order.erase(std::unique(order.begin(), order.end(), equal), order.end());
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

int64_t NearestCodeword::scratch_floats(int64_t cols) {
  return 2 * 2 * kMostLanes * cols + 2 * round_up(cols, kCanonicalLanes);
}

namespace {

int64_t table_floats(int64_t distinct, int64_t cols) {
  const int64_t width = round_up(distinct, kMostLanes);
  const int64_t padded_cols = round_up(cols, kCanonicalLanes);
  const int64_t group_floats = round_up(distinct, NearestCodeword::kWordGroup) * (cols + 1);
  return cols + group_floats + (cols + 1) * width + distinct * padded_cols;
}

}  // namespace

int64_t NearestCodeword::bytes_for(int64_t count, int64_t cols) {
  return table_floats(count, cols) * static_cast<int64_t>(sizeof(float)) + count;
}

void NearestCodeword::set(const float* codewords, int64_t count, int64_t cols) {
  number_ = distinct_rows(codewords, count, cols);
  const auto distinct = static_cast<int64_t>(number_.size());
  const int64_t width = round_up(distinct, kMostLanes);
  const int64_t padded_cols = round_up(cols, kCanonicalLanes);
  const int64_t group_floats = round_up(distinct, kWordGroup) * (cols + 1);
  values_.assign(static_cast<size_t>(table_floats(distinct, cols)), 0.0f);
  float* const origin = values_.data();
  float* const groups = origin + cols;
  float* const columns = groups + group_floats;
  float* const terms = columns + cols * width;
  float* const words = terms + width;
  // A point near all: what matters is that norms from there are small.
  for (int64_t c = 0; c < cols; ++c) {
    double sum = 0;
    for (const uint8_t w : number_) sum += static_cast<double>(codewords[w * cols + c]);
    origin[c] = static_cast<float>(sum / static_cast<double>(distinct));
    if (!std::isfinite(origin[c])) origin[c] = 0;
  }
  std::fill_n(terms, width, HUGE_VALF);
  for (int64_t w = 0; w < round_up(distinct, kWordGroup); ++w) {
    groups[w / kWordGroup * kWordGroup * (cols + 1) + w % kWordGroup] = HUGE_VALF;
  }
  double largest = 0;
  for (int64_t w = 0; w < distinct; ++w) {
    const float* const word = codewords + number_[static_cast<size_t>(w)] * cols;
    float* const group = groups + w / kWordGroup * kWordGroup * (cols + 1) + w % kWordGroup;
    double squares = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const float moved = word[c] - origin[c];
      squares += static_cast<double>(moved) * static_cast<double>(moved);
      group[(c + 1) * kWordGroup] = columns[c * width + w] = -2.0f * moved;
      words[w * padded_cols + c] = word[c];
    }
    group[0] = terms[w] = static_cast<float>(squares);
    largest = squares > largest || std::isnan(squares) ? squares : largest;
  }
  const bool bounded = largest < kLargestSquaredNorm;
  const double norm = bounded ? std::sqrt(largest) * 1.001 : HUGE_VAL;
  const double error = product_error(cols);
  task_ = {cols, distinct, width, origin, groups, columns, terms, words, number_.data()};
  // squared_l2_product_bound with the rows' and the codewords' parts the other way round.
  task_.constant = static_cast<float>(error * norm * norm + underflow_error(cols));
  task_.linear = static_cast<float>(2 * error * norm);
  task_.quadratic = static_cast<float>(error);
}

void NearestCodeword::nearest(const float* rows, int64_t stride, int64_t count, uint8_t* labels, int64_t label_stride,
                              float* scratch) const {
  if (task_.count == 1) {
    for (int64_t i = 0; i < count; ++i) labels[i * label_stride] = task_.number[0];
    return;
  }
  HWY_DYNAMIC_DISPATCH(NearestOfCodewords)(task_, rows, stride, count, labels, label_stride, scratch);
}

void add_rows_by_label_cpu(const float* rows, int64_t count, int64_t cols, const uint8_t* labels, double* sums,
                           int64_t* counts) {
  HWY_DYNAMIC_DISPATCH(AddRowsByLabel)(rows, count, cols, labels, sums, counts);
}

}  // namespace kith
#endif
