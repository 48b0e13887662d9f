// The cells of a walked graph: their centres, among which a walk finds where to begin, and the cell of each row.
//
// Centres are means (k-means on a sample), rounded to codes as rows are; for metrics in which a mean says nothing they
// are rows, drawn by the seed. A row belongs to the centre nearest to it, exactly.
//
// Time: rows x cells keys. Memory: 4 bytes a row, and 12 while it is made.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int64_t kRowsPerWalkCell = 300;
inline constexpr int64_t kMostWalkCells = 1024;

// The metric that keys of such rows are of.
Metric metric_of(const WalkRows& rows);

class WalkCells {
 public:
  WalkCells(const WalkRows& rows, uint64_t seed, const Resources& resources);

  int64_t count() const { return count_; }
  // In the form of the rows.
  WalkRows centres() const;
  const uint32_t* labels() const { return labels_.data(); }
  HostArray<std::byte> take_centres() && { return std::move(centres_); }

 private:
  void learn(uint64_t seed, const Resources& resources);
  void assign(const Resources& resources);

  const WalkRows rows_;
  int64_t count_;
  HostArray<std::byte> centres_;
  HostArray<uint32_t> labels_;
};

}  // namespace kith
