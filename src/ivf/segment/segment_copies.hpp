// Segments of inverted lists in any memory: made where their rows are, copied elsewhere once (rows/segments.hpp).
#pragma once

#include <kith/memory_space.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/model/ivf_model.hpp"
#include "ivf/segment/list_segment.hpp"
#include "ivf/segment/place_table.hpp"
#include "ivf/segment/prepared_segment.hpp"
#include "rows/segments.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

using SegmentCopies = PlacedSegment<ListSegment, PreparedSegment>;
using SharedSegment = std::shared_ptr<const SegmentCopies>;

// The rows, of any dtype, as numbers first_row, first_row + 1, ...: encoded on the CPU or a GPU, whichever is faster or
// requested, and stored in the memory of the rows. The result is the same on either.
SharedSegment make_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row,
                           const Resources& resources);

// The least memory of make_segment(), including the segment.
Footprint make_segment_footprint(const IvfModel& model, const RowsInfo& rows, const Resources& resources);

// Merges segments, given in row order, in the memory of the last one. A GPU that has copies of the others also gets the
// merged segment if it has room, so that nothing is uploaded twice.
SharedSegment merge_copies(const std::vector<SharedSegment>& segments, const Resources& resources);

// A segment without the rows that `kept` drops, in the same memory; in host memory if the GPU has no room for both. The
// bits of `kept` must have been made.
SharedSegment without(const SegmentCopies& segment, const KeptRows& kept, int64_t rows, const Resources& resources);

// The cached place table of a segment; null if there is none.
SharedPlaceTable find_place_table(const SegmentCopies& segment);
// The same, but made if there is none and `room` bytes suffice.
SharedPlaceTable get_place_table(const SegmentCopies& segment, int64_t room, const Resources& resources);

}  // namespace kith
