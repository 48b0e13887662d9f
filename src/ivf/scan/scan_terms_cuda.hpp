// Makes what scan_terms.hpp says: a block for each list, which has the list's table in shared memory and looks the list's
// vectors up in it. One read of the codes.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "ivf/scan/scan_terms.hpp"
#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace kith {

struct ScanTermsLayout : WorkspaceLayout {
  ScanTermsLayout(const DeviceListsView& lists, ScanTerm kept) : term(kept) {
    const int64_t floats = scan_term_floats(term, lists.codec.format, lists.lists, lists.count);
    middle = take<float>(lists.codec.format.cols);
    values = take<float>(floats);
  }
  ScanTerms in(std::byte* memory) const {
    float* const floats = values.in(memory);
    return {term, middle.in(memory), term == ScanTerm::of_vector ? floats : nullptr,
            term == ScanTerm::of_list ? floats : nullptr};
  }

  ScanTerm term;
  Slot<float> middle;
  Slot<float> values;
};

// For codes that suits_tables() says, after launch_prepare_lists(). Enqueues and returns.
void launch_scan_terms(const DeviceListsView& lists, const PreparedLists& prepared, const ScanTerms& terms,
                       cudaStream_t stream);

}  // namespace kith
