// Pairs that may matter become offers, and offers enter the lists: on a GPU, in any order, with the same result.
//
//   keys    the canonical key of each pair, offered to both its rows, unless the last of a row's list is nearer. An offer
//           waits in the inbox of its row; where that is full it is spilled to a list for all rows
//   merge   inboxes are sorted into the lists, nobody twice, and are empty again
//   again   spilled offers are offered once more
//
// Until nothing is spilled these are repeated. Time: a read of two rows for each pair; a pass over the inboxes' counts
// for each merge. Memory: 8 slots + 4 bytes a row.
#pragma once

#include "graph/build/cells/cell_workspace_cuda.hpp"
#include "graph/lists/working_lists_cuda.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct CellInboxes {
  uint64_t* entries = nullptr;  // rows x slots
  uint32_t* counts = nullptr;   // of each row, zeroed before; may be above slots, where offers were spilled
  int64_t slots = 0;            // a power of two, at most kMostInboxSlots
  SpilledOffer* spilled = nullptr;
  uint32_t* spilled_count = nullptr;  // zeroed before; may end above capacity, where offers were lost
  uint32_t capacity = 0;
};

struct PairKeysTask {
  PairKeyRows rows;  // of a kind made of products
  const uint64_t* pairs = nullptr;  // slot << 32 | place
  const uint32_t* count = nullptr;  // on the device; no more than capacity are looked at
  uint32_t capacity = 0;
  const uint32_t* slots = nullptr;       // the place of each slot
  const uint32_t* place_rows = nullptr;  // the row at each place
  const uint32_t* numbers = nullptr;     // the rows' numbers in lists; null: their own
  bool to_rows = true;                   // and not to the queries alone
  DeviceWorkingLists lists;  // of the first so many rows; others are offered nothing
  CellInboxes inboxes;
};
void launch_pair_keys(const PairKeysTask& task, cudaStream_t stream);

void launch_merge_inboxes(const DeviceWorkingLists& lists, const CellInboxes& inboxes, cudaStream_t stream);

// `from`: offers that were spilled, of another list than the inboxes'.
void launch_offer_again(const DeviceWorkingLists& lists, const SpilledOffer* from, int64_t count,
                        const CellInboxes& inboxes, cudaStream_t stream);

// All pairs of some slots with some places, as products write them: where there are no products.
struct AllPairsTask {
  const uint32_t* slots = nullptr;
  int64_t first_slot = 0;  // pairs name slots from here on
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
