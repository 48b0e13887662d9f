// Compacts lists to the vectors without very many equal predecessors (launch_rank_repeats): a search for no more
// neighbours than that never returns the others and need not scan them. One block per list; reads the ranks once to
// count, and once more, with the codes, to compact, in order.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct DistinctLists {
  const DeviceListsView& lists;
  const uint16_t* ranks = nullptr;  // per vector
  uint32_t most = 0;                // vectors of smaller rank are kept
};

// Counts the kept vectors of each list. Enqueues.
void launch_count_distinct(const DistinctLists& from, uint32_t* counts, cudaStream_t stream);

// The compacted lists.
struct DistinctTarget {
  int64_t* offsets = nullptr;  // lists + 1, input
  uint8_t* codes = nullptr;
  uint32_t* rows = nullptr;
  uint16_t* ranks = nullptr;
};
struct DistinctLayout : WorkspaceLayout {
  DistinctLayout(int64_t lists, int64_t count, int64_t code_bytes)
      : offsets(take<int64_t>(lists + 1)),
        codes(take<uint8_t>(count, code_bytes)),
        rows(take<uint32_t>(count)),
        ranks(take<uint16_t>(count)) {}
  DistinctTarget in(std::byte* memory) const {
    return {offsets.in(memory), codes.in(memory), rows.in(memory), ranks.in(memory)};
  }

  Slot<int64_t> offsets;
  Slot<uint8_t> codes;
  Slot<uint32_t> rows;
  Slot<uint16_t> ranks;
};
// Enqueues.
void launch_gather_distinct(const DistinctLists& from, const DistinctTarget& to, cudaStream_t stream);

}  // namespace kith
