// The steps of a search of lists on a GPU beside its scans (ivf_search_cuda.hpp): each a few launches, which enqueue
// and return.
#pragma once

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

struct ProbeLimitsTask {
  uint64_t* probes = nullptr;  // queries x slots, packed lists in their order; those past a query's become padding
  int64_t queries = 0;
  int64_t slots = 0;
  int64_t asked = 0;
  int64_t least = 0;                // vectors that a query's lists must hold
  const uint32_t* sizes = nullptr;  // of each list
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
  float* reaches = nullptr;      // written; infinite where fewer than k values are known
  bool lists_candidates = true;  // false: the second pass looks at all vectors, and finds these again
  ListCandidates candidates = {};
};

// Enqueues and returns.
void launch_list_select(const ListSelectTask& task, cudaStream_t stream);

// Reaches of queries that are no longer than the last of k neighbours that each has elsewhere, queries x k, sorted and
// padded. Cosine's stay as they are. Enqueues and returns.
void launch_shorten_reaches(const ListSelectTask& task, const uint64_t* elsewhere, cudaStream_t stream);

// From candidates of lists to neighbours: canonical keys of the decoded vectors, sorted. Where candidates are many the
// k-th smallest estimate rules most of them out; four threads compute the canonical key of each of the others.
//
// A warp for each query where queries are many, which spares barriers and hides one query's waits behind others' work;
// a block for each where they are few, and for those that have too many candidates for a warp. Queries whose candidates
// are too many for that too, or whose bounds say nothing, are left to launch_list_direct().
inline constexpr int64_t kMostListCandidates = 4096;  // of a query, that their k-th estimate is taken from

struct ListRerankTask : ProbedLists {
  int64_t k = 0;
  ListCandidates candidates = {};      // no entries: all queries are left
  const ErrorBounds* worst = nullptr;  // of each query's estimates
  int64_t room = 0;                    // candidates that are not ruled out; queries with more are left
  const uint32_t* unsure = nullptr;
  const float* reaches = nullptr;  // of each query that is not unsure, ties included; none: nothing is known
  FailedQueries crowded = {};      // memory for those that are too much for a warp
  FailedQueries left = {};         // written by the one, read by the other
  uint64_t* neighbors = nullptr;   // queries x k, sorted, padded
  const uint64_t* elsewhere = nullptr;  // the same of other lists, or none: launch_list_direct() needs nothing farther
  bool begun = false;  // launch_list_direct() finds there, in the same form, what other lists have, and adds to it
};

// Enqueues and returns.
void launch_list_rerank(const ListRerankTask& task, cudaStream_t stream);

// The search of lists without estimates, for queries that those leave: the canonical keys of all vectors of a query's
// lists, of which the k smallest are kept.
//
// A list is skipped where the query's reach ends before it begins: |x - c| is larger than the reach and the list's
// radius together. Where bounds are by row, so is a vector whose distance from c differs from the query's by more than
// the reach: of norms over decades few vectors are compared. The k-th key so far is a reach too. The first queries
// are shared by several blocks, each with every so many runs of vectors; the last of them to be done brings their lists
// together. A block for each of the others. Bound by double arithmetic and decoding. What it needs of device memory:
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

// Adds to the count of each list of at least so many vectors how many of the probes are of it.
void launch_count_probing(const uint64_t* probes, int64_t count, const DeviceListsView& lists, int64_t least,
                          uint32_t* counts, cudaStream_t stream);
// The numbers of the queries that look at a list, in no order, after how many they are, which is 0 before.
void launch_list_probing(const uint64_t* probes, int64_t queries, int64_t slots, uint32_t list, uint32_t* found,
                         cudaStream_t stream);
// Probes of lists that are marked become padding; `lists` marks, of which those that are not 0 say so.
void launch_leave_out_probes(const uint64_t* probes, int64_t count, const uint8_t* marks, uint64_t* out,
                             cudaStream_t stream);
// What exact search found in one list, m x k numbers of its vectors and their keys, as packed neighbours with the rows
// of these.
void launch_pack_found(const int64_t* ids, const float* keys, int64_t count, const uint32_t* rows, uint64_t* out,
                       cudaStream_t stream);
// Lists of k neighbours of the queries with these numbers, m of them, from their places and back.
void launch_take_found(const uint64_t* from, const uint32_t* numbers, int64_t m, int64_t k, uint64_t* to,
                       cudaStream_t stream);
void launch_put_found(const uint64_t* from, const uint32_t* numbers, int64_t m, int64_t k, uint64_t* to,
                      cudaStream_t stream);

// Stored f32 vectors to the places of their rows, of which there are so many. `filled` has a bit for each row, zero
// before, and a word more, which is not zero where a row is beyond those or comes twice.
void launch_place_vectors(const DeviceListsView& lists, int64_t rows, float* out, uint32_t* filled,
                          cudaStream_t stream);

// The nearest of two lists of neighbours for each query: what was found in two parts of a collection, brought
// together. `a` and `b` have k packed neighbours for each query, sorted, no row in both, and padded; `out`, which is
// neither, gets the first k of all. A search by bisection for each; enqueues and returns.
void launch_merge_found(const uint64_t* a, const uint64_t* b, int64_t queries, int64_t k, uint64_t* out,
                        cudaStream_t stream);

}  // namespace kith
