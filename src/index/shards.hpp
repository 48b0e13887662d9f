// Distribution of the rows of an index over several devices that search at the same time (IndexPlacement).
//
// Every segment is cut into consecutive pieces, one per part; the pieces of a part, numbered consecutively, are its
// shard. So every add is distributed over all parts, and pieces of unchanged segments stay where they are. Each part
// searches its shard; results are merged by (key, row).
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "ranks/agreement.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace kith {

// The rows of one shard: rows 0, 1, 2, ... are those of its pieces, in ascending order.
class ShardRows {
 public:
  // Shard `number` of `count` of segments that end at these rows.
  ShardRows(const std::vector<int64_t>& segment_ends, int number, int count);

  int64_t count() const { return count_; }
  const RankPart& piece(size_t segment) const { return pieces_[segment]; }  // in rows of the index; it may be empty
  int64_t first(size_t segment) const { return firsts_[segment]; }          // of that piece among the shard's rows
  // Replaces rows of the shard by rows of the index; -1 stays.
  void to_index(int64_t* rows, int64_t size) const;
  // The shard's part of a filter of the index's rows: one byte per row.
  HostArray<uint8_t> kept(const uint64_t* bits, const Resources& resources) const;

 private:
  std::vector<RankPart> pieces_;
  std::vector<int64_t> firsts_;
  int64_t count_ = 0;
};

// A search in shards.
struct ShardedSearch {
  const std::vector<int64_t>& segment_ends;
  Metric metric;
  const RowFilter& filter;  // of the index's rows
  const MatrixView& queries;
};

// search(shard, queries, filter of its rows, out, resources) finds the nearest rows of a shard, which has at least
// one.
using ShardSearch = std::function<void(int shard, const MatrixView& queries, const RowFilter& filter,
                                       const NeighborsView& out, const Resources& part)>;
void search_shards(const ShardedSearch& task, const NeighborsView& out, const Resources& resources,
                   const ShardSearch& search);

using ShardRangeSearch =
    std::function<RangeNeighbors(int shard, const MatrixView& queries, const RowFilter& filter, const Resources& part)>;
RangeNeighbors range_search_shards(const ShardedSearch& task, const Resources& resources,
                                   const ShardRangeSearch& search);

}  // namespace kith
