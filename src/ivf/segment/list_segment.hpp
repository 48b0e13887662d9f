// Vectors of an inverted file that were added together: codes and row numbers, sorted by (list, row).
//
// Immutable and shared between versions of an index. Three arrays hold all lists one after the other: no allocation a
// list and nothing rounded up. An index has a few segments; those of later rows come later, and merging concatenates
// them list by list.
//
// Memory: code bytes + 4 for each vector, 8 for each list, and 4 for every 256 vectors to find the list of a place.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "ivf/model/ivf_model.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class ListSegment {
 public:
  // Takes arrays as they lie in files: offsets of lists + 1; rows ascend within a list. InvalidArgument where they do
  // not go together.
  ListSegment(HostArray<int64_t> offsets, HostArray<uint8_t> codes, HostArray<uint32_t> rows, int64_t code_bytes,
              const Resources& resources);

  int64_t lists() const { return offsets_.size() - 1; }
  int64_t size() const { return rows_.size(); }
  int64_t size_of(int64_t list) const { return offsets_[list + 1] - offsets_[list]; }
  int64_t code_bytes() const { return code_bytes_; }
  const int64_t* offsets() const { return offsets_.data(); }
  const uint32_t* rows() const { return rows_.data(); }
  const uint8_t* codes() const { return codes_.data(); }
  const uint8_t* code(int64_t place) const { return codes_.data() + place * code_bytes_; }
  // The list that holds a place.
  int64_t list_of(int64_t place) const;
  static int64_t bytes_for(int64_t lists, int64_t rows, int64_t code_bytes) {
    return array_bytes<int64_t>(lists + 1) + rows * (code_bytes + 4) + 4 * (divide_up(rows, kMarkEvery) + 1);
  }
  int64_t bytes() const {
    return offsets_.bytes() + codes_.bytes() + rows_.bytes() + marks_.bytes();
  }

 private:
  static constexpr int64_t kMarkEvery = 256;

  HostArray<int64_t> offsets_;
  HostArray<uint8_t> codes_;
  HostArray<uint32_t> rows_;
  int64_t code_bytes_;
  HostArray<uint32_t> marks_;  // the lists of places 0, kMarkEvery, ... and the last list
};

using Segment = std::shared_ptr<const ListSegment>;

// The rows, of any dtype in host memory, as numbers first_row, first_row + 1, ..., coded on the CPU. Beside the segment
// it takes 4 bytes a row and a block of rows as f32.
Segment build_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row, const Resources& resources);

// What build_segment() takes at least, with the segment.
int64_t build_segment_bytes(const IvfModel& model, const RowsInfo& rows, const Resources& resources);

// One segment of several, given in the order of their rows.
Segment merge_segments(const std::vector<Segment>& segments, const Resources& resources);

// What is left of a segment where `kept` keeps its rows, which are numbered anew among the kept ones. The bits of
// `kept` have been made.
Segment without(const ListSegment& segment, const KeptRows& kept, const Resources& resources);

// The vectors that the index holds for these rows, in any order, as f32. InvalidArgument for a row that no segment has.
//
// Where a row lies is not kept. Few rows are looked for in every list by bisection; for many, one pass over a segment's
// rows makes a table of places, 4 bytes a row, for as long as the call lasts.
void reconstruct_rows(const IvfModel& model, const std::vector<Segment>& segments, const int64_t* rows, int64_t count,
                      const MutableMatrixView& out, const Resources& resources);

}  // namespace kith
