// Vectors of an inverted file that were added together: codes and row numbers, sorted by (list, row), in the memory of
// the host or of a GPU.
//
// Immutable and shared between versions of an index. Three arrays hold all lists one after the other: no allocation a
// list and nothing rounded up. An index has a few segments; those of later rows come later, and merging concatenates
// them list by list. No CUDA types; without CUDA nothing lies on a GPU.
//
// Memory: code bytes + 4 for each vector, 8 for each list, and on the host 4 for every 256 vectors to find the list of a
// place.
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

// A segment's arrays on a device, to be filled.
struct ListArrays {
  int64_t* offsets = nullptr;  // lists + 1
  uint8_t* codes = nullptr;
  uint32_t* rows = nullptr;
  int64_t count = 0;  // of vectors
};

class ListSegment {
 public:
  // Takes arrays as they lie in files: offsets of lists + 1; rows ascend within a list. InvalidArgument where they do
  // not go together.
  ListSegment(HostArray<int64_t> offsets, HostArray<uint8_t> codes, HostArray<uint32_t> rows, int64_t code_bytes,
              const Resources& resources);
  // The same in memory of the host that `keeper` holds, as a mapped file is.
  struct Arrays {
    const int64_t* offsets = nullptr;
    const uint8_t* codes = nullptr;
    const uint32_t* rows = nullptr;
    int64_t lists = 0;
    int64_t size = 0;  // vectors
  };
  ListSegment(const Arrays& arrays, int64_t code_bytes, std::shared_ptr<const void> keeper, const Resources& resources);
  // The same of a file that is mapped and whose rows nobody has looked at: a list's are when it is first searched.
  // CorruptFile then where they do not ascend, or are not below `rows`.
  struct Unchecked {
    int64_t rows = 0;  // of the index
    std::string path = {};
    int64_t own_bytes = 0;  // of the arrays that lie in memory of Kith's own
  };
  ListSegment(const Arrays& arrays, int64_t code_bytes, std::shared_ptr<const void> keeper, const Unchecked& unchecked,
              const Resources& resources);
  // Room for so many vectors on a GPU; what is in it comes later.
  ListSegment(int device, int64_t lists, int64_t size, int64_t code_bytes, const Resources& resources);

  MemorySpace space() const { return space_; }
  int64_t lists() const { return arrays_.lists; }
  int64_t size() const { return arrays_.size; }
  int64_t code_bytes() const { return code_bytes_; }
  int64_t bytes() const { return bytes_; }  // of memory of Kith's own
  // Where it lies.
  const int64_t* offsets() const { return arrays_.offsets; }  // lists + 1
  const uint32_t* rows() const { return arrays_.rows; }
  const uint8_t* codes() const { return arrays_.codes; }
  const ListArrays& to_fill() const { return to_fill_; }  // on a GPU

  // For a segment on the host.
  int64_t size_of(int64_t list) const { return offsets()[list + 1] - offsets()[list]; }
  const uint8_t* code(int64_t place) const { return codes() + place * code_bytes_; }
  int64_t list_of(int64_t place) const;  // the list that holds a place
  static int64_t bytes_for(int64_t lists, int64_t rows, int64_t code_bytes) {
    return array_bytes<int64_t>(lists + 1) + rows * (code_bytes + 4) + 4 * (divide_up(rows, kMarkEvery) + 1);
  }

  // For a mapped file; for others these do nothing. What is expected is read from the disk while the caller goes on. A
  // list is checked before anything is made of its rows.
  bool is_mapped() const { return !unchecked_.path.empty(); }
  void expect_list(int64_t list) const;
  void check_list(int64_t list) const;
  void check_lists() const;  // all
  // What to call where a row was found twice, or not at all, which checks of single lists do not see: CorruptFile.
  [[noreturn]] void rows_repeat() const;

  // Returns when it is complete; OutOfMemory where there is no room.
  std::shared_ptr<const ListSegment> copied_to(Device device, const Resources& resources) const;
  // Adds to the sizes of all lists what it has of each; where `kept` is given, of the rows whose bits are set. What lies on
  // a GPU is fetched for a moment.
  void add_sizes(const uint64_t* kept, int64_t* sizes, const Resources& resources) const;

 private:
  static constexpr int64_t kMarkEvery = 256;

  // Marks what is on the host; checks it.
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

// The rows, of any dtype in host memory, as numbers first_row, first_row + 1, ..., coded on the CPU. Beside the segment
// it takes 4 bytes a row and a block of rows as f32.
Segment build_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row, const Resources& resources);

// The least memory of build_segment(), with the segment.
Footprint build_segment_footprint(const IvfModel& model, const RowsInfo& rows, const Resources& resources);

// One segment of several, given in the order of their rows.
Segment merge_segments(const std::vector<Segment>& segments, const Resources& resources);

// A copy, with first_row added to every row number: of lists of one index that come to another.
Segment renumbered(const ListSegment& segment, int64_t first_row, const Resources& resources);

// The vectors with rows first .. end - 1 of a segment on the host, as rows to, to + 1, ...: a device's share of it.
Segment cut_rows(const ListSegment& segment, int64_t first, int64_t end, int64_t to, const Resources& resources);

// What is left of a segment where `kept` keeps its rows, which are numbered anew among the kept ones. The bits of
// `kept` have been made.
Segment without(const ListSegment& segment, const KeptRows& kept, const Resources& resources);

// The vectors that the index holds for these rows, in any order, as f32. InvalidArgument for a row that no segment has.
//
// Where a row lies is not kept. Few rows are looked for in every list by bisection; for many, one pass over a segment's
// rows makes a table of places, 4 bytes a row, for as long as the call lasts.
void reconstruct_rows(const IvfModel& model, const std::vector<Segment>& segments, const int64_t* rows, int64_t count,
                      const MutableMatrixView& out, const Resources& resources);

// On a GPU: one segment of several, in the order of their rows; without() for an index of so many rows, some of which are
// left out. Both return when their result is complete.
Segment merge_on_device(const std::vector<Segment>& segments, const Resources& resources);
Segment without_on_device(const ListSegment& segment, const KeptRows& kept, int64_t rows, const Resources& resources);

}  // namespace kith
