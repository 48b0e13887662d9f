#include "graph/lists/graph_lists_cpu.hpp"

#include "graph/lists/counted_work.hpp"
#include "graph/lists/start_lists.hpp"
#include "graph/lists/write_lists.hpp"

#include <algorithm>
#include <utility>

namespace kith {

void GraphListsCpu::begin(int64_t length) {
  lists_ = WorkingLists(0, length, resources_);  // the old ones go before the new ones come
  lists_ = WorkingLists(rows(), length, resources_);
}

void GraphListsCpu::resize(int64_t length) {
  WorkingLists resized(rows(), length, resources_);
  for (int64_t row = 0; !only_counts(resources_) && row < rows(); ++row) {
    std::copy_n(lists_.list(row), std::min(length, lists_.length()), resized.list(row));
    resized.refresh_threshold(row);
  }
  lists_ = std::move(resized);
}

void GraphListsCpu::add_random_rows(uint64_t seed, int64_t boundary) {
  if (!only_counts(resources_)) kith::add_random_rows(pairs_, boundary, seed, lists_, resources_);
  has_random_rows_ = true;
}

void GraphListsCpu::add_rows(const NamedRows& rows) {
  if (!only_counts(resources_)) add_named_rows(pairs_, rows, lists_, resources_);
}

ListSurvey GraphListsCpu::survey(int64_t k, Flags flags) {
  return only_counts(resources_) ? ListSurvey{} : survey_lists(lists_, k, metric_, flags, resources_);
}

void GraphListsCpu::write(const NeighborsView& out) {
  if (!only_counts(resources_)) write_lists(lists_, metric_, out, resources_);
}

std::optional<RecallEstimate> GraphListsCpu::measure() {
  return control_ == nullptr ? std::nullopt : std::optional(control_->measure(lists_));
}

int64_t GraphListsCpu::control_rows() const {
  return control_ == nullptr ? 0 : static_cast<int64_t>(control_->rows().size());
}

}  // namespace kith
