// The rows of an index dealt out to several devices, which search them at the same time (IndexPlacement).
//
// Every segment is cut into consecutive pieces, one for each part; a part's pieces, numbered through, are its shard. So
// a second add deals its rows out again, and pieces of segments that stay are kept where they are. Each part searches
// its shard; what all have found is joined by (key, row).
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

// The rows of one shard: those of its pieces, which ascend, are its rows 0, 1, 2, ...
class ShardRows {
 public:
  // Shard `number` of `count` of segments that end at these rows.
  ShardRows(const std::vector<int64_t>& segment_ends, int number, int count);

  int64_t count() const { return count_; }
  const RankPart& piece(size_t segment) const { return pieces_[segment]; }  // in rows of the index; it may be empty
  int64_t first(size_t segment) const { return firsts_[segment]; }          // of that piece among the shard's rows
  // Rows of the shard become rows of the index; -1 stays.
  void to_index(int64_t* rows, int64_t size) const;
  // Which of the shard's rows a filter of the index's rows keeps: a byte for each.
  HostArray<uint8_t> kept(const uint64_t* bits, const Resources& resources) const;

 private:
  std::vector<RankPart> pieces_;
  std::vector<int64_t> firsts_;
  int64_t count_ = 0;
};

// What is searched in shards.
struct ShardedSearch {
  const std::vector<int64_t>& segment_ends;
  Metric metric;
  const RowFilter& filter;  // of the index's rows
  const MatrixView& queries;
};

// search(shard, queries, filter of its rows, out, resources): the nearest of these queries among the shard's rows, of
// which there are at least one.
using ShardSearch = std::function<void(int shard, const MatrixView& queries, const RowFilter& filter,
                                       const NeighborsView& out, const Resources& part)>;
void search_shards(const ShardedSearch& task, const NeighborsView& out, const Resources& resources,
                   const ShardSearch& search);

using ShardRangeSearch =
    std::function<RangeNeighbors(int shard, const MatrixView& queries, const RowFilter& filter, const Resources& part)>;
RangeNeighbors range_search_shards(const ShardedSearch& task, const Resources& resources,
                                   const ShardRangeSearch& search);

}  // namespace kith
