// The steps of a search of lists on a GPU beside its scans (ivf_search_cuda.hpp): each a few launches, which enqueue
// and return.
#pragma once

#include "core/host_device.hpp"
#include "core/ordered_key.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"
#include "ivf/segment/device_lists_cuda.hpp"
#include "kernels/rerank/rerank_task.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// The lists that queries look at, on the device: ranked lists packed as the search takes them
// (scan_lists_task_cuda.hpp), and how many of them: those asked for, or, where they hold too few vectors, the least
// number that hold enough.

// List numbers as exact search gives them, packed; -1 becomes padding. Enqueues and returns.
void launch_pack_probes(const int64_t* lists, int64_t count, uint64_t* packed, cudaStream_t stream);

// Adds the vectors of each list, those that `kept` keeps by their row numbers or all, to sizes. Enqueues and returns.
void launch_add_list_sizes(const DeviceListsView& lists, const uint64_t* kept, uint32_t* sizes, cudaStream_t stream);

// A bound of each query: neighbours that do not come before it, packed, are not looked for; padding is none. It follows
// from what other lists have, or a sample.
struct QueryBounds {
  const uint64_t* bounds = nullptr;  // null: no bounds
  int64_t stride = 1;

  KITH_HOST_DEVICE uint64_t of(int64_t query) const { return bounds == nullptr ? kPadding : bounds[query * stride]; }
  QueryBounds from(int64_t query) const { return {bounds == nullptr ? nullptr : bounds + query * stride, stride}; }
};

// Lowers bounds, one for each query, to what comes behind the last of k neighbours that were found of each, sorted and
// padded: these will be found again. Enqueues and returns.
void launch_lower_bounds(const uint64_t* found, int64_t queries, int64_t k, uint64_t* bounds, cudaStream_t stream);

struct ProbeLimitsTask {
  uint64_t* probes = nullptr;  // queries x slots, packed lists in their order; those past a query's become padding
  int64_t queries = 0;
  int64_t slots = 0;
  int64_t asked = 0;
  int64_t least = 0;                // vectors that a query's lists must hold
  const uint32_t* sizes = nullptr;  // per list
  int64_t lists = 0;
  uint32_t* short_count = nullptr;    // zeroed before: of queries whose slots hold too few, unless they are all lists;
  uint32_t* short_queries = nullptr;  // which they are, in no order: all their probes become padding
};
// Enqueues and returns.
void launch_probe_limits(const ProbeLimitsTask& task, cudaStream_t stream);

// From the values of the first pass to each query's reach and its first candidates.
//
// A block holds a query's values in registers and finds a value that k of them do not exceed by halving the range; with
// the bounds of the lists that is the reach, and values that it does not rule out become candidates. Where there are
// many values it looks at the least of every eight, which is a little more than the k-th and takes an eighth of the
// comparisons. One read of the values.
inline constexpr int64_t kMostFirstValues = 32768;  // of a query: what a block's registers hold

struct ListSelectTask : ProbedLists {
  int64_t k = 0;
  const uint32_t* value_starts = nullptr;
  const float* values = nullptr;
  int64_t value_stride = 0;  // at most kMostFirstValues
  const ErrorBounds* bounds = nullptr;
  const uint32_t* unsure = nullptr;
  float* reaches = nullptr;      // output; infinite if fewer than k values are known
  bool lists_candidates = true;  // false: the second pass scans all vectors and finds these again
  ListCandidates candidates = {};
};

// Enqueues and returns.
void launch_list_select(const ListSelectTask& task, cudaStream_t stream);

// Reaches of queries that are no longer than their bounds. Cosine's stay as they are. Enqueues and returns.
void launch_shorten_reaches(const ListSelectTask& task, const QueryBounds& bounds, cudaStream_t stream);

// Turns candidates of lists into neighbours: computes canonical keys of the decoded vectors and sorts them. If there
// are many, the k-th smallest estimate rules out most; four threads compute the canonical key of each other one.
//
// One warp per query if there are many queries, which avoids barriers and hides the latency of one query behind others;
// a block per query if they are few, or have too many candidates for a warp. Queries with too many candidates for a
// block, or whose bounds rule out nothing, are left to launch_list_direct().
inline constexpr int64_t kMostListCandidates = 4096;  // of a query, that their k-th estimate is taken from

struct ListRerankTask : ProbedLists {
  int64_t k = 0;
  ListCandidates candidates = {};      // without entries all queries go to the direct search
  const ErrorBounds* worst = nullptr;  // of each query's estimates
  int64_t room = 0;                    // candidates that are not ruled out; queries with more are left
  const uint32_t* unsure = nullptr;
  const float* reaches = nullptr;  // of each query that is not unsure, ties included; none: nothing is known
  FailedQueries crowded = {};      // queries with too many candidates for a warp
  FailedQueries left = {};         // undecided queries: written here, read by launch_list_direct()
  uint64_t* neighbors = nullptr;   // queries x k, sorted, padded
  QueryBounds elsewhere = {};      // launch_list_direct() skips anything farther
  bool begun = false;  // launch_list_direct() finds there, in the same form, what other lists have, and adds to it
};

// Enqueues and returns.
void launch_list_rerank(const ListRerankTask& task, cudaStream_t stream);

// Searches lists without estimates, for queries left by those: computes the canonical keys of all vectors of a query's
// lists and keeps the k smallest.
//
// A list is skipped if the query's reach does not extend to it: |x - c| is larger than the reach plus the list's
// radius. If bounds are by row, a vector is skipped if its distance from c differs from the query's by more than the
// reach: with norms over decades few vectors are compared. The k-th key so far is also a reach. The first queries are
// each shared by several blocks, which take the runs of vectors in turn; the last one to finish merges their results.
// The others get one block each. Bound by float64 arithmetic and decoding. Device memory:
struct DirectMemory {
  uint32_t* arrived = nullptr;  // kSharedQueries, zeroed before
  uint64_t* parts = nullptr;    // direct_part_entries(k)
  uint64_t* lists = nullptr;    // direct_list_entries(...)
};
inline constexpr int64_t kSharedQueries = 128;
int64_t direct_part_entries(int64_t k);
int64_t direct_list_entries(int64_t k, int64_t cols, int multiprocessors);  // 0 where shared memory has room

// For the undecided queries, whose number is read on the device, or for all where there are no candidates' entries.
// Enqueues and returns.
void launch_list_direct(const ListRerankTask& task, const DirectMemory& memory, cudaStream_t stream);

// The same of up to four queries and 256 neighbours, by all multiprocessors and in short code (list_short_cuda.cu):
// launch_list_direct() calls it where no estimates were made.
bool suits_list_short(const ListRerankTask& task);
void launch_list_short(const ListRerankTask& task, const DirectMemory& memory, cudaStream_t stream);

// All vectors in range in the queries' lists, on a GPU: canonical keys of every vector, of which those up to a key are
// written, in no order. A block for each query and list. Bound by double arithmetic and decoding. What is found, of all
// queries:
struct ListRangeHits {
  unsigned long long* total = nullptr;  // zeroed before; may end above capacity, where some were dropped
  uint32_t* counts = nullptr;           // of each query, likewise
  uint64_t* neighbors = nullptr;        // packed
  uint32_t* queries = nullptr;          // the query of each
  int64_t capacity = 0;
};

struct ListRangeTask : ProbedLists {
  float most = 0;  // the largest key in range
  ListRangeHits hits = {};
};

// Enqueues and returns.
void launch_list_range(const ListRangeTask& task, cudaStream_t stream);

// Puts hits together by query: starts[q] is where those of query q begin, and moves on as they come.
void launch_group_hits(const ListRangeHits& hits, int64_t count, int64_t* starts, uint64_t* grouped,
                       cudaStream_t stream);

// Adds to the count of each list of at least that many vectors the number of probes of it.
void launch_count_probing(const uint64_t* probes, int64_t count, const DeviceListsView& lists, int64_t least,
                          uint32_t* counts, cudaStream_t stream);
// Writes the number of queries that visit a list, which must be 0 before, then the queries' numbers in any order.
void launch_list_probing(const uint64_t* probes, int64_t queries, int64_t slots, uint32_t list, uint32_t* found,
                         cudaStream_t stream);
// Replaces probes of lists with nonzero `marks` by padding.
void launch_leave_out_probes(const uint64_t* probes, int64_t count, const uint8_t* marks, uint64_t* out,
                             cudaStream_t stream);
// Packs the results of exact search in a single list, m x k numbers of its vectors and their keys, as neighbours with
// the rows of these vectors.
void launch_pack_found(const int64_t* ids, const float* keys, int64_t count, const uint32_t* rows, uint64_t* out,
                       cudaStream_t stream);
// Lists of k neighbours of the queries with these numbers, m of them, from their places and back.
void launch_take_found(const uint64_t* from, const uint32_t* numbers, int64_t m, int64_t k, uint64_t* to,
                       cudaStream_t stream);
void launch_put_found(const uint64_t* from, const uint32_t* numbers, int64_t m, int64_t k, uint64_t* to,
                      cudaStream_t stream);

// Copies stored f32 vectors into the order of their rows. `filled` has a bit for each row, initially zero, and an extra
// word, which becomes nonzero if a row number is too large or occurs twice.
void launch_place_vectors(const DeviceListsView& lists, int64_t rows, float* out, uint32_t* filled,
                          cudaStream_t stream);

// The nearest of two lists of neighbours for each query: what was found in two parts of a collection, brought
// together. `a` and `b` have k packed neighbours for each query, sorted, no row in both, and padded; `out`, which is
// neither, gets the first k of all. A search by bisection for each; enqueues and returns.
void launch_merge_found(const uint64_t* a, const uint64_t* b, int64_t queries, int64_t k, uint64_t* out,
                        cudaStream_t stream);

}  // namespace kith
