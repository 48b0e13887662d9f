// Recall estimated while a graph is built: some rows, drawn by the seed, are searched exactly, and their lists
// compared.
//
// A neighbour counts as found where its distance is not above the true k-th one, so that ties count. The estimate is
// the mean over the control rows; its standard error is that of a sample without replacement, 0 where all rows are
// looked at.
//
// Cost: an exact search of kControlRows queries, and k keys for each.
#pragma once

#include <kith/graph_report.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "graph/lists/working_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace kith {

inline constexpr int64_t kControlRows = 1000;
inline constexpr int64_t kFirstTen = 10;

struct RecallEstimate {
  double recall = 0;        // of the k nearest
  double error = 0;         // its standard error
  double recall_at_10 = 0;  // of the 10 nearest, or of all k where these are fewer
};

// What a build by rounds leaves beside its lists.
struct BuildOutcome {
  std::vector<GraphRound> rounds;
  std::optional<RecallEstimate> recall;
  bool reached = true;  // the recall that was wanted, if one was
  int64_t probes = 0;   // made, by cells
};

// The key by which lists order a distance.
inline uint32_t list_key(Metric metric, float distance) {
  return ordered_key(larger_is_nearer(metric) ? -distance : distance);
}

class ControlRows {
 public:
  // `x` may be in the memory of a GPU, which then searches.
  ControlRows(const MatrixView& x, Metric metric, int64_t k, uint64_t seed, const Resources& resources);

  // The true neighbours by a search of one's own: of each query the first so many of all rows.
  using Search = std::function<Neighbors(const MatrixView& queries, int64_t k, const Resources& resources)>;
  ControlRows(const MatrixView& x, Metric metric, int64_t k, uint64_t seed, const Resources& resources,
              const Search& search);

  // The same in two steps, for rows that come from files: draw() says which rows are searched, and `truth` has the
  // first wanted() of all rows for each. Where k is cut to all others, here too.
  static std::vector<uint32_t> draw(int64_t all_rows, uint64_t seed, const Resources& resources);
  static int64_t wanted(int64_t all_rows, int64_t k) {
    return std::min(std::min(k, std::max<int64_t>(all_rows - 1, 0)) + 2, all_rows);
  }
  ControlRows(int64_t all_rows, Metric metric, int64_t k, std::vector<uint32_t> rows, const Neighbors& truth);

  const std::vector<uint32_t>& rows() const { return rows_; }
  // Neighbours that are looked for: k, or all others.
  int64_t k() const { return k_; }
  // The true neighbours of control row i; whether another row is as near to it as the last of these, and that one's
  // key.
  std::span<const uint32_t> neighbors(int64_t i) const { return {neighbors_.data() + i * k_, static_cast<size_t>(k_)}; }
  bool has_ties(int64_t i) const { return has_ties_[static_cast<size_t>(i)]; }
  uint32_t last_key(int64_t i) const { return kth_[static_cast<size_t>(i)]; }
  // The recall where so many neighbours of all control rows together were found.
  double recall_of(int64_t found) const {
    return static_cast<double>(found) / static_cast<double>(k_ * static_cast<int64_t>(rows_.size()));
  }
  RecallEstimate measure(const WorkingLists& lists) const;
  // For the control rows' lists alone, one after the other.
  RecallEstimate measure(const uint64_t* lists, int64_t length) const;

 private:
  void keep(const Neighbors& truth, Metric metric);
  template <typename ListOf>
  RecallEstimate measure_each(const ListOf& list_of, int64_t length) const;

  int64_t all_rows_;
  int64_t k_;    // no more than there are others
  int64_t ten_;
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> neighbors_;
  std::vector<bool> has_ties_;
  std::vector<uint32_t> kth_;  // the ordered key of the k-th
  std::vector<uint32_t> tenth_;
};

}  // namespace kith
