// The cells of a search graph: their centres, which determine where a walk begins, and the cell of each row.
//
// Centres are means (k-means on a sample), rounded to codes like rows; for metrics in which means are not useful they
// are rows drawn with the seed. A row belongs to the centre nearest to it, exactly.
//
// Time: rows x cells keys. Memory: 4 bytes per row, and 12 during construction.
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

// The metric of the keys of such rows.
Metric metric_of(const WalkRows& rows);

class WalkCells {
 public:
  WalkCells(const WalkRows& rows, uint64_t seed, const Resources& resources);

  int64_t count() const { return count_; }
  // The centres in the format of the rows.
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
