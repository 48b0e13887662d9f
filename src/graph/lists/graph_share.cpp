#include "graph/lists/graph_share.hpp"

#include <kith/knn.hpp>

#include "ranks/join_neighbors.hpp"

#include <algorithm>
#include <numeric>

namespace kith {

std::vector<int64_t> GraphShare::bytes_of(int64_t row_bytes) const {
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < ranks_.size(); ++rank) bytes.push_back(rows_of(rank).count * row_bytes);
  return bytes;
}

int64_t GraphShare::sum(int64_t own) const {
  agree(ranks_, nullptr);
  const auto size = static_cast<size_t>(ranks_.size());
  std::vector<int64_t> all(size);
  ranks_.all_gather(&own, std::vector<int64_t>(size, sizeof(own)), all.data());
  return std::accumulate(all.begin(), all.end(), int64_t{0});
}

void GraphShare::join(WorkingLists& lists, bool own) const {
  if (!own) offer_to_owners(lists);
  give(lists.list(0), lists.length());
  for (int64_t row = 0; row < lists.rows(); ++row) lists.refresh_threshold(row);
}

// Some rows of each rank at a time: it gets the lists that the others have of them.
void GraphShare::offer_to_owners(WorkingLists& lists) const {
  constexpr int64_t kRowsAtOnce = 4096;
  agree(ranks_, nullptr);
  const auto size = static_cast<size_t>(ranks_.size());
  const int64_t length = lists.length();
  std::vector<uint64_t> found;  // the lists of each rank
  for (int root = 0; root < ranks_.size(); ++root) {
    const RankPart owned = rows_of(root);
    for (int64_t first = owned.first; first < owned.end(); first += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, owned.end() - first);
      const int64_t entries = count * length;
      if (root == ranks_.rank()) found.resize(size * static_cast<size_t>(entries));
      ranks_.gather(root, lists.list(first),
                    std::vector<int64_t>(size, entries * static_cast<int64_t>(sizeof(uint64_t))), found.data());
      if (root != ranks_.rank()) continue;
      for (size_t rank = 0; rank < size; ++rank) {
        if (static_cast<int>(rank) == root) continue;
        const uint64_t* next = found.data() + rank * static_cast<size_t>(entries);
        for (int64_t row = first; row < first + count; ++row, next += length) {
          for (int64_t j = 0; j < length && next[j] != kPadding; ++j) lists.offer_alone(row, without_flag(next[j]));
        }
      }
    }
  }
}

Neighbors GraphShare::search(const MatrixView& queries, const MatrixView& x, Metric metric, int64_t k,
                             const Resources& resources) const {
  const auto size = static_cast<size_t>(ranks_.size());
  std::vector<int64_t> widths;
  std::vector<int64_t> id_bytes;
  std::vector<int64_t> distance_bytes;
  int64_t all_widths = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    widths.push_back(std::min(k, rows_of(rank).count));
    id_bytes.push_back(array_bytes<int64_t>(queries.rows() * widths.back()));
    distance_bytes.push_back(array_bytes<float>(queries.rows() * widths.back()));
    all_widths += widths.back();
  }
  const RankPart own = rows();
  const int64_t width = widths[static_cast<size_t>(ranks_.rank())];
  const HostArray<int64_t> ids(queries.rows() * all_widths, "the ranks' neighbours", resources);
  const HostArray<float> distances(queries.rows() * all_widths, "the ranks' neighbours", resources);
  Neighbors found;
  if (width > 0) {
    const KnnParams wanted{.k = width, .metric = metric, .check_finite = false};
    found = knn(queries, x.slice(own.first, own.count), wanted, resources);
  }
  agree(ranks_, nullptr);
  ranks_.all_gather(found.ids(), id_bytes, ids.data());
  ranks_.all_gather(found.distances(), distance_bytes, distances.data());
  std::vector<FoundInPart> parts;
  int64_t at = 0;
  for (size_t rank = 0; rank < size; ++rank) {
    parts.push_back({ids.data() + at, distances.data() + at, widths[rank], rows_of(static_cast<int>(rank)).first});
    at += queries.rows() * widths[rank];
  }
  Neighbors joined(queries.rows(), k, resources);
  join_neighbors(parts, metric, joined.view());
  return joined;
}

}  // namespace kith
