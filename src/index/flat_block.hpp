// A run of a Flat index's rows, on the host or on a device: a copy or the caller's memory, and the layouts that devices
// search it in. Rows and their number never change; layouts come as they are needed.
#pragma once

#include <kith/device.hpp>
#include <kith/index.hpp>
#include <kith/matrix_buffer.hpp>

#include "exact/prepared_base.hpp"
#include "index/device_layouts.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace kith {

class FlatBlock {
 public:
  explicit FlatBlock(const MatrixView& borrowed) : view_(borrowed) {}
  explicit FlatBlock(MatrixBuffer owned) : owned_(std::move(owned)), view_(owned_.view()), owns_(true) {}
  // On a device; `memory` is of allocate_for_searches().
  FlatBlock(std::shared_ptr<std::byte> memory, const MatrixView& view)
      : device_memory_(std::move(memory)), view_(view), owns_(true) {}

  // A copy of these rows, one after the other, in the memory that they all lie in.
  static std::shared_ptr<FlatBlock> join(const std::vector<MatrixView>& parts, const Resources& resources);

  const MatrixView& view() const { return view_; }
  bool owns() const { return owns_; }
  IndexBytes bytes() const;

  // The layout for `device` and queries of that type, made on the first call and kept; null where it would take more
  // than half of what the memory limit has left.
  DeviceLayouts::Layout prepare(Device device, const PrepareOptions& options, const Resources& resources) const;
  // The same without making it.
  DeviceLayouts::Layout prepared(Device device, DType queries) const { return layouts_.find(device, queries); }

  // After a search on a caller's stream, which may go on reading this block.
  void read_until(const std::shared_ptr<const StreamMark>& mark) const { layouts_.read_until(mark); }

 private:
  MatrixBuffer owned_;
  std::shared_ptr<std::byte> device_memory_;
  MatrixView view_;
  bool owns_ = false;
  mutable DeviceLayouts layouts_;  // the last member: the marks that it holds are about device_memory_ too
};

}  // namespace kith
