// Vectors of an inverted file that were added together: codes and row numbers, sorted by (list, row), in host or GPU
// memory.
//
// Immutable and shared between versions of an index. Three arrays hold all lists contiguously, without an allocation or
// padding per list. An index has a few segments, in the order of their rows; merging concatenates them list by list.
// The interface has no CUDA types; without CUDA, segments are in host memory.
//
// Memory: code bytes + 4 for each vector, 8 for each list, and on the host 4 for every 256 vectors to find the list of
// a place.
#pragma once

#include <kith/device.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/memory_space.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "ivf/model/ivf_model.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kith {

// The arrays of a new segment on a device, for writing.
struct ListArrays {
  int64_t* offsets = nullptr;  // lists + 1
  uint8_t* codes = nullptr;
  uint32_t* rows = nullptr;
  int64_t count = 0;  // of vectors
};

class ListSegment {
 public:
  // Takes arrays in the layout of files: lists + 1 offsets; rows ascend within a list. Throws InvalidArgument if they
  // are inconsistent.
  ListSegment(HostArray<int64_t> offsets, HostArray<uint8_t> codes, HostArray<uint32_t> rows, int64_t code_bytes,
              const Resources& resources);
  // The same in host memory owned by `keeper`, such as a mapped file.
  struct Arrays {
    const int64_t* offsets = nullptr;
    const uint8_t* codes = nullptr;
    const uint32_t* rows = nullptr;
    int64_t lists = 0;
    int64_t size = 0;  // vectors
  };
  ListSegment(const Arrays& arrays, int64_t code_bytes, std::shared_ptr<const void> keeper, const Resources& resources);
  // The same for a mapped file whose rows have not been checked: those of a list are checked when it is first searched,
  // which throws CorruptFile if they do not ascend or are not below `rows`.
  struct Unchecked {
    int64_t rows = 0;  // of the index
    std::string path = {};
    int64_t own_bytes = 0;  // of the arrays that Kith allocated itself
  };
  ListSegment(const Arrays& arrays, int64_t code_bytes, std::shared_ptr<const void> keeper, const Unchecked& unchecked,
              const Resources& resources);
  // Allocates a segment of that many vectors on a GPU; its contents are written later.
  ListSegment(int device, int64_t lists, int64_t size, int64_t code_bytes, const Resources& resources);

  MemorySpace space() const { return space_; }
  int64_t lists() const { return arrays_.lists; }
  int64_t size() const { return arrays_.size; }
  int64_t code_bytes() const { return code_bytes_; }
  int64_t bytes() const { return bytes_; }  // of memory that Kith allocated
  // The memory space of its arrays.
  const int64_t* offsets() const { return arrays_.offsets; }  // lists + 1
  const uint32_t* rows() const { return arrays_.rows; }
  const uint8_t* codes() const { return arrays_.codes; }
  const ListArrays& to_fill() const { return to_fill_; }  // only on a GPU

  // For a segment in host memory.
  int64_t size_of(int64_t list) const { return offsets()[list + 1] - offsets()[list]; }
  const uint8_t* code(int64_t place) const { return codes() + place * code_bytes_; }
  int64_t list_of(int64_t place) const;  // the list that holds a place
  static int64_t bytes_for(int64_t lists, int64_t rows, int64_t code_bytes) {
    return array_bytes<int64_t>(lists + 1) + rows * (code_bytes + 4) + 4 * (divide_up(rows, kMarkEvery) + 1);
  }

  // For a mapped file; no-ops for others. expect_list() starts reading from disk and returns at once. A list must be
  // checked before its rows are used.
  bool is_mapped() const { return !unchecked_.path.empty(); }
  void expect_list(int64_t list) const;
  void check_list(int64_t list) const;
  void check_lists() const;  // all
  // Throws CorruptFile: for a row found twice or not at all, which the checks of single lists cannot detect.
  [[noreturn]] void rows_repeat() const;

  // Returns when the copy is complete; throws OutOfMemory if there is no room.
  std::shared_ptr<const ListSegment> copied_to(Device device, const Resources& resources) const;
  // Adds the sizes of this segment's lists to `sizes`; if `kept` is given, counts only rows whose bits are set. Offsets
  // on a GPU are copied to the host temporarily.
  void add_sizes(const uint64_t* kept, int64_t* sizes, const Resources& resources) const;

 private:
  static constexpr int64_t kMarkEvery = 256;

  // Computes the marks of a segment in host memory, and checks it.
  void mark_lists(const Resources& resources);
  bool ascends(int64_t list) const;

  MemorySpace space_;
  Arrays arrays_;
  int64_t code_bytes_;
  int64_t bytes_ = 0;
  std::shared_ptr<const void> keeper_;
  ListArrays to_fill_;
  HostArray<uint32_t> marks_;  // the lists of places 0, kMarkEvery, ... and the last list
  Unchecked unchecked_;
  HostArray<uint8_t> checked_;  // of a mapped file: the lists that were checked; by atomic_ref
};

using Segment = std::shared_ptr<const ListSegment>;

// Encodes rows, of any dtype in host memory, as numbers first_row, first_row + 1, ..., on the CPU. Takes 4 bytes per
// row and a block of rows as f32, besides the segment.
Segment build_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row, const Resources& resources);

// The least memory of build_segment(), including the segment.
Footprint build_segment_footprint(const IvfModel& model, const RowsInfo& rows, const Resources& resources);

// Merges several segments, given in the order of their rows, into one.
Segment merge_segments(const std::vector<Segment>& segments, const Resources& resources);

// A copy with first_row added to every row number, for moving lists from one index to another.
Segment renumbered(const ListSegment& segment, int64_t first_row, const Resources& resources);

// The vectors with rows first .. end - 1 of a segment in host memory, as rows to, to + 1, ...: a device's part of it.
Segment cut_rows(const ListSegment& segment, int64_t first, int64_t end, int64_t to, const Resources& resources);

// A segment without the rows that `kept` drops; the others are renumbered consecutively. The bits of `kept` must have
// been made.
Segment without(const ListSegment& segment, const KeptRows& kept, const Resources& resources);

// The stored vectors of these rows, in any order, as f32. InvalidArgument for a row that no segment has.
//
// The place of a row is not stored. A few rows are found by bisection in every list; for many, a pass over a segment's
// rows builds a table of places, 4 bytes per row, for the duration of the call.
void reconstruct_rows(const IvfModel& model, const std::vector<Segment>& segments, const int64_t* rows, int64_t count,
                      const MutableMatrixView& out, const Resources& resources);

// The same on a GPU: merging segments, in the order of their rows, and without(), for an index of that many rows. Both
// return when their result is complete.
Segment merge_on_device(const std::vector<Segment>& segments, const Resources& resources);
Segment without_on_device(const ListSegment& segment, const KeptRows& kept, int64_t rows, const Resources& resources);

}  // namespace kith
