// Compares the rows of a cell with the rows that probe it, on one CPU thread: for pairs within the products' error
// bounds the key is computed and offered to the lists.
//
// Rows are identified by their places in a PairRows. A row there below the number of lists has the list of that number;
// the others, which are streamed past a block of rows, are offered to lists but have none. Lists store the rows'
// numbers in the collection.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/pairs/pair_scan.hpp"
#include "graph/lists/working_lists.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

inline constexpr int64_t kCellTileRows = 1536;     // rows of a cell per task
inline constexpr int64_t kCellTaskQueries = 4096;  // queries per packed tile

class CellWorker final : private PairHits, private PairFirsts {
 public:
  // `numbers`: those of the rows of rows.view(); empty: row i has number i. All must outlive it.
  CellWorker(const PairRows& rows, const uint32_t* numbers, WorkingLists& lists, const Resources& resources);

  // Rows against queries of the same cell; another call compares them the other way. All have lists.
  void run_own(uint32_t first_row, int64_t row_count, uint32_t first_query, int64_t query_count, ProgressMeter& meter);
  // Rows against queries of which no pair was compared before. Either all rows have lists or none; the same holds for
  // queries.
  void run(uint32_t first_row, int64_t row_count, const uint32_t* queries, int64_t query_count, ProgressMeter& meter);

 private:
  // A pair waiting for its key.
  struct Waiting {
    int32_t query;  // places
    int32_t row;
    float lower;
    bool for_query;
    bool for_row;
  };

  template <typename Body>
  void for_blocks(const uint32_t* queries, int64_t all, ProgressMeter& meter, const Body& body);
  void put_similar_limits_together();
  bool has_list(uint32_t row) const { return row < lists_.rows(); }
  // The row numbers in the view, of the rows and queries to compare.
  uint32_t row_of_place(int64_t i) const { return all_.row_at(rows_[static_cast<size_t>(i)]); }
  uint32_t row_of_query(int64_t i) const { return all_.row_at(queries_[i]); }
  uint32_t number_of(uint32_t row) const { return numbers_ == nullptr ? row : numbers_[row]; }

  void on_first(int64_t query, const uint32_t* places, const float* keys, int64_t count) override;
  void on_pair(const PairHit& hit) override;
  void settle();
  void put_queries_together(int64_t count);
  void offer(const Waiting* first, const Waiting* end);
  void offer(const Waiting& pair, uint32_t query, uint32_t row, float key);

  const PairRows& all_;
  const uint32_t* const numbers_;
  WorkingLists& lists_;
  std::unique_ptr<PairScan> scan_;
  PairKeys keys_;
  HostArray<Waiting> waiting_;
  HostArray<Waiting> together_;  // the same, sorted by query
  int64_t waiting_count_ = 0;
  const uint32_t* queries_ = nullptr;  // places
  std::vector<uint32_t> rows_;         // places
  std::vector<uint32_t> own_queries_;  // places, of run_own
  std::vector<uint32_t> limits_;       // of rows_
  std::vector<uint32_t> ordered_;      // rows_, by limit
  std::vector<uint32_t> others_;
  std::vector<const Waiting*> pairs_;
  std::vector<float> found_;
  std::vector<uint64_t> first_;
};

}  // namespace kith
