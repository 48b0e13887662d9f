#include "kernels/assign/codewords_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/assign/codewords_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "kernels/assign/assign_columns_cpu-inl.hpp"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {

void NearestOfCodewords(const CompareTask& task, const float* rows, int64_t stride, int64_t count, uint8_t* labels,
                        int64_t label_stride, float* scratch) {
  assign_columns<Columns::labels>(task, task.words,
                                  ColumnRows<uint8_t>{rows, stride, count, labels, label_stride, nullptr, scratch});
}

void LeastCodewords(const CompareTask& task, const float* rows, int64_t stride, int64_t count, uint8_t* labels,
                    float* scratch) {
  assign_columns<Columns::least_values>(task, task.words,
                                        ColumnRows<uint8_t>{rows, stride, count, labels, 1, nullptr, scratch});
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(NearestOfCodewords);
HWY_EXPORT(LeastCodewords);

namespace {

constexpr int64_t kMostLanes = 16;  // floats in the widest vector

// Ascending numbers of the distinct codewords, the first of each set of equal ones. -0.0 equals 0.0.
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
  // With NaN this would not be a strict weak order.
  const bool numbers = std::none_of(rows, rows + count * cols, [](float value) { return std::isnan(value); });
  if (!numbers) return order;
  std::sort(order.begin(), order.end(), less);
  const auto equal = [&](uint8_t a, uint8_t b) { return std::equal(row(a), row(a) + cols, row(b)); };
  order.erase(std::unique(order.begin(), order.end(), equal), order.end());
  std::sort(order.begin(), order.end());
  return order;
}

int64_t table_floats(int64_t distinct, int64_t cols) {
  return cols + group_floats(distinct, cols) + (cols + 1) * round_up(distinct, kCentreTile) +
         distinct * round_up(cols, kCanonicalLanes);
}

}  // namespace

int64_t NearestCodeword::scratch_floats(int64_t cols) {
  return 2 * 2 * kMostLanes * cols + 2 * round_up(cols, kCanonicalLanes);
}

int64_t NearestCodeword::bytes_for(int64_t count, int64_t cols) {
  return table_floats(count, cols) * static_cast<int64_t>(sizeof(float)) + count;
}

void NearestCodeword::set(const float* codewords, int64_t count, int64_t cols) {
  number_ = distinct_rows(codewords, count, cols);
  const auto distinct = static_cast<int64_t>(number_.size());
  const int64_t width = round_up(distinct, kCentreTile);
  const int64_t padded_cols = round_up(cols, kCanonicalLanes);
  values_.assign(static_cast<size_t>(table_floats(distinct, cols)), 0.0f);
  float* const origin = values_.data();
  float* const groups = origin + cols;
  float* const table = groups + group_floats(distinct, cols);
  float* const terms = table + cols * width;
  float* const words = terms + width;
  // Any point near all of them will do: it keeps the norms small.
  for (int64_t c = 0; c < cols; ++c) {
    double sum = 0;
    for (const uint8_t w : number_) sum += static_cast<double>(codewords[w * cols + c]);
    origin[c] = static_cast<float>(sum / static_cast<double>(distinct));
    if (!std::isfinite(origin[c])) origin[c] = 0;
  }
  std::fill_n(terms, width, HUGE_VALF);
  for (int64_t w = distinct; w < round_up(distinct, kCentreGroup); ++w) *group_of(groups, w, cols) = HUGE_VALF;
  double largest = 0;
  for (int64_t w = 0; w < distinct; ++w) {
    const float* const word = codewords + number_[static_cast<size_t>(w)] * cols;
    float* const group = group_of(groups, w, cols);
    float* const factors = table + w / kCentreTile * kCentreTile * cols + w % kCentreTile;
    double squares = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const float moved = word[c] - origin[c];
      squares += static_cast<double>(moved) * static_cast<double>(moved);
      group[(c + 1) * kCentreGroup] = factors[c * kCentreTile] = -2.0f * moved;
      words[w * padded_cols + c] = word[c];
    }
    *group = terms[w] = static_cast<float>(squares);
    largest = squares > largest || std::isnan(squares) ? squares : largest;
  }
  task_ = {KeyKind::squared_l2, cols, padded_cols, distinct, width, origin, table, terms, groups};
  task_.words = words;
  task_.number = number_.data();
  task_.bound = assign_bound(KeyKind::squared_l2, cols, largest);
}

void NearestCodeword::nearest(const float* rows, int64_t stride, int64_t count, uint8_t* labels, int64_t label_stride,
                              float* scratch) const {
  if (task_.count == 1) {
    for (int64_t i = 0; i < count; ++i) labels[i * label_stride] = task_.number[0];
    return;
  }
  HWY_DYNAMIC_DISPATCH(NearestOfCodewords)(task_, rows, stride, count, labels, label_stride, scratch);
}

void set_groups(const float* codewords, int64_t count, int64_t cols, float* groups) {
  for (int64_t w = 0; w < round_up(count, kCentreGroup); ++w) {
    float* const group = group_of(groups, w, cols);
    double squared = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const float value = w < count ? codewords[w * cols + c] : 0.0f;
      squared += static_cast<double>(value) * static_cast<double>(value);
      group[(c + 1) * kCentreGroup] = -value;
    }
    *group = w < count ? static_cast<float>(0.5 * squared) : HUGE_VALF;
  }
}

void least_codewords_cpu(const float* groups, int64_t codewords, int64_t cols, const float* rows, int64_t stride,
                         int64_t count, uint8_t* labels, float* scratch) {
  CompareTask task;
  task.cols = cols;
  task.padded = round_up(cols, kCanonicalLanes);
  task.count = codewords;
  task.groups = groups;
  HWY_DYNAMIC_DISPATCH(LeastCodewords)(task, rows, stride, count, labels, scratch);
}

}  // namespace kith
#endif
