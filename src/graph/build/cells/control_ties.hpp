// Rows that tie with the last true neighbour of control rows, found before there are cells.
//
// A row as near as a control row's last true neighbour counts as found, so the recall by cells depends on all such
// rows. They are collected for up to 64 control rows with ties, up to 4,096 each, as a sample of all control rows with
// ties. If most of them have more, only a few are collected.
//
// Cost: an exact search of these control rows. Memory: 4 bytes per collected row.
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
  // If `x` is in the memory of a GPU, that one searches.
  ControlTies(const ControlRows& control, const MatrixView& x, Metric metric, const Resources& resources);
  // The same with a search by the caller.
  ControlTies(const ControlRows& control, RowSource& x, Metric metric, const ControlRows::Search& search,
              const Resources& resources);

  // The rows of the collection, and how many ties are collected per control row.
  int64_t all_rows() const { return all_rows_; }
  int64_t most_near() const { return most_near_; }
  // The number of control rows with ties, and those of them that were searched: their numbers among the control rows,
  // and for each the rows as near as its last neighbour.
  int64_t tied() const { return static_cast<int64_t>(tied_.size()); }
  const std::vector<uint32_t>& searched() const { return searched_; }
  std::span<const uint32_t> near(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return {near_.data() + starts_[at], static_cast<size_t>(starts_[at + 1] - starts_[at])};
  }
  // The mean number of rows as near as the last neighbour, over all control rows.
  double mean_near() const;
  // Whether a considerable share of the control rows has more ties than are collected.
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
  int64_t crowded_ = 0;  // among those that were searched
  std::vector<uint32_t> tied_;
  std::vector<uint32_t> searched_;
  std::vector<int64_t> starts_ = {0};
  HostArray<uint32_t> near_;
};

}  // namespace kith
