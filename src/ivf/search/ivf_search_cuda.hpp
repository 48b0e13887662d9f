// The search of inverted lists on a GPU: from each query's lists to its nearest neighbours, the first k by (canonical
// key, row), in eight launches and nothing that waits.
//
//   1-3. pairs of queries and lists are sorted by list (launch_probe_pairs); lookups want no order, and one launch; for
//        products and cosine one more makes of each query what does not depend on the list (launch_query_forms)
//   4.   the first pass scans each query's nearest lists, or a sample of them, and keeps all values
//   (scan_lists_task_cuda.hpp)
//   5.   the k-th of them is the query's reach (launch_list_select)
//   6.   the second pass scans the other vectors, or all, for what that does not rule out
//   7.   canonical keys of the candidates, sorted (launch_list_rerank)
//   8.   queries that bounds say nothing about, or that have too many candidates, are searched directly
//        (launch_list_direct)
//
// Memory: 4 bytes for each value of the first pass, 16 for each candidate, 12 a pair; none in proportion to a list.
// Queries are searched in batches that fit.
#pragma once

#include "core/slot.hpp"
#include "ivf/scan/prepare_lists_cuda.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"
#include "ivf/search/ivf_search_plan.hpp"
#include "ivf/search/list_steps_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Applies to all queries. `shape` has their number, the lists per query and the multiprocessors.
struct IvfSearchTask : ProbedLists {
  uint64_t* neighbors = nullptr;      // queries x k, sorted, padded
  const uint16_t* repeats = nullptr;  // optional, of each vector (launch_rank_repeats)
  ScanTerms terms = {};               // as planned
  QueryBounds elsewhere = {};         // vectors farther than this are not searched
  bool zeroed = false;                // zeroed_bytes() of the memory are zero; for one batch only
  bool leaves_direct = false;         // the last step is the caller's: launch_ivf_direct(); for one batch only
  ProductEngine engine = ProductEngine::automatic;
};

// With plan.bytes of memory, aligned to 256 bytes. Enqueues and returns. `stages` records an event after each stage,
// where given (kIvfStages + 1, the first before all); of the last batch.
inline constexpr int kIvfStages = 6;
void launch_ivf_search(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                       std::byte* memory, cudaStream_t stream, const cudaEvent_t* stages = nullptr);

// Runs the last step that a search skipped, for all undecided queries, over the lists in task.probes (possibly
// fewer). `begun`: task.neighbors hold what was found of them in other lists, sorted and padded.
void launch_ivf_direct(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                       std::byte* memory, cudaStream_t stream, bool begun = false);

// Counters of that step. Set all kSharedQueries to 0 before launching it again.
uint32_t* directly_arrived(std::byte* memory, const IvfSearchShape& shape, const IvfSearchPlan& plan);

// The queries of the last batch that were, or had to be, searched directly; valid once it is done.
const uint32_t* left_queries(const std::byte* memory, const IvfSearchShape& shape, const IvfSearchPlan& plan);

// The number of leading bytes of the memory that must be zero, a multiple of 256.
int64_t zeroed_bytes(const IvfSearchShape& shape, const IvfSearchPlan& plan);

// The number of queries of the last batch that were searched directly; valid once it is done.
inline const uint32_t* directly_searched(const std::byte* memory) { return Slot<uint32_t>{0, 4}.in(memory) + 2; }

// The number of candidates of each query.
const uint32_t* candidate_counts(const std::byte* memory, const IvfSearchShape& shape, const IvfSearchPlan& plan);

}  // namespace kith
