// What the devices that search a run of an index's rows keep of them: a layout for each device and type of queries,
// made at the first search that can use it, and the marks of callers' streams that may still be reading.
//
// The one place below an index's versions where threads meet. Its lock is held to look or to keep, never while a layout
// is made: searches at the same time may both make one, and one is kept.
#pragma once

#include <kith/device.hpp>

#include "cuda/stream_marks.hpp"
#include "exact/prepared_base.hpp"
#include "index/index_state.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

class DeviceLayouts {
 public:
  using Layout = std::shared_ptr<const PreparedBase>;

  // Null where there is none.
  Layout find(Device device, DType queries) const;
  // Returns what is kept: `made`, or what another thread has kept before.
  Layout keep(Device device, DType queries, Layout made);
  // All of them.
  IndexBytes bytes() const;

  // That a stream which has come to this mark may have read the layouts, or the rows.
  void read_until(std::shared_ptr<const StreamMark> mark) { marks_.add(std::move(mark)); }

 private:
  Layout find_locked(Device device, DType queries) const;

  mutable std::mutex mutex_;
  std::vector<std::pair<Device, Layout>> layouts_;  // guarded by mutex_
  StreamMarks marks_;                               // the last member: it goes before what it is about
};

}  // namespace kith
