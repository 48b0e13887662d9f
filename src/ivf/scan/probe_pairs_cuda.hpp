// From the lists of each query to the queries of each list: a counting sort of (query, list) pairs on the device, and
// the items of work that follow from it. Nothing waits for the host.
// How pairs are cut into items is in scan_cut.hpp.
// Three launches, or one where pairs are few; O(pairs + lists).
#pragma once

#include "ivf/scan/scan_cut.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct ProbePair {
  uint32_t query;
  uint32_t slot;  // which of the query's lists it is
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
  ProbePair* pairs = nullptr;        // queries x slots; none: value_starts are all that is wanted
  uint32_t* items = nullptr;         // 2 x (lists + 1): items before each list's, for either pass
  uint32_t* value_starts = nullptr;  // queries x (kMostFirstSlots + 1): where each first slot's values begin; the last
                                     // ones are all of them
};

void launch_probe_pairs(const ProbePairsTask& task, cudaStream_t stream);

}  // namespace kith
