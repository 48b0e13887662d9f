#include "graph/lists/control_rows.hpp"

#include <kith/knn.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/random.hpp"
#include "core/within_limits.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kith {
namespace {

constexpr uint64_t kControlStream = 0xC0417201;  // no other draw uses it

// How many of the first `count` are not above the key.
int64_t found_in(const uint64_t* list, int64_t count, uint32_t key) {
  int64_t found = 0;
  while (found < count && list[found] != kPadding && ordered_of(list[found]) <= key) ++found;
  return found;
}

}  // namespace

ControlRows::ControlRows(const MatrixView& x, Metric metric, int64_t k, uint64_t seed, const Resources& resources)
    : ControlRows(x, metric, k, seed, resources, [&](const MatrixView& queries, int64_t most, const Resources& used) {
        return knn(queries, x, {.k = most, .metric = metric, .check_finite = false}, used);
      }) {}

ControlRows::ControlRows(const MatrixView& x, Metric metric, int64_t k, uint64_t seed, const Resources& resources,
                         const Search& search)
    : all_rows_(x.rows()), k_(std::min(k, std::max<int64_t>(x.rows() - 1, 0))), ten_(std::min(k_, kFirstTen)) {
  if (k_ == 0) return;
  rows_ = draw(all_rows_, seed, resources);
  MatrixBuffer queries(x.dtype(), static_cast<int64_t>(rows_.size()), x.cols(), "the control rows", resources);
  ViewSource source(x);
  gather(source, rows_, queries.mutable_view(), resources);
  const int64_t most = wanted(all_rows_, k_);
  if (counts_only(resources)) {
    count_call(resources, [&](const Resources& counting) { (void)search(queries.view(), most, counting); });
    return;
  }
  keep(search(queries.view(), most, resources.with_progress({})), metric);
}

ControlRows::ControlRows(int64_t all_rows, Metric metric, int64_t k, std::vector<uint32_t> rows, const Neighbors& truth)
    : all_rows_(all_rows),
      k_(std::min(k, std::max<int64_t>(all_rows - 1, 0))),
      ten_(std::min(k_, kFirstTen)),
      rows_(std::move(rows)) {
  keep(truth, metric);
}

std::vector<uint32_t> ControlRows::draw(int64_t all_rows, uint64_t seed, const Resources& resources) {
  return sample_rows(CounterRng(seed, kControlStream), all_rows, std::min(kControlRows, all_rows), resources);
}

// The k + 1 first hold the k first others, whether or not the row itself is among them; one more tells of a tie.
void ControlRows::keep(const Neighbors& truth, Metric metric) {
  for (int64_t i = 0; i < truth.queries(); ++i) {
    int64_t others = 0;
    bool ties = false;
    for (int64_t j = 0; j < truth.k(); ++j) {
      if (truth.ids(i)[j] == rows_[static_cast<size_t>(i)]) continue;
      const uint32_t key = list_key(metric, truth.distances(i)[j]);
      ++others;
      if (others <= k_) neighbors_.push_back(static_cast<uint32_t>(truth.ids(i)[j]));
      if (others == ten_) tenth_.push_back(key);
      if (others == k_) kth_.push_back(key);
      ties |= others > k_ && key == kth_.back();
    }
    has_ties_.push_back(ties);
  }
}

template <typename ListOf>
RecallEstimate ControlRows::measure_each(const ListOf& list_of, int64_t length) const {
  if (kth_.empty()) return {1, 0, 1};  // no rows, or memory is only counted
  int64_t found = 0;
  double squares = 0;
  double ten = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const uint64_t* const list = list_of(i);
    const int64_t here = found_in(list, std::min(k_, length), kth_[i]);
    const double share = static_cast<double>(here) / static_cast<double>(k_);
    found += here;
    squares += share * share;
    ten += static_cast<double>(found_in(list, std::min(ten_, length), tenth_[i])) / static_cast<double>(ten_);
  }
  const auto count = static_cast<double>(rows_.size());
  const double mean = recall_of(found);
  const double variance = count > 1 ? std::max(0.0, (squares - count * mean * mean) / (count - 1)) : 0;
  const double missing = 1 - count / static_cast<double>(all_rows_);  // rows that were not drawn
  return {mean, std::sqrt(variance / count * missing), ten / count};
}

RecallEstimate ControlRows::measure(const WorkingLists& lists) const {
  return measure_each([&](size_t i) { return lists.list(rows_[i]); }, lists.length());
}

RecallEstimate ControlRows::measure(const uint64_t* lists, int64_t length) const {
  return measure_each([&](size_t i) { return lists + static_cast<int64_t>(i) * length; }, length);
}

}  // namespace kith
