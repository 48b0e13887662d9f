// What the search of lists on a GPU computes once for an index: the scale of its halves, each vector's term, and what
// bounds need to know of each list. Two reads of the codes; 4 bytes a vector, 12 a list and the codewords as halves.
// Vectors that are not codewords side by side become halves once, where there is room: 2 bytes for each of their
// columns.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct PreparedListsLayout : WorkspaceLayout {
  explicit PreparedListsLayout(const DeviceListsView& lists) : PreparedListsLayout(lists, true) {}
  PreparedListsLayout(const DeviceListsView& lists, bool with_halves)
      : has_halves(with_halves && PreparedLists::wants_halves(lists.codec.format)) {
    largest = take<float>(1);
    facts = take<ListFacts>(lists.lists);
    terms = take<float>(PreparedLists::has_terms(lists.kind) ? lists.count : 0);
    table = take<uint16_t>(half_table_values(lists.codec.format));
    const bool keeps_norms = takes_unit_vectors(lists.kind) && lists.codec.format.stores_values() && !lists.residual;
    inverse_norms = take<double>(keeps_norms ? lists.count : 0);
    halves = take<uint16_t>(has_halves ? lists.count * PreparedLists::half_cols(lists.codec.format.cols) : 0);
  }
  // Whether cosine is searched by distances of vectors of length 1 (device_lists_cuda.hpp).
  bool takes_unit_vectors(KeyKind kind) const { return kind == KeyKind::cosine && has_halves; }
  PreparedLists in(std::byte* memory, const DeviceListsView& lists) const {
    return {largest.in(memory),
            facts.in(memory),
            PreparedLists::has_terms(lists.kind) ? terms.in(memory) : nullptr,
            table.count > 0 ? table.in(memory) : nullptr,
            has_halves ? halves.in(memory) : nullptr,
            nullptr,
            nullptr,
            inverse_norms.count > 0 ? inverse_norms.in(memory) : nullptr};
  }

  Slot<float> largest;
  Slot<ListFacts> facts;
  Slot<float> terms;
  Slot<uint16_t> table;
  Slot<uint16_t> halves;
  Slot<double> inverse_norms;
  bool has_halves;
};

// Enqueues and returns.
void launch_prepare_lists(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream);

// What lists are like, beyond their numbers: decides how they are searched.
struct SegmentShape {
  uint32_t longest;        // list
  uint32_t short_vectors;  // of less than a sixteenth of the largest |b| of their list; of distances only
  // Whether bounds per list are useless for so many of the vectors that bounds per row are better.
  bool wants_row_terms(int64_t vectors) const { return int64_t{short_vectors} * 64 > vectors; }
};

// After launch_prepare_lists(); `shape` is on the device. Enqueues and returns.
void launch_segment_shape(const DeviceListsView& lists, const PreparedLists& prepared, SegmentShape* shape,
                          cudaStream_t stream);

// Fills upper and lower terms, for distances, after launch_prepare_lists(). One read of the codes. Enqueues and
// returns.
void launch_row_terms(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream);

// Makes what scan_cut.hpp says: a block for each list, which has the list's table in shared memory and looks the list's
// vectors up in it. One read of the codes.
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

// Which vectors of a list repeat others. Equal codes of a list are equal vectors, as for cosine are all values of one
// column that have the same sign, but for their rounding to length 1. And of any number of these a search
// for k neighbours finds the k with the smallest rows at most. Where thousands are equal (lists far apart, of codes
// that tell their vectors no more apart) they all are within every bound, and queries have more candidates than there
// is room for: unless those are passed over that have k equal ones before them.
//
// Codes are counted by their hashes in a block's memory; only lists in which some counter is large are looked at once
// more, in the order of their rows.
// Memory: 2 bytes a vector, where anything repeats so often.
inline constexpr uint32_t kLeastRepeats = 256;  // fewer have room among a query's candidates

// Raises `most`, on the device, to about how often the most frequent code of a list occurs in it; never to less.
// Enqueues and returns.
void launch_count_repeats(const DeviceListsView& lists, uint32_t* most, cudaStream_t stream);

// For each vector, how many equal ones with smaller rows its list has, up to 65,535; 0 if that is not known. Enqueues
// and returns.
void launch_rank_repeats(const DeviceListsView& lists, uint16_t* ranks, cudaStream_t stream);

// The vectors' terms (none: zeros), and NaN, which is below nothing, for those that have k equal ones before them: of
// half a million equal vectors no more than k pass any limit then. Enqueues and returns.
void launch_mask_repeats(const float* terms, const uint16_t* ranks, int64_t count, int64_t k, float* masked,
                         cudaStream_t stream);

}  // namespace kith
