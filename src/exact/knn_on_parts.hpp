// Exact search by several devices of this process, which divide the queries or the rows.
//
// Divided queries: a part searches all rows for its queries and writes its part of the result. Divided rows: a part
// searches its rows for all queries, and the results of all parts, 12 bytes a neighbour and part, are merged by (key,
// row). Either way the result has the bytes of one device.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/refused_row.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "exact/search_task.hpp"
#include "ranks/agreement.hpp"
#include "ranks/join_neighbors.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kith {

inline constexpr int64_t kNeighborBytes = 12;  // an id and a distance

// Whether dividing the rows moves fewer bytes than dividing the queries, or keeps more parts busy. A pure function of
// the request, so that all ranks make the same choice.
bool deals_rows(const SearchShape& shape, int64_t k, bool filters, int size);

// Does the work; rows that it refuses are counted from the first of all, not of this part's.
template <typename Work>
void with_rows_from(int64_t first_query, int64_t first_row, const Work& work) {
  try {
    work();
  } catch (const RefusedRow& refused) {
    const bool is_query = refused.what_row() == "query";
    refused.throw_as(refused.what_row(), refused.row() + (is_query ? first_query : first_row));
  }
}

struct SharedKnn {
  int64_t queries = 0;
  int64_t rows = 0;
  Metric metric = Metric::l2;
  bool deals_rows = false;
};

// The result of a part, in host memory.
struct PartNeighbors {
  PartNeighbors(int64_t queries, int64_t k, const Resources& resources)
      : ids(queries * k, "the neighbours' ids", resources),
        distances(queries * k, "the neighbours' distances", resources),
        view{ids.data(), distances.data(), queries, k, {}} {}

  HostArray<int64_t> ids;
  HostArray<float> distances;
  NeighborsView view;
};

// The first by (key, row) of what was found in the parts of the rows, to where `out` lies.
void join_parts(const std::vector<FoundInPart>& found, Metric metric, const NeighborsView& out,
                const Resources& resources);

// search(queries, rows, out, resources): the neighbours of these queries among these rows, counted from the first of
// them, to `out`, whose k is that of the search, or the number of rows where these are fewer.
using PartSearch =
    std::function<void(RankPart queries, RankPart rows, const NeighborsView& out, const Resources& part)>;
void knn_on_parts(const SharedKnn& job, const PartSearch& search, const NeighborsView& out, const Resources& resources);

// How a search with these resources divides its work: rows where that moves less, and what they find has room; many
// queries where all parts read the rows where they lie. `lie_on`: the device in whose memory the rows are; none for those
// of files.
SharedKnn shared_knn(const SearchShape& shape, int64_t k, bool filters, std::optional<Device> lie_on,
                     const Resources& resources);

}  // namespace kith
