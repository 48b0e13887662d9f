// Segments of inverted lists wherever they lie: made where their rows lay, copied elsewhere once (rows/segments.hpp).
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

// The rows, of any dtype, as numbers first_row, first_row + 1, ...: coded on the CPU or a GPU, as is faster or asked
// for, and kept where the rows lie. The same bytes wherever it is done.
SharedSegment make_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row,
                           const Resources& resources);

// What that takes at least, with the segment.
Footprint make_segment_footprint(const IvfModel& model, const RowsInfo& rows, const Resources& resources);

// Merges segments, given in row order, in the memory of the last one. A GPU that has copies of the others gets the
// merged segment too if it has room, so nothing is uploaded twice.
SharedSegment merge_copies(const std::vector<SharedSegment>& segments, const Resources& resources);

// What is left of one where `kept` keeps some of an index's rows, where it lies; on the host where a GPU has no room
// for both. The bits of `kept` have been made.
SharedSegment without(const SegmentCopies& segment, const KeptRows& kept, int64_t rows, const Resources& resources);

// Where the rows of a segment lie: the table that is kept with it; null where there is none.
SharedPlaceTable find_place_table(const SegmentCopies& segment);
// The same, made where there is none and `room` bytes suffice.
SharedPlaceTable get_place_table(const SegmentCopies& segment, int64_t room, const Resources& resources);

}  // namespace kith
