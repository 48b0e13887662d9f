// The list-major scan: a piece of a list is decoded once and multiplied by all queries that probe the list.
//
// Products of packed panels are compared in registers with each query's threshold; what they cannot exclude is put on
// the query's candidate list, of which the canonical distance to the decoded vector decides (kernels/select). Lists of
// one query are scanned by several threads at once, so that its candidates have a lock. Which thread comes first
// changes only which vectors become candidates, never the result.
//
// Candidates are numbered by places: those of the first segment, then those of the second, ...
//
// Cost: for each list once the decoding and packing of its vectors; 2 columns operations for each query and vector.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "exact/scan_context.hpp"
#include "ivf/ivf_model.hpp"
#include "ivf/list_panels.hpp"
#include "ivf/list_segment.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/select/candidate_list.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace kith {

// The segments of an index, and the places of their vectors.
class ListedVectors {
 public:
  ListedVectors(const IvfModel& model, const std::vector<Segment>& segments);

  const IvfModel& model() const { return model_; }
  const std::vector<Segment>& segments() const { return segments_; }
  int64_t size() const { return bases_.back(); }
  // The place of a segment's first vector.
  int64_t base(size_t segment) const { return bases_[segment]; }

  // Decodes the vectors at these places, one after the other, and puts their rows in place of the places.
  void decode(uint32_t* places, int64_t count, float* out) const;
  uint32_t row_of(int64_t place) const;

 private:
  struct Found {
    const ListSegment& segment;
    int64_t place;
  };
  Found find(int64_t place) const;

  const IvfModel& model_;
  const std::vector<Segment>& segments_;
  std::vector<int64_t> bases_;
};

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
  KeyKind kind;
  const float* queries;           // of the batch, one after the other
  const double* inverse_norms;    // of the queries, for cosine
  const std::vector<float>& origin;  // of a list without a centre
  CandidateList* lists;           // one for each query
  QueryLock* locks;
  CandidateUser& user;
  const uint64_t* kept;  // bits of row numbers, or null where all rows count
  ProgressMeter& meter;
};

struct ListScanShape {
  PanelFormat format = PanelFormat::f32;
  int64_t query_block = 0;  // queries packed at a time
  int64_t piece_rows = 0;   // vectors decoded at a time

  static ListScanShape choose(PanelFormat format, int64_t cols);
};

// Some vectors of a list and some queries that probe it.
struct ListTask {
  int64_t list = 0;
  size_t segment = 0;
  int64_t first = 0;  // vectors of the segment
  int64_t end = 0;
  const uint32_t* queries = nullptr;
  int64_t query_count = 0;  // up to query_block
};

// One thread's.
class ListScan final : private PanelHits {
 public:
  ListScan(const ListScanContext& context, const ListScanShape& shape, int slot, const Resources& resources);
  static int64_t bytes_for(const ListScanShape& shape, int64_t cols);

  void run(const ListTask& task);
  // Hands the query's list to the user.
  void finish(int64_t query);

 private:
  void pack_queries(const ListTask& task);
  void on_hit(int64_t query, int64_t panel, const float* values) override;
  void set_limit(int64_t query);
  RowScorer scorer(int64_t query);

  const ListScanContext context_;
  const ListScanShape shape_;
  const int slot_;
  const int64_t cols_;
  ListPanels rows_;
  PackedQueries queries_;
  HostBuffer packing_;
  HostArray<float> gathered_;  // a panel's queries, or vectors to score
  HostArray<float> limits_;
  std::vector<float> origin_;
  PanelQueries panels_;
  ListTask task_;
  int64_t first_place_ = 0;  // of the piece
};

}  // namespace kith
