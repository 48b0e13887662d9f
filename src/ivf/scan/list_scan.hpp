// The list-major scan: a piece of a list is decoded once and multiplied by all queries that probe the list.
//
// Products (list_product.hpp) are compared with each query's threshold. Vectors that they cannot exclude go to the
// query's candidate list, where canonical distances to the decoded vectors decide (kernels/select). A piece with k
// candidates of its own lowers the threshold before any is inserted. Several threads scan lists of one query at once,
// so its candidate list has a lock. The order of threads affects only which vectors become candidates, never the
// result.
//
// Candidates are identified by places: those of the first segment, then those of the second, ...
//
// Cost: decoding and packing each list's vectors once, and 2 columns operations per query and vector.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/host_arrays.hpp"
#include "core/parallel_for.hpp"
#include "core/reused_memory.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/scan/list_product.hpp"
#include "ivf/scan/list_screen.hpp"
#include "ivf/segment/list_segment.hpp"
#include "kernels/lists/list_hits.hpp"
#include "kernels/select/candidate_list.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace kith {

// The lists that the queries of a batch probe, by query and, inverted, by list.
//
// Memory: twice 4 bytes per query and probe, and 8 per probed list.
// The lists of a batch's queries, nearest first: `width` entries per query, of which it probes the first counts[q].
struct ProbeTable {
  int64_t queries = 0;
  int64_t width = 0;
  PlacedArray<int32_t> lists;
  PlacedArray<int32_t> counts;
  PlacedArray<int32_t> firsts;  // how many of them a query probes before the others

  ProbeTable(ArrayPlaces& places, int64_t capacity, int64_t probes);
  int32_t list(int64_t query, int64_t rank) const { return lists[query * width + rank]; }
};

// The queries of one list.
struct ListVisit {
  int64_t list = 0;
  int64_t first = 0;  // in ListVisits::queries
  int64_t count = 0;
};

struct ListVisits {
  ReusedVector<ListVisit> lists;
  HostArray<uint32_t> queries;  // by list, ascending within each
};

enum class ProbePart : uint8_t { first, rest };

// Those for one part of the probes.
ListVisits invert_probes(const ProbeTable& table, ProbePart part, int64_t lists, const Resources& resources);
// Its memory at most.
Footprint invert_footprint(int64_t queries, int64_t probes, int64_t lists);

// The segments of an index, and the places of their vectors.
class ListedVectors {
 public:
  // `screens`: one per segment, or none.
  ListedVectors(const IvfModel& model, const std::vector<Segment>& segments, ReusedVector<SharedScreen> screens = {});

  const IvfModel& model() const { return model_; }
  const std::vector<Segment>& segments() const { return segments_; }
  bool screened() const { return !screens_.empty(); }
  const ListScreen* screen(size_t segment) const { return screened() ? screens_[segment].get() : nullptr; }
  int64_t size() const { return bases_.back(); }
  // The place of a segment's first vector.
  int64_t base(size_t segment) const { return bases_[segment]; }

  // Decodes the vectors at these places, contiguously, and replaces the places by their rows. `norms`, unless null,
  // gets the norms that the codes store.
  void decode(uint32_t* places, int64_t count, float* out, float* norms = nullptr) const;
  // Whether the vectors are stored unencoded in a single segment, so that they form a matrix.
  bool has_stored_values() const;
  MatrixView stored_values() const;
  void fetch(const uint32_t* places, int64_t count) const;
  uint32_t row_of(int64_t place) const;
  const uint8_t* code(int64_t place) const;
  // Prefetches the first lines that a scan reads from this place of a segment on; the hardware cannot predict where the
  // next list begins.
  void prefetch(size_t segment, int64_t first, int64_t end) const;

 private:
  struct Found {
    const ListSegment& segment;
    int64_t place;
  };
  Found find(int64_t place) const;

  const IvfModel& model_;
  const std::vector<Segment>& segments_;
  ReusedVector<SharedScreen> screens_;
  ReusedVector<int64_t> bases_;
};

// Whether comparing this many kept vectors by their bytes or by lookups (ListScan::compare) is faster than by their
// values.
bool compares_codes(const ListedVectors& vectors, const ListProductShape& shape, int64_t kept);

// Held for a few hundred instructions, or while a full list is scored.
class QueryLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) {
      while (taken_.load(std::memory_order_relaxed)) std::this_thread::yield();
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

struct ListScanContext {
  const ListedVectors& vectors;
  const ListTables& tables;
  const float* queries;         // of the batch, contiguous
  const double* inverse_norms;  // of the queries, for cosine
  int64_t k;                    // as many candidates lower a threshold; 0: none do
  CandidateList* lists;         // one per query
  QueryLock* locks;
  std::atomic<float>* thresholds;  // of the lists
  CandidateUser& user;
  const uint64_t* kept;  // bits by row number; null: all rows
  ProgressMeter& meter;
};

// A range of a list's vectors and of the queries that probe it.
struct ListTask {
  size_t segment = 0;
  int64_t first = 0;  // vectors of the segment
  int64_t end = 0;
  ListQueries queries;  // up to query_block of the list
};

// Used by one thread.
class ListScan : public InReusedMemory {
 public:
  ListScan(const ListScanContext& context, const ListProductShape& shape, int slot, const Resources& resources);
  // A thread's memory, including the products that it constructs when first needed.
  static Footprint footprint(const IvfModel& model, const ListProductShape& shape, const Resources& resources);

  // Runs tasks that can be processed together: a single one, or several with tables.
  void run(const ListTask* tasks, int64_t count);
  // How many of the next `count` tasks can.
  static int64_t together(const ListProductShape& shape, const ListTask* tasks, int64_t count);
  // Inserts the keys of the vectors at these ascending places into the query's list: of all, or of those that their
  // codes cannot exclude.
  void compare(int64_t query, const uint32_t* places, int64_t count);
  // Passes the query's final list to the caller.
  void finish(int64_t query);

 private:
  ListProduct& product_for(const ListTask& task);
  void scan(const ListTask& task);
  // The largest value that a query accepts, minus its error: the value of a key at the threshold.
  float limit_of(int64_t query, float threshold) const;
  void compare_codes(int64_t query, const uint32_t* places, int64_t count);
  // Inserts the hits of one query into its list.
  void take_hits(int64_t query, int64_t place_in_group, int64_t first_place);
  // Removes hits that the filter excludes; returns the number left.
  int64_t keep_hits(float* values, uint32_t* rows, int64_t count, int64_t first_place) const;
  RowScorer scorer(int64_t query);
  void score_by_norm(int64_t query, uint32_t* places, int64_t count, float* keys);
  float not_below_zero(float upper) const;

  const ListScanContext context_;
  const ListProductShape shape_;
  const int slot_;
  const int64_t cols_;
  const bool root_;     // keys are roots of values
  const bool by_norm_;  // keys are computed from norms that codes store
  const Resources resources_;
  std::unique_ptr<ListProduct> many_;  // made when first needed
  std::unique_ptr<ListProduct> few_;
  ListProduct* product_ = nullptr;  // the current task's
  struct Memory {
    Memory(ArrayPlaces& places, const ListProductShape& shape, int64_t cols);

    PlacedArray<float> hit_values;
    PlacedArray<uint32_t> hit_rows;
    PlacedArray<float> scored;  // decoded vectors
  };
  const HostArrays<Memory> memory_;
  ListHits hits_;
  ListTask task_;
  ReusedVector<ListQueries> lists_;  // scanned together
  int64_t unpolled_ = 0;             // values since the meter was last polled
  const uint32_t* run_ = nullptr;    // places of the current vectors, if not contiguous
};

}  // namespace kith
