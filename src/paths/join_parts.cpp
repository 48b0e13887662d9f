#include "paths/join_parts.hpp"

#include <kith/knn.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/row_filter.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "graph/handle/row_sets.hpp"
#include "graph/lists/counted_work.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kSmallPart = 64;
constexpr int64_t kRowsAtOnce = 16'384;

// Which rows each part has.
struct Members {
  HostArray<uint32_t> rows;    // part by part
  HostArray<int64_t> offsets;  // of each part

  Members(const RowLabels& parts, const Resources& resources)
      : rows(parts.rows, "the parts' rows", resources), offsets(parts.sets + 1, "the parts' rows", resources) {
    if (only_counts(resources)) return;
    std::fill(offsets.begin(), offsets.end(), 0);
    for (const int64_t part : parts) ++offsets[part];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());  // where parts end, and then where they begin
    for (int64_t row = parts.rows; row-- > 0;) rows[--offsets[parts.begin()[row]]] = static_cast<uint32_t>(row);
  }
  int64_t size(int64_t part) const { return offsets[part + 1] - offsets[part]; }
  const uint32_t* of(int64_t part) const { return rows.data() + offsets[part]; }
};

class PartSearch {
 public:
  PartSearch(const RowLabels& parts, const MatrixView& x, Metric metric, const Resources& resources)
      : parts_(parts), x_(x), metric_(metric), resources_(resources), least_(parts.sets, "the parts' edges", resources) {
    if (!only_counts(resources)) std::fill(least_.begin(), least_.end(), kNone);
  }

  // Offers each of these rows' nearest row of another part, which is among the first k that the filter leaves.
  void search(const uint32_t* rows, int64_t count, int64_t k, const RowFilter& filter) {
    KnnParams params;
    params.k = std::min(k, x_.rows());
    params.metric = metric_;
    params.filter = filter;
    for (int64_t first = 0; first < count; first += kRowsAtOnce) {
      const int64_t some = std::min(kRowsAtOnce, count - first);
      MatrixBuffer queries(x_.dtype(), some, x_.cols(), "rows of parts", resources_);
      if (only_counts(resources_)) {
        return count_call(resources_, [&](const Resources& used) { (void)knn(queries.view(), x_, params, used); });
      }
      for (int64_t i = 0; i < some; ++i) {
        std::memcpy(queries.mutable_view().row(i), x_.row(rows[first + i]),
                    static_cast<size_t>(x_.cols() * size_of(x_.dtype())));
      }
      const Neighbors found = knn(queries.view(), x_, params, resources_);
      for (int64_t i = 0; i < some; ++i) offer(rows[first + i], found.ids(i), found.distances(i), params.k);
    }
  }

  // kNone for the part that did not look.
  static constexpr ForestEdge kNone{kNoEdge, 0, 0};
  HostArray<ForestEdge> take() { return std::move(least_); }

 private:
  void offer(uint32_t row, const int64_t* ids, const float* distances, int64_t k) {
    const int64_t part = parts_.begin()[row];
    for (int64_t j = 0; j < k && ids[j] >= 0; ++j) {
      if (parts_.begin()[ids[j]] == part) continue;
      const auto other = static_cast<uint32_t>(ids[j]);
      const ForestEdge edge{ordered_key(distances[j]), std::min(row, other), std::max(row, other)};
      ForestEdge& least = least_[part];
      if (edge < least) least = edge;
      return;
    }
  }

  const RowLabels& parts_;
  const MatrixView& x_;
  Metric metric_;
  const Resources& resources_;
  HostArray<ForestEdge> least_;
};

HostArray<ForestEdge> least_edges(const RowLabels& parts, const MatrixView& x, Metric metric,
                                  const Resources& resources) {
  const Members members(parts, resources);
  PartSearch search(parts, x, metric, resources);
  const HostArray<uint32_t> small(parts.rows, "rows of small parts", resources);
  if (only_counts(resources)) {  // all rows in small parts, or in large ones
    search.search(small.data(), parts.rows, kSmallPart + 1, RowFilter());
    const HostArray<uint8_t> outside(parts.rows, "rows outside a part", resources);
    search.search(small.data(), parts.rows, 1, RowFilter::mask(outside.data(), parts.rows));
    return search.take();
  }
  int64_t largest = 0;
  for (int64_t part = 1; part < parts.sets; ++part) {
    if (members.size(part) > members.size(largest)) largest = part;
  }
  int64_t few = 0;
  int64_t most = 0;
  for (int64_t part = 0; part < parts.sets; ++part) {
    if (part == largest) continue;
    const int64_t size = members.size(part);
    if (size <= kSmallPart) {
      std::copy_n(members.of(part), size, small.data() + few);
      few += size;
      most = std::max(most, size);
      continue;
    }
    const HostArray<uint8_t> outside(parts.rows, "rows outside a part", resources);
    std::fill(outside.begin(), outside.end(), uint8_t{1});
    for (int64_t i = 0; i < size; ++i) outside[members.of(part)[i]] = 0;
    search.search(members.of(part), size, 1, RowFilter::mask(outside.data(), parts.rows));
  }
  search.search(small.data(), few, most + 1, RowFilter());
  return search.take();
}

}  // namespace

std::vector<ForestEdge> join_parts(RowLabels parts, const MatrixView& x, Metric metric, const Resources& resources) {
  const Resources quiet = resources.with_progress({});  // of many small searches
  std::vector<ForestEdge> joins;
  const RowSets sets(parts.rows, resources);
  {
    const Members members(parts, resources);
    for (int64_t part = 0; !only_counts(resources) && part < parts.sets; ++part) {
      for (int64_t i = 1; i < members.size(part); ++i) sets.join(members.of(part)[0], members.of(part)[i]);
    }
  }
  if (only_counts(resources)) {
    (void)least_edges(parts, x, metric, quiet);
    return joins;
  }
  const int64_t total = parts.sets;
  while (parts.sets > 1) {
    resources.report({"join parts", total - parts.sets, total});
    for (const ForestEdge& edge : least_edges(parts, x, metric, quiet)) {
      if (edge.key != kNoEdge && sets.join(edge.smaller, edge.larger)) joins.push_back(edge);
    }
    parts = sets.labels(resources);
  }
  return joins;
}

}  // namespace kith
