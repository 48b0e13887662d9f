// What a scan of inverted lists is given, where it writes what it finds, and the kernels that scan.
#pragma once

#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/segment/device_lists_cuda.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Lists, and the queries that look at some of them: what every step of a search is given.
struct ProbedLists {
  DeviceListsView lists = {};
  PreparedLists prepared = {};
  const float* queries = nullptr;  // f32
  int64_t query_stride = 0;
  int64_t query_count = 0;
  const uint64_t* probes = nullptr;  // query_count x slots, packed neighbours: rows are list numbers; padding is none
  int64_t slots = 0;
  const uint64_t* kept = nullptr;  // bits of a filter, by row number
  int multiprocessors = 0;
};

// From the lists of each query to the queries of each list: a counting sort of (query, list) pairs on the device, and
// the items of work that follow from it. Nothing waits for the host.
// How pairs are cut into items is in scan_cut.hpp.
// Three launches, or one where pairs are few; O(pairs + lists).
struct ProbePair {
  uint32_t query;
  uint32_t slot;  // which of the query's lists it is
};

struct ProbePairsTask : ProbedLists {
  ScanCut cut = {};
  uint32_t* counts = nullptr;        // 2 x lists, zeroed before: of first and later pairs
  uint32_t* ranks = nullptr;         // queries x slots
  uint32_t* starts = nullptr;        // 2 x lists + 1: where a list's first and later pairs begin
  ProbePair* pairs = nullptr;        // queries x slots; none: value_starts are all that is wanted
  uint32_t* items = nullptr;         // 2 x (lists + 1): items before each list's, for either pass
  uint32_t* value_starts = nullptr;  // queries x (kMostFirstSlots + 1): where each first slot's values begin; the last
                                     // ones are all of them
};

void launch_probe_pairs(const ProbePairsTask& task, cudaStream_t stream);

// A vector that may be among the nearest of a query.
struct ListCandidate {
  uint32_t position;  // in the order of lists
  float estimate;
};

struct ErrorBounds {  // of a query's estimates, as PairBounds has them
  float error;
  float moved;
};

struct ListCandidates {
  uint32_t* counts = nullptr;        // of each query, zeroed before; may end above capacity, where some were dropped
  ListCandidate* entries = nullptr;  // queries x capacity
  uint32_t* lists = nullptr;         // likewise: the list of each
  int64_t capacity = 0;
  const uint16_t* repeats = nullptr;  // of each vector (launch_rank_repeats); none: not known, or a filter is there
  int64_t k = 0;

  // Whether k equal vectors of the same list come before it.
  KITH_HOST_DEVICE bool has_enough_before(uint32_t position) const {
    return repeats != nullptr && repeats[position] >= k;
  }
};

// Floats of a query's tables of additive codes (scan_lists_sums_cuda.cu).
KITH_HOST_DEVICE inline int64_t sum_table_floats(const CodeFormat& format) { return format.parts * (256 + 1) + 1; }

// What the scan knows of a query and one of its lists.
struct ScanQuery {
  PairBounds bounds;
  uint32_t query;
  uint32_t slot;
  uint32_t value_start;
};

// The pairs' queries in the format of wide vectors' products (pair_operands_cuda.cu), in the order of lists. In the
// second pass, the remaining ones are contiguous around the place where the list's later pairs begin: the first ones
// before it.
struct PairOperands {
  uint16_t* halves = nullptr;  // pairs x stride, minus the list's centre and negated; zeros past the columns
  int64_t stride = 0;
  ScanQuery* queries = nullptr;  // of each pair
  float* limits = nullptr;       // of the second pass
  uint32_t* listed = nullptr;    // 2 x lists, zeroed before: first and later pairs that are not left out
};

// For lookups in product codes pairs are not sorted: value_starts are all that they have.
struct ScanListsTask : ProbePairsTask {
  float* values = nullptr;  // queries x value_stride; NaN for what a filter leaves out
  int64_t value_stride = 0;
  ErrorBounds* bounds = nullptr;   // queries x kMostFirstSlots
  const float* reaches = nullptr;  // of the second pass, as the next: one for each query, ties included
  ListCandidates candidates = {};
  ErrorBounds* worst = nullptr;  // of each query, over its pairs; zeroed before
  uint32_t* unsure = nullptr;    // of each query: set if bounds rule out nothing
  uint32_t* counter = nullptr;   // zeroed before
  ProductEngine engine = ProductEngine::automatic;
  bool tables = false;          // by lookup tables instead
  ScanTerms terms = {};         // of these
  float* sum_tables = nullptr;  // of additive codes, sum_table_floats() for each query: by these, where that can be
  PairOperands operands = {};   // of wide vectors
  const float* query_scales = nullptr;  // of each query, where products are of whole queries (launch_query_forms)

  // What products read of a vector, and its bytes: its code, or its halves.
  const uint8_t* scanned() const {
    return prepared.halves != nullptr ? vectors<uint8_t>(prepared.halves) : lists.codes;
  }
  int64_t scanned_bytes() const {
    const CodeFormat& format = lists.codec.format;
    return prepared.halves != nullptr ? 2 * PreparedLists::half_cols(format.cols) : format.bytes();
  }
};

// What products take of queries whatever the list: where lists are searched by distances of vectors of length 1 the
// queries at that length, as f32, queries x columns, NaN for a zero vector, of which nothing is sure; where products
// are of whole queries the power of two that each is multiplied by. One read of the queries. Enqueues and returns.
struct QueryForms {
  float* unit = nullptr;
  float* scales = nullptr;
};
void launch_query_forms(const ProbedLists& task, const QueryForms& forms, cudaStream_t stream);

// Scans inverted lists on tensor cores: a list is decoded once for all queries that visit it.
//
// An item is a run of a list's vectors and a group of its queries (scan_cut.hpp). The queries, minus the list's centre,
// are in shared memory as fp16 (scan_queries_cuda.hpp); vectors are decoded to fp16 in registers
// (scan_decoders_cuda.hpp), as the tensor cores' left operand. On Hopper, products are computed by warpgroups, 64
// vectors with up to 64 queries at a time; on other GPUs by warps.
//
//   first pass   writes the estimate (device_lists_cuda.hpp) of every pair of its items
//   second pass  writes the vectors that the query's reach does not rule out, with bounds on their distance or key
//
// Time is that of the products, or of decoding if a list has few queries.

// The kernels that scan lists: one for each kind of matrix product, and two by lookup tables. ivf_search_cuda.cpp
// chooses.
inline constexpr int kNarrowQueries = 128;  // of a group, of vectors of up to 128 columns

// The most queries of a group, whichever engine: what the shared memory of a block has room for. 0: none has.
int scan_group_queries(const CodeFormat& format);

// Products of single warps. Any vectors that scan_group_queries() has a number for.
void launch_scan_mma(const ScanListsTask& task, bool first, cudaStream_t stream);

// Products of warpgroups, which Hopper alone has, of vectors of up to 128 columns; not for cosine.
void launch_scan_wgmma(const ScanListsTask& task, bool first, cudaStream_t stream);

// The same of any number of columns, which are walked in chunks, for all metrics. After launch_pair_operands() of the
// same pass.
inline constexpr int kWideQueries = 192;  // of a group
inline constexpr int kWideChunkCols = 64;
inline bool is_wide(const CodeFormat& format) { return format.cols > kNarrowSteps * 16; }
void launch_pair_operands(const ScanListsTask& task, bool first, cudaStream_t stream);
void launch_scan_wide(const ScanListsTask& task, bool first, cudaStream_t stream);

// Lookup tables, on every GPU: for distances, and codes that suits_tables() says.
bool suits_tables(const CodeFormat& format);
void launch_scan_tables(const ScanListsTask& task, bool first, cudaStream_t stream);

// Lookup tables of additive codes, in a list without a centre; not for cosine. Tables first: task.sum_tables.
bool suits_sums(const CodeFormat& format);
inline bool scans_sums(const ScanListsTask& task) {
  return task.sum_tables != nullptr && !task.lists.has_origin() && task.lists.kind != KeyKind::cosine;
}
void launch_sum_tables(const ScanListsTask& task, int64_t queries, cudaStream_t stream);
void launch_scan_sums(const ScanListsTask& task, bool first, cudaStream_t stream);

}  // namespace kith
