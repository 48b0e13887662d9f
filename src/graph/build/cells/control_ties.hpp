// Rows that tie with the last neighbours of control rows, known before there are cells.
//
// A row as near as a control row's last true neighbour counts as found, so what cells find of it depends on all such
// rows. They are looked at for up to 64 control rows, up to 4,096 for each; these stand for all that have ties. Where
// most of them have more, few are looked at.
//
// Cost: an exact search of these control rows. Memory: 4 bytes for each such row.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/lists/control_rows.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kith {

class ControlTies {
 public:
  // `x` may lie in the memory of a GPU, which then searches.
  ControlTies(const ControlRows& control, const MatrixView& x, Metric metric, const Resources& resources);
  // For rows from anywhere, by a search of the caller's.
  ControlTies(const ControlRows& control, RowSource& x, Metric metric, const ControlRows::Search& search,
              const Resources& resources);

  // Rows of the collection, and how many are looked at for a control row.
  int64_t all_rows() const { return all_rows_; }
  int64_t most_near() const { return most_near_; }
  // Control rows that have ties, and those of them whose ties were searched: the numbers of these among the control
  // rows, and the rows as near as the last neighbour of each.
  int64_t tied() const { return static_cast<int64_t>(tied_.size()); }
  const std::vector<uint32_t>& searched() const { return searched_; }
  std::span<const uint32_t> near(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return {near_.data() + starts_[at], static_cast<size_t>(starts_[at + 1] - starts_[at])};
  }
  // Rows as near as the last neighbour, the mean over all control rows.
  double mean_near() const;
  // Whether not few control rows have more such rows than are looked at.
  bool is_crowded() const;

 private:
  ControlTies(const ControlRows& control, int64_t all_rows, Metric metric);
  void look(const ControlRows& control, RowSource& x, const ControlRows::Search& search, const Resources& resources);
  void search_some(const std::vector<uint32_t>& some, const ControlRows& control, RowSource& x,
                   const ControlRows::Search& search, const Resources& resources);
  void count_memory(const RowsInfo& x, const ControlRows::Search& search, const Resources& resources);

  const int64_t all_rows_;
  const Metric metric_;
  const int64_t k_;
  const int64_t control_rows_;
  const int64_t most_near_;
  int64_t crowded_ = 0;  // of those that were searched
  std::vector<uint32_t> tied_;
  std::vector<uint32_t> searched_;
  std::vector<int64_t> starts_ = {0};
  HostArray<uint32_t> near_;
};

}  // namespace kith
