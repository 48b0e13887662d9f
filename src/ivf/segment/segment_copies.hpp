// A segment of inverted lists wherever it lies: on the host, on GPUs, or on several of them. It lies where its rows did
// when they were added; a copy elsewhere is made from that by the first that asks, once, and shared by all versions of
// an index that hold the segment.
//
// Memory: a segment's on the host or the device where it was made and on every other that asked; 8 bytes a list on the
// host in any case.
#pragma once

#include <kith/memory_space.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/model/device_cache.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/segment/device_segment.hpp"
#include "ivf/segment/list_segment.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace kith {

// What a GPU's search keeps beside a segment; see gpu_lists.hpp.
class PreparedSegment {
 public:
  virtual ~PreparedSegment() = default;
  virtual int64_t bytes() const = 0;  // on the device
};

class SegmentCopies {
 public:
  explicit SegmentCopies(Segment on_host);
  // Fetches the offsets.
  SegmentCopies(SegmentThere there, const Resources& resources);

  int64_t size() const { return size_; }
  int64_t lists() const { return lists_; }
  int64_t size_of(int64_t list) const { return offsets()[list + 1] - offsets()[list]; }
  MemorySpace space() const { return space_; }  // where it was made

  // Made where there is none; OutOfMemory where there is no room.
  Segment on_host(const Resources& resources) const;
  SegmentThere on_device(int device, const Resources& resources) const;
  // The GPUs that hold a copy.
  std::vector<int> devices() const { return there_.devices(); }
  SegmentThere find(int device) const { return there_.find(device); }
  void keep(SegmentThere made) const { there_.keep(made->device(), made); }
  const DeviceCache<PreparedSegment>& prepared() const { return prepared_; }

  int64_t host_bytes() const;
  int64_t device_bytes() const { return there_.bytes() + prepared_.bytes(); }

 private:
  const int64_t* offsets() const { return made_here_ != nullptr ? made_here_->offsets() : offsets_.data(); }

  const int64_t size_;
  const int64_t lists_;
  const MemorySpace space_;
  const Segment made_here_;           // where it was made on the host
  const HostArray<int64_t> offsets_;  // else
  mutable std::mutex mutex_;
  mutable Segment here_;  // guarded by mutex_
  DeviceCache<DeviceSegment> there_;
  DeviceCache<PreparedSegment> prepared_;
};

using SharedSegment = std::shared_ptr<const SegmentCopies>;

// The rows, of any dtype, as numbers first_row, first_row + 1, ...: coded on the CPU or a GPU, as is faster or asked
// for, and kept where the rows lie. The same bytes wherever it is done.
SharedSegment make_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row,
                           const Resources& resources);

// One of several, given in the order of their rows, where the last of them lies. A GPU that holds copies of the others
// gets one of the whole too, where it has room: what was there is not uploaded again.
SharedSegment merge_copies(const std::vector<SharedSegment>& segments, const Resources& resources);

// What is left of one where `kept` keeps some of an index's rows, where it lies; on the host where a GPU has no room for
// both. The bits of `kept` have been made.
SharedSegment without(const SegmentCopies& segment, const KeptRows& kept, int64_t rows, const Resources& resources);

}  // namespace kith
