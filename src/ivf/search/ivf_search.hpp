// Search of an inverted file on the CPU.
//
// What is found: the first k by (distance, row) of all vectors in the `probes` nearest lists of a query, where the
// distance is that of knn() between the query and the vector that the index holds. Lists are ranked by (key of the
// metric to the centre, list). Where these lists hold fewer than min(k, kept) kept vectors, further lists follow, just
// as many as it takes; a range search keeps to its lists. Tables, halves and bounds only rule out: the same bytes for
// any number of threads, batch, segment, memory limit and processor.
//
// Queries are searched in batches: ranked, turned into (list, queries), and scanned list by list (list_scan.hpp), the
// nearest lists of all queries first, so that later ones meet low thresholds.
//
// Memory of a batch: 18 k + 1,100 bytes and 20 bytes a probe for each query, and a few hundred KB for each thread.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "kernels/select/range_hits.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/segment/list_segment.hpp"

#include <cstdint>
#include <vector>

namespace kith {

struct IvfSearch {
  int64_t k = 10;
  int64_t probes = 1;              // of all lists, where there are fewer
  const uint64_t* kept = nullptr;  // bits of row numbers; null: all rows count
};

// Queries lie on the host, of any dtype, as the model's transforms leave them, and are checked. `neighbors`: queries x k,
// packed (core/ordered_key.hpp) and padded.
void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, uint64_t* neighbors, const Resources& resources);
// The same as rows and distances, on the host.
void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, const NeighborsView& out, const Resources& resources);

// What search_ivf takes at least for so many queries of `rows` vectors, for an error that names the limit.
int64_t smallest_search_bytes(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered,
                              int64_t queries, const Resources& resources);

struct IvfRange {
  float most = 0;  // vectors with keys up to it are in range (exact/metric_unit.hpp)
  int64_t probes = 1;
  const uint64_t* kept = nullptr;
};

// All vectors in range in the queries' lists, each query's sorted. OutOfMemory names the limit that would do.
CollectedHits range_search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                               const IvfRange& range, const Resources& resources);

// What range_search_ivf takes at least beside what it finds, of which there is no telling before.
int64_t smallest_range_bytes(const IvfModel& model, int64_t probes, int64_t queries, const Resources& resources);

// The vectors that were found for all queries, sorted; OutOfMemory, naming the limit that would do, where there is no
// room for them: `search_bytes` is what finding them took.
CollectedHits collect_in_range(RangeHits& hits, int64_t queries, int64_t search_bytes, const Resources& resources);

}  // namespace kith
