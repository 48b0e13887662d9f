// From the lists of each query to the queries of each list: a counting sort of (query, list) pairs on the device, and
// the items of work that follow from it. Nothing waits for the host.
//
// A query's nearest lists, up to a number of vectors that is enough for a good threshold, are scanned first and all
// their values kept: its first pairs. What those leave of its lists is scanned with that threshold: the later pairs.
// Of a list's vectors the first `kept_rows` are kept at most, whatever its length; the others are looked at with the
// threshold. An item is a run of a list's vectors and a group of its queries:
//   first pass   first pairs x vectors up to kept_rows
//   second pass  later pairs x vectors up to kept_rows, and all pairs x the others
// Three launches, or one where pairs are few; O(pairs + lists).
#pragma once

#include "core/host_device.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr int kMostFirstSlots = 16;  // lists of a query that are scanned first

struct ProbePair {
  uint32_t query;
  uint32_t slot;  // which of the query's lists it is
};

// How pairs are cut into items.
struct ScanCut {
  int64_t kept_rows = 0;   // of a list; a multiple of 32
  int64_t first_rows = 0;  // a query's lists are scanned first until they have so many vectors
  int run_rows = 0;        // of an item; a multiple of 32
  int group_queries = 0;   // likewise, at most; a multiple of 8
};

struct ProbePairsTask {
  const int64_t* offsets = nullptr;  // lists + 1
  int64_t lists = 0;
  const uint64_t* probes = nullptr;  // queries x slots, packed neighbours: the rows are list numbers; padding is none
  int64_t queries = 0;
  int64_t slots = 0;
  ScanCut cut;
  uint32_t* counts = nullptr;        // 2 x lists, zeroed before: of first and later pairs
  uint32_t* ranks = nullptr;         // queries x slots
  uint32_t* starts = nullptr;        // 2 x lists + 1: where a list's first and later pairs begin
  ProbePair* pairs = nullptr;        // queries x slots
  uint32_t* items = nullptr;         // 2 x (lists + 1): items before each list's, for either pass
  uint32_t* value_starts = nullptr;  // queries x (kMostFirstSlots + 1): where each first slot's values begin; the last
                                     // ones are all of them
};

void launch_probe_pairs(const ProbePairsTask& task, cudaStream_t stream);

}  // namespace kith
