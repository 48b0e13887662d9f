// A run of a Flat index's rows, on the host or on a device: a copy or the caller's memory, and the layouts that devices
// search it in.
#pragma once

#include <kith/device.hpp>
#include <kith/index.hpp>
#include <kith/matrix_buffer.hpp>

#include "exact/knn_backend.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

class FlatBlock {
 public:
  explicit FlatBlock(const MatrixView& borrowed) : view_(borrowed) {}
  explicit FlatBlock(MatrixBuffer owned) : owned_(std::move(owned)), view_(owned_.view()), owns_(true) {}
  FlatBlock(std::shared_ptr<std::byte> memory, const MatrixView& view)
      : device_memory_(std::move(memory)), view_(view), owns_(true) {}
  // Waits for searches that have been enqueued on streams of callers.
  ~FlatBlock();

  // A copy of these rows, one after the other, in the memory that they all lie in.
  static std::shared_ptr<FlatBlock> join(const std::vector<MatrixView>& parts, const Resources& resources);

  const MatrixView& view() const { return view_; }
  bool owns() const { return owns_; }

  // The layout for `device` and queries of that type, made on the first call and kept; null where it would take more
  // than half of what the memory limit has left. Calls at the same time may both make it; one is kept.
  std::shared_ptr<PreparedBase> prepare(Device device, const PrepareOptions& options, const Resources& resources) const;
  // The same without making it.
  std::shared_ptr<PreparedBase> prepared(Device device, DType queries) const;

 private:
  std::shared_ptr<PreparedBase> find(Device device, DType queries) const;

  MatrixBuffer owned_;
  std::shared_ptr<std::byte> device_memory_;
  MatrixView view_;
  bool owns_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Device, std::shared_ptr<PreparedBase>>> prepared_;  // guarded by mutex_
};

}  // namespace kith
