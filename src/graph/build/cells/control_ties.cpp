#include "graph/build/cells/control_ties.hpp"

#include <kith/knn.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/divide.hpp"
#include "core/within_limits.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostNear = 4096;
constexpr int64_t kMostTied = 64;
constexpr int64_t kTiedAtOnce = 16;

}  // namespace

ControlTies::ControlTies(const ControlRows& control, int64_t all_rows, Metric metric)
    : all_rows_(all_rows),
      metric_(metric),
      k_(control.k()),
      control_rows_(static_cast<int64_t>(control.rows().size())),
      most_near_(std::min(std::max(kMostNear, control.k()), all_rows - 1)) {}

ControlTies::ControlTies(const ControlRows& control, const MatrixView& x, Metric metric, const Resources& resources)
    : ControlTies(control, x.rows(), metric) {
  ViewSource source(x);
  const auto search = [&](const MatrixView& queries, int64_t most, const Resources& used) {
    return knn(queries, x, {.k = most, .metric = metric, .check_finite = false}, used);
  };
  look(control, source, search, resources);
}

ControlTies::ControlTies(const ControlRows& control, RowSource& x, Metric metric, const ControlRows::Search& search,
                         const Resources& resources)
    : ControlTies(control, x.rows(), metric) {
  look(control, x, search, resources);
}

void ControlTies::look(const ControlRows& control, RowSource& x, const ControlRows::Search& search,
                       const Resources& resources) {
  if (control_rows_ == 0) return;
  const Resources quiet = resources.with_progress({});
  if (counts_only(resources)) return count_memory(x.info(), search, quiet);
  for (int64_t i = 0; i < control_rows_; ++i) {
    if (control.has_ties(i)) tied_.push_back(static_cast<uint32_t>(i));
  }
  if (tied_.empty()) return;
  // Samples the rows with ties evenly, in rounds that are even samples as well. If most rows of a round are crowded,
  // the others would be too, and each takes long, so it stops.
  const int64_t most = std::min(tied(), kMostTied);
  const int64_t rounds = divide_up(most, kTiedAtOnce);
  near_ = HostArray<uint32_t>(most * most_near_, "rows near the control rows", resources);
  for (int64_t round = 0; round < rounds && 2 * crowded_ <= static_cast<int64_t>(searched_.size()); ++round) {
    std::vector<uint32_t> some;
    for (int64_t i = round; i < most; i += rounds) some.push_back(tied_[static_cast<size_t>(i * tied() / most)]);
    search_some(some, control, x, search, quiet);
  }
}

double ControlTies::mean_near() const {
  const auto k = static_cast<double>(k_);
  if (searched_.empty()) return k;
  const double share = static_cast<double>(tied()) / static_cast<double>(control_rows_);
  return (1 - share) * k + share * static_cast<double>(starts_.back()) / static_cast<double>(searched_.size());
}

bool ControlTies::is_crowded() const {
  constexpr int64_t kNotFew = 50;  // one of this many
  const auto searched = static_cast<int64_t>(searched_.size());
  return searched > 0 && kNotFew * crowded_ * tied() / searched > control_rows_;
}

void ControlTies::search_some(const std::vector<uint32_t>& some, const ControlRows& control, RowSource& x,
                              const ControlRows::Search& search, const Resources& resources) {
  std::vector<uint32_t> numbers;
  for (const uint32_t one : some) numbers.push_back(control.rows()[one]);
  const RowsInfo info = x.info();
  MatrixBuffer queries(info.dtype, static_cast<int64_t>(numbers.size()), info.cols, "the control rows", resources);
  gather(x, numbers, queries.mutable_view(), resources);
  const Neighbors found = search(queries.view(), most_near_ + 1, resources);  // the row itself may be one
  for (size_t i = 0; i < some.size(); ++i) {
    const auto query = static_cast<int64_t>(i);
    const uint32_t last = control.last_key(some[i]);
    const auto is_near = [&](int64_t j) { return list_key(metric_, found.distances(query)[j]) <= last; };
    crowded_ += is_near(found.k() - 1) && found.k() < all_rows_ ? 1 : 0;
    int64_t end = starts_.back();
    const int64_t whole = end + most_near_;  // where a row without itself among them ends
    for (int64_t j = 0; j < found.k() && end < whole && is_near(j); ++j) {
      const auto row = static_cast<uint32_t>(found.ids(query)[j]);
      if (row != numbers[i]) near_[end++] = row;
    }
    starts_.push_back(end);
    searched_.push_back(some[i]);
  }
}

// What it takes at most.
void ControlTies::count_memory(const RowsInfo& x, const ControlRows::Search& search, const Resources& resources) {
  near_ = HostArray<uint32_t>(std::min(kMostTied, control_rows_) * most_near_, "rows near the control rows", resources);
  const int64_t some = std::min(kTiedAtOnce, control_rows_);
  const MatrixBuffer queries(x.dtype, some, x.cols, "the control rows", resources);
  count_call(resources, [&](const Resources& counting) { (void)search(queries.view(), most_near_ + 1, counting); });
  const Neighbors found(some, most_near_ + 1, resources);
}

}  // namespace kith
