#include "index/shards.hpp"

#include "core/metric_unit.hpp"
#include "core/ordered_key.hpp"
#include "exact/knn_on_parts.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// The shards of a search and their parts of its filter.
class Shards {
 public:
  Shards(const ShardedSearch& task, const Resources& resources)
      : kept_(task.filter, task.segment_ends.empty() ? 0 : task.segment_ends.back(), resources) {
    for (int number = 0; number < resources.parts(); ++number) {
      rows_.emplace_back(task.segment_ends, number, resources.parts());
    }
    if (kept_.leaves_some_out()) bits_ = kept_.bits(resources);
  }

  const ShardRows& rows(int number) const { return rows_[static_cast<size_t>(number)]; }
  int count() const { return static_cast<int>(rows_.size()); }

  // Calls use(filter of the shard's rows).
  template <typename Use>
  auto with_filter(int number, const Resources& part, const Use& use) const {
    if (bits_ == nullptr) return use(RowFilter());
    if (counts_memory(part)) require_memory("the filter of a shard", {rows(number).count()}, part);
    const HostArray<uint8_t> mask = rows(number).kept(bits_, part);
    return use(RowFilter::mask(mask.data(), mask.size()));
  }

 private:
  KeptRows kept_;
  const uint64_t* bits_ = nullptr;
  std::vector<ShardRows> rows_;
};

// Entries of a query in all shards, by (key, row).
struct Hit {
  uint32_t key = 0;
  int64_t row = 0;
  float distance = 0;
  bool operator<(const Hit& other) const { return std::pair(key, row) < std::pair(other.key, other.row); }
};

}  // namespace

ShardRows::ShardRows(const std::vector<int64_t>& segment_ends, int number, int count) {
  int64_t begin = 0;
  for (const int64_t end : segment_ends) {
    RankPart piece = part_of(end - begin, 1, number, count);
    piece.first += begin;
    pieces_.push_back(piece);
    firsts_.push_back(count_);
    count_ += piece.count;
    begin = end;
  }
}

void ShardRows::to_index(int64_t* rows, int64_t size) const {
  for (int64_t i = 0; i < size; ++i) {
    if (rows[i] < 0) continue;
    const auto at =
        static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), rows[i]) - firsts_.begin()) - 1;
    rows[i] += pieces_[at].first - firsts_[at];
  }
}

HostArray<uint8_t> ShardRows::kept(const uint64_t* bits, const Resources& resources) const {
  HostArray<uint8_t> mask(count_, "the rows that a shard's filter keeps", resources);
  uint8_t* next = mask.data();
  for (const RankPart& piece : pieces_) {
    for (int64_t row = piece.first; row < piece.end(); ++row) *next++ = keeps(bits, row) ? 1 : 0;
  }
  return mask;
}

void search_shards(const ShardedSearch& task, const NeighborsView& out, const Resources& resources,
                   const ShardSearch& search) {
  wait_for_caller(resources, task.queries.space(), out.space);
  const Shards shards(task, resources);
  std::vector<PartNeighbors> parts;
  std::vector<FoundInPart> found;
  for (int number = 0; number < shards.count(); ++number) {
    const int64_t width = std::min(out.k, shards.rows(number).count());
    const NeighborsView view = parts.emplace_back(task.queries.rows(), width, resources).view;
    found.push_back({view.ids, view.distances, width, 0});
  }
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const int number = ranks.rank();
    const NeighborsView& own = parts[static_cast<size_t>(number)].view;
    if (own.k == 0) return;
    const RowsOnPart queries(task.queries, part);
    shards.with_filter(
        number, part, [&](const RowFilter& filter) { search(number, queries.view(), filter, own, part.with_log({})); });
    shards.rows(number).to_index(own.ids, own.queries * own.k);
  });
  join_parts(found, task.metric, out, resources);
}

RangeNeighbors range_search_shards(const ShardedSearch& task, const Resources& resources,
                                   const ShardRangeSearch& search) {
  wait_for_caller(resources, task.queries.space());
  const Shards shards(task, resources);
  std::vector<RangeNeighbors> found(static_cast<size_t>(shards.count()));
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const int number = ranks.rank();
    if (shards.rows(number).count() == 0) return;
    const RowsOnPart queries(task.queries, part);
    RangeNeighbors& own = found[static_cast<size_t>(number)];
    shards.with_filter(
        number, part, [&](const RowFilter& filter) { own = search(number, queries.view(), filter, part.with_log({})); });
    shards.rows(number).to_index(own.ids(), own.size());
  });
  int64_t total = 0;
  for (const RangeNeighbors& part : found) total += part.size();
  const int64_t count = task.queries.rows();
  RangeNeighbors all(count, total, resources);
  std::vector<Hit> hits;
  int64_t at = 0;
  all.offsets()[0] = 0;
  for (int64_t query = 0; query < count; ++query) {
    hits.clear();
    for (const RangeNeighbors& part : found) {
      if (part.queries() == 0) continue;
      for (int64_t i = part.offsets()[query]; i < part.offsets()[query + 1]; ++i) {
        const float distance = part.distances()[i];
        hits.push_back({ordered_key(key_of(task.metric, distance)), part.ids()[i], distance});
      }
    }
    std::sort(hits.begin(), hits.end());
    for (const Hit& hit : hits) {
      all.ids()[at] = hit.row;
      all.distances()[at++] = hit.distance;
    }
    all.offsets()[query + 1] = at;
  }
  return all;
}

}  // namespace kith
