// Lists without the vectors that have very many equal ones before them (launch_rank_repeats): a search for no more
// neighbours than that never finds these, and need not scan them. A block for each list; one read of the ranks to
// count, and one with the codes to bring together what stays, in its order.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct DistinctLists {
  const DeviceListsView& lists;
  const uint16_t* ranks = nullptr;  // of each vector
  uint32_t most = 0;                // those of a smaller rank stay
};

// How many of each list stay. Enqueues and returns.
void launch_count_distinct(const DistinctLists& from, uint32_t* counts, cudaStream_t stream);

// Where they go.
struct DistinctTarget {
  int64_t* offsets = nullptr;  // lists + 1, written before
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
// Enqueues and returns.
void launch_gather_distinct(const DistinctLists& from, const DistinctTarget& to, cudaStream_t stream);

}  // namespace kith
