// The rows of a segment of a Flat index, on the host or on a device: a copy, or the caller's memory. Layouts for
// searches on each device are made on demand and kept with the segment.
#pragma once

#include <kith/device.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "exact/prepared_base.hpp"
#include "rows/segments.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kith {

class VectorRows {
 public:
  explicit VectorRows(const MatrixView& borrowed) : view_(borrowed) {}
  // `keeper` keeps the rows alive; on a device it comes from allocate_for_searches().
  VectorRows(const MatrixView& view, std::shared_ptr<const void> keeper) : keeper_(std::move(keeper)), view_(view) {}
  explicit VectorRows(MatrixBuffer owned) {
    auto kept = std::make_shared<const MatrixBuffer>(std::move(owned));
    view_ = kept->view();
    keeper_ = std::move(kept);
  }

  // A contiguous copy of these rows, in the memory space that they share.
  static std::shared_ptr<const VectorRows> join(const std::vector<MatrixView>& parts, const Resources& resources);

  const MatrixView& view() const { return view_; }
  bool owns() const { return keeper_ != nullptr; }
  int64_t size() const { return view_.rows(); }
  MemorySpace space() const { return view_.space(); }
  int64_t bytes() const { return owns() ? view_.rows() * view_.cols() * size_of(view_.dtype()) : 0; }
  // Counts queries of small batches that found no layout; true once, when together they have taken as long as making
  // one.
  bool count_few(int64_t queries) const {
    constexpr int64_t kAsLongAsPacking = 16;
    const int64_t before = few_.fetch_add(queries, std::memory_order_relaxed);
    return before < kAsLongAsPacking && before + queries >= kAsLongAsPacking;
  }

 private:
  std::shared_ptr<const void> keeper_;
  MatrixView view_;
  mutable std::atomic<int64_t> few_{0};
};

using VectorSegment = PlacedSegment<VectorRows, PreparedBase>;
using Layout = std::shared_ptr<const PreparedBase>;

// The layout for `device` and queries of that dtype; null if there is none yet.
Layout find_layout(const VectorSegment& segment, Device device, DType queries);
// The same, made and kept if there is none; null if it would take more than half of what the memory limit has left.
Layout get_layout(const VectorSegment& segment, Device device, const PrepareOptions& options,
                  const Resources& resources);

}  // namespace kith
