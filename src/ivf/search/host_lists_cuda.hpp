// Lists in host memory on their way to a GPU in pieces (pieced_lists_cuda.hpp): their arrays pinned, cut into pieces of
// whole lists, and a sample of them.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "ivf/segment/list_segment.hpp"
#include "ivf/segment/prepared_segment.hpp"
#include "ivf/segment/segment_copies.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// Pinned arrays of a segment, so that copies from them run at the speed of the bus. Kept with the segment, and released
// before its arrays are.
//
// Only arrays with pages of their own are pinned, as a whole: a copy must not cross memory that is partly pinned.
class PinnedLists final : public PreparedSegment {
 public:
  explicit PinnedLists(const ListSegment& segment);
  ~PinnedLists() override;
  int64_t bytes() const override { return 0; }  // on the device

  bool has_codes() const { return codes_.pinned; }
  bool has_rows() const { return rows_.pinned; }
  // The arrays as the device reads them; null where it cannot.
  const uint8_t* codes_on_device() const { return static_cast<const uint8_t*>(codes_.on_device); }
  const uint32_t* rows_on_device() const { return static_cast<const uint32_t*>(rows_.on_device); }

  // Whether some code occurs often in a list (kLeastRepeats). The first search of all of them finds out.
  enum class Repeats : uint8_t { unknown, none, some };
  Repeats repeats() const { return repeats_.load(std::memory_order_relaxed); }
  void found_repeats(Repeats repeats) const { repeats_.store(repeats, std::memory_order_relaxed); }

 private:
  struct Array {
    const void* begin = nullptr;
    const void* on_device = nullptr;
    bool pinned = false;
  };
  static Array pin(const void* begin, int64_t bytes);

  Array codes_;
  Array rows_;
  mutable std::atomic<Repeats> repeats_ = Repeats::unknown;
};

// Pins what can be pinned, for the first call. Null if the lists are in a mapped file.
std::shared_ptr<const PinnedLists> pinned_lists(int device, const SegmentCopies& segment, const ListSegment& here);

// A segment on the host, whose lists go over.
struct HostLists {
  Segment segment;
  std::shared_ptr<const PinnedLists> pinned;

  bool is_pinned() const { return pinned != nullptr && pinned->has_codes() && pinned->has_rows(); }
};

int64_t longest_list(const std::vector<HostLists>& all);  // no less than 1

// Consecutive vectors of one segment: whole lists.
struct ListPiece {
  size_t segment = 0;
  int64_t first = 0;
  int64_t end = 0;
  int64_t filled = 0;   // lists that have vectors
  int64_t longest = 0;  // list
  int64_t size() const { return end - first; }
};

// Whole lists of `most` vectors at most in each piece; a longer list is by itself.
std::vector<ListPiece> cut_into_pieces(const std::vector<HostLists>& all, int64_t most);

// A part of each list's vectors, in runs of neighbours that are spread over all of it.
struct SampleShape {
  static constexpr int64_t kRun = 16;

  int64_t each = 0;  // vectors of a segment's list, at most; whole runs

  int64_t taken(int64_t length) const { return length < each ? length : each; }
  // Writes where the sample of each list begins, those of all segments one after the other, and its end; returns this.
  int64_t place(const std::vector<HostLists>& from, int64_t lists, int64_t* offsets) const;
};

// The same in host memory.
class ListSample {
 public:
  // `offsets` as place() has written them.
  ListSample(const std::vector<HostLists>& from, const SampleShape& shape, const HostArray<int64_t>& offsets,
             const Resources& resources);

  const HostArray<uint8_t>& codes() const { return codes_; }
  const HostArray<uint32_t>& rows() const { return rows_; }

 private:
  void gather(const std::vector<HostLists>& from, const SampleShape& shape, int64_t list, int64_t to) const;

  int64_t code_bytes_;
  HostArray<uint8_t> codes_;
  HostArray<uint32_t> rows_;
};

}  // namespace kith
