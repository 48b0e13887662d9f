// What the search of lists on a GPU computes once per index: the scale of its halves, a term per vector, and each
// list's values for error bounds. Reads product codes once, others twice. Memory: 4 bytes per vector, 12 per list, and of product codes
// the codewords as halves and 8 bytes for each. Other vectors are converted to halves once, if there is room: 2 bytes
// per column.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Whether |b|^2 of a vector is a sum of numbers that are looked up, one for each part of its code; then codes are read
// once, as fast as memory gives them. Cosine's terms depend on the list's centre.
inline bool looks_up_squares(const CodeFormat& format, KeyKind kind) {
  constexpr int64_t kMostParts = 48;  // of 2 KiB each: the shared memory of a block has 99 KiB on some GPUs
  return format.copies_codewords() && format.bits == 8 && format.parts <= kMostParts && kind != KeyKind::cosine;
}

struct PreparedListsLayout : WorkspaceLayout {
  explicit PreparedListsLayout(const DeviceListsView& lists) : PreparedListsLayout(lists, true) {}
  PreparedListsLayout(const DeviceListsView& lists, bool with_halves)
      : has_halves(with_halves && PreparedLists::wants_halves(lists.codec.format)) {
    largest = take<float>(1);
    maxima = take<ListMaxima>(lists.lists);
    terms = take<float>(PreparedLists::has_terms(lists.kind) ? lists.count : 0);
    table = take<uint16_t>(half_table_values(lists.codec.format));
    const bool keeps_norms = takes_unit_vectors(lists.kind) && lists.codec.format.stores_values() && !lists.residual;
    inverse_norms = take<double>(keeps_norms ? lists.count : 0);
    halves = take<uint16_t>(has_halves ? lists.count * PreparedLists::half_cols(lists.codec.format.cols) : 0);
    squares = take<float>(looks_up_squares(lists.codec.format, lists.kind) ? 2 * 256 * lists.codec.format.parts : 0);
  }
  // Whether cosine is searched by distances of normalized vectors (device_lists_cuda.hpp).
  bool takes_unit_vectors(KeyKind kind) const { return kind == KeyKind::cosine && has_halves; }
  PreparedLists in(std::byte* memory, const DeviceListsView& lists) const {
    return {largest.in(memory),
            maxima.in(memory),
            PreparedLists::has_terms(lists.kind) ? terms.in(memory) : nullptr,
            table.count > 0 ? table.in(memory) : nullptr,
            has_halves ? halves.in(memory) : nullptr,
            nullptr,
            nullptr,
            inverse_norms.count > 0 ? inverse_norms.in(memory) : nullptr,
            squares.count > 0 ? squares.in(memory) : nullptr};
  }

  Slot<float> largest;
  Slot<ListMaxima> maxima;
  Slot<float> terms;
  Slot<uint16_t> table;
  Slot<uint16_t> halves;
  Slot<double> inverse_norms;
  Slot<float> squares;
  bool has_halves;
};

// Enqueues and returns. The two steps of it: what depends on the codewords of product codes alone, which memory that lists
// pass through needs once; and what depends on the vectors.
void launch_prepare_lists(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream);
void launch_prepare_codewords(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream);
void launch_prepare_vectors(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream);

// Properties of the lists that decide how they are searched.
struct SegmentShape {
  uint32_t longest;        // list
  uint32_t short_vectors;  // vectors with less than a sixteenth of their list's largest |b|; for distances only
  // Whether bounds per list are too loose for so many vectors that bounds per row are better.
  bool wants_row_terms(int64_t vectors) const { return int64_t{short_vectors} * 64 > vectors; }
};

// After launch_prepare_lists(); `shape` is on the device. Enqueues.
void launch_segment_shape(const DeviceListsView& lists, const PreparedLists& prepared, SegmentShape* shape,
                          cudaStream_t stream);

// Fills upper and lower terms, for distances, after launch_prepare_lists(). Reads the codes once.
// Enqueues.
void launch_row_terms(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream);

// Computes the terms described in scan_cut.hpp: a block per list builds the list's table in shared memory and looks up
// the list's vectors. Reads the codes once.
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

// For codes that suits_tables() accepts, after launch_prepare_lists(). Enqueues.
void launch_scan_terms(const DeviceListsView& lists, const PreparedLists& prepared, const ScanTerms& terms,
                       cudaStream_t stream);

// Detects repeated vectors of a list. Equal codes of a list decode to equal vectors (and for cosine, single-column
// vectors of equal sign are equal up to rounding). Of equal vectors, a search for k neighbours returns at most the k
// with the smallest rows. If thousands are equal (distant lists whose codes no longer distinguish their vectors) all of
// them are within every bound, and queries would have more candidates than there is room for, unless vectors with k
// equal predecessors are skipped.
//
// Codes are counted by hash in a block's shared memory; only lists with a large counter are examined again, in the
// order of their rows. Memory: 2 bytes per vector, if anything repeats that often.
inline constexpr uint32_t kLeastRepeats = 256;  // fewer fit among a query's candidates

// Raises `most`, on the device, to an upper estimate of how often the most frequent code of a list occurs in it.
// Enqueues.
void launch_count_repeats(const DeviceListsView& lists, uint32_t* most, cudaStream_t stream);

// For each vector, the number of equal ones with smaller rows in its list, up to 65,535; 0 if
// unknown. Enqueues.
void launch_rank_repeats(const DeviceListsView& lists, uint16_t* ranks, cudaStream_t stream);

// Copies the vectors' terms (null: zeros), with NaN, which passes no limit, for vectors with k equal predecessors: of
// half a million equal vectors at most k then pass any limit. Enqueues.
void launch_mask_repeats(const float* terms, const uint16_t* ranks, int64_t count, int64_t k, float* masked,
                         cudaStream_t stream);

}  // namespace kith
