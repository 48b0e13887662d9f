// Turns candidate pairs into offers and merges offers into the lists, on a GPU, in any order with the same result.
//
//   keys    computes the canonical key of each pair and offers it to both rows, unless the last of a row's list is
//           nearer. An offer goes to the inbox of its row, or, if that is full, to a spill list shared by all rows
//   merge   sorts inboxes into the lists, without duplicates, and empties them
//   again   offers the spilled ones once more
//
// Repeats until nothing is spilled. Time: two row reads per pair, and a pass over the inbox counts per merge. Memory:
// 8 slots + 4 bytes per row.
#pragma once

#include "graph/build/cells/cell_workspace_cuda.hpp"
#include "graph/lists/working_lists_cuda.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct CellInboxes {
  uint64_t* entries = nullptr;  // rows x slots
  uint32_t* counts = nullptr;   // per row, zeroed by the caller; above `slots` if offers were spilled
  int64_t slots = 0;            // a power of two, at most kMostInboxSlots
  SpilledOffer* spilled = nullptr;
  uint32_t* spilled_count = nullptr;  // zeroed by the caller; above the capacity if offers were lost
  uint32_t capacity = 0;
};

struct PairKeysTask {
  PairKeyRows rows;  // of a metric computed from products
  const uint64_t* pairs = nullptr;  // slot << 32 | place
  const uint32_t* count = nullptr;  // on the device; pairs beyond the capacity are ignored
  uint32_t capacity = 0;
  const uint32_t* slots = nullptr;       // per slot: its place
  const uint32_t* place_rows = nullptr;  // per place: its row
  const uint32_t* numbers = nullptr;     // the rows' numbers as lists store them; null: the row numbers
  bool to_rows = true;                   // offers go to rows too, not only to queries
  DeviceWorkingLists lists;  // of the first rows; other rows get no offers
  CellInboxes inboxes;
};
void launch_pair_keys(const PairKeysTask& task, cudaStream_t stream);

void launch_merge_inboxes(const DeviceWorkingLists& lists, const CellInboxes& inboxes, cudaStream_t stream);

// `from`: spilled offers, in another list than the one that the inboxes spill to.
void launch_offer_again(const DeviceWorkingLists& lists, const SpilledOffer* from, int64_t count,
                        const CellInboxes& inboxes, cudaStream_t stream);

// Writes all pairs of a range of slots and places, as products would; for metrics without products.
struct AllPairsTask {
  const uint32_t* slots = nullptr;
  int64_t first_slot = 0;  // slots in pairs are numbered from here
  int64_t slot_count = 0;
  const uint32_t* place_rows = nullptr;
  int64_t first_place = 0;
  int64_t place_count = 0;
  uint64_t* pairs = nullptr;
  uint32_t* count = nullptr;
  uint32_t capacity = 0;
};
void launch_all_pairs(const AllPairsTask& task, cudaStream_t stream);

}  // namespace kith
