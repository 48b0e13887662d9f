// What the search of lists on a GPU computes once for an index: the scale of its halves, each vector's term, and what
// bounds need to know of each list. Two reads of the codes; 4 bytes a vector, 12 a list and the codewords as halves.
// Vectors that are not codewords side by side become halves once, where there is room: 2 bytes for each of their columns.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "ivf/scan/scan_units.hpp"
#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace kith {

struct PreparedListsLayout : WorkspaceLayout {
  explicit PreparedListsLayout(const DeviceListsView& lists) : PreparedListsLayout(lists, true) {}
  PreparedListsLayout(const DeviceListsView& lists, bool with_halves)
      : has_halves(with_halves && PreparedLists::wants_halves(lists.codec.format)) {
    largest = take<float>(1);
    facts = take<ListFacts>(lists.lists);
    terms = take<float>(PreparedLists::has_terms(lists.kind) ? lists.count : 0);
    table =
        take<uint16_t>(has_half_table(lists.codec.format) ? table_steps(lists.codec.format) * kTableStepBytes / 2 : 0);
    halves = take<uint16_t>(has_halves ? lists.count * PreparedLists::half_cols(lists.codec.format.cols) : 0);
  }
  PreparedLists in(std::byte* memory, const DeviceListsView& lists) const {
    return {largest.in(memory), facts.in(memory), PreparedLists::has_terms(lists.kind) ? terms.in(memory) : nullptr,
            has_half_table(lists.codec.format) ? table.in(memory) : nullptr, has_halves ? halves.in(memory) : nullptr};
  }

  Slot<float> largest;
  Slot<ListFacts> facts;
  Slot<float> terms;
  Slot<uint16_t> table;
  Slot<uint16_t> halves;
  bool has_halves;
};

// Enqueues and returns.
void launch_prepare_lists(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream);

}  // namespace kith
