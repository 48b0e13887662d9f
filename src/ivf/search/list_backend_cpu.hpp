// A round of a search of lists on the CPU: lists are ranked, each list's queries brought together, and lists scanned for
// all of them at once (list_scan.hpp), the nearest ones first.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/plan_budget.hpp"
#include "ivf/scan/list_scan.hpp"
#include "ivf/search/list_loop.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace kith {

inline constexpr int64_t kRangeListLength = 128;  // candidates of a range search, which are scored when a list is full

// Sizes shared by all batches of a search.
struct BatchNeeds {
  int64_t list_length = 0;  // capacity of a candidate list
  int64_t slots = 0;        // ranked lists per query
  int64_t k = 0;            // packed neighbours that are given out

  bool operator==(const BatchNeeds&) const = default;
};

// State shared by the rounds of a search.
struct CpuSearchData {
  const ListedVectors& vectors;
  IvfSearch task;
  int64_t kept = 0;                // vectors that the filter keeps, or all
  HostArray<int64_t> sizes = {};   // kept vectors of each list under a filter; initially kNotCounted
  ListTables tables;
  HostArray<uint32_t> places = {};  // of the kept vectors, where they are compared one by one

  int64_t list_length() const { return task.most ? kRangeListLength : task.fewest; }
  BatchNeeds needs(int64_t slots) const { return {list_length(), slots, task.k}; }
};
inline constexpr int64_t kNotCounted = -1;

ListsCpuPlan plan_lists_cpu(const IvfModel& model, const BatchNeeds& needs, int64_t queries, bool screened,
                            const PlanBudget& budget, const Resources& resources);

// The last plan that was made with room enough: a search of the same shape has the same one, wherever it fits.
class KeptListsPlan {
 public:
  ListsCpuPlan get(const IvfModel& model, const BatchNeeds& needs, int64_t queries, bool screened,
                   const PlanBudget& budget, const Resources& resources);

 private:
  struct Shape {
    BatchNeeds needs;
    int64_t queries = 0;
    bool screened = false;
    int threads = 0;
    std::string target;  // instruction set

    bool operator==(const Shape&) const = default;
  };

  std::mutex lock_;
  Shape shape_;
  ListsCpuPlan plan_;
};

std::unique_ptr<ListsBackend> make_cpu_backend(const CpuSearchData& search, int64_t slots, const ListsCpuPlan& plan,
                                               const Resources& planned);

}  // namespace kith
