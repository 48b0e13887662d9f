// The search of lists on the CPU, batch after batch of queries, whatever is made of the candidates: lists are ranked, each
// list's queries brought together, and lists scanned for all of them at once (list_scan.hpp), the nearest ones first.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "ivf/scan/list_scan.hpp"
#include "ivf/scan/probe_table.hpp"
#include "ivf/search/ivf_search_plan.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace kith {

class BatchSearch {
 public:
  // The words have been made.
  BatchSearch(const ListedVectors& vectors, std::vector<float> origin, const CodeWords::Wanted& words,
              const int64_t* sizes, const uint64_t* kept, const IvfWish& wish, const IvfPlan& plan,
              const Resources& resources);

  // Takes in the queries with these numbers. Those whose lists hold too few vectors leave the batch for `short_ones`.
  void load(const MatrixView& queries, const int64_t* numbers, int64_t count, std::vector<int64_t>* short_ones);

  int64_t queries() const { return probes_.queries; }
  int64_t number(int64_t query) const { return numbers_[static_cast<size_t>(query)]; }

  void run(CandidateUser& user, ProgressMeter& meter);

 private:
  CandidateList* lists() const { return list_memory_.as<CandidateList>(); }

  // How many lists the query at `from` visits, with its lists moved to `to`. False where there are more to visit than
  // were ranked.
  bool choose_probes(int64_t from, int64_t to);

  // Tasks of a block of queries and a range of a list's vectors in a segment.
  std::vector<ListTask> cut(const ListVisits& visits) const;

  int64_t size_of(int64_t list) const;

  const ListedVectors& vectors_;
  const ListTables tables_;
  const int64_t* const sizes_;
  const uint64_t* const kept_;
  const IvfWish wish_;
  const IvfPlan plan_;
  const Resources& resources_;
  const Resources quiet_;
  HostArray<float> queries_;
  HostArray<double> inverse_norms_;
  HostBuffer list_memory_;
  std::vector<QueryLock> locks_;
  std::vector<std::atomic<float>> thresholds_;
  ProbeTable probes_;
  std::vector<int64_t> numbers_;
};

}  // namespace kith
