// The arrays of an index taken apart: owned, as a file gives them, or shared with an index that is being saved, so that
// saving copies nothing and loading moves.
#pragma once

#include <kith/matrix_buffer.hpp>

#include "core/host_array.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace kith {

template <typename T>
class PartArray {
 public:
  PartArray() = default;
  PartArray(HostArray<T> owned)  // NOLINT: an owned array is one of these
      : owned_(std::move(owned)), values_(owned_.data(), static_cast<size_t>(owned_.size())) {}
  // `keeper` holds the values, and they do not change while it lives.
  PartArray(std::span<const T> values, std::shared_ptr<const void> keeper)
      : keeper_(std::move(keeper)), values_(values) {}

  const T* data() const { return values_.data(); }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  bool empty() const { return values_.empty(); }
  const T& operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  std::span<const std::byte> bytes() const { return std::as_bytes(values_); }

  // Moved out where it is owned, else copied.
  HostArray<T> take(std::string_view purpose, const Resources& resources) && {
    const std::span<const T> values = std::exchange(values_, {});
    if (owned_.data() != nullptr) return std::move(owned_);
    HostArray<T> copy(static_cast<int64_t>(values.size()), purpose, resources);
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
  }

 private:
  HostArray<T> owned_;
  std::shared_ptr<const void> keeper_;
  std::span<const T> values_;
};

class PartMatrix {
 public:
  PartMatrix() = default;
  PartMatrix(MatrixBuffer owned) : owned_(std::move(owned)), view_(owned_.view()) {}  // NOLINT: as above
  // Rows in host memory; they may be apart.
  PartMatrix(const MatrixView& view, std::shared_ptr<const void> keeper) : keeper_(std::move(keeper)), view_(view) {}

  const MatrixView& view() const { return view_; }
  int64_t rows() const { return view_.rows(); }
  int64_t cols() const { return view_.cols(); }
  DType dtype() const { return view_.dtype(); }

  MatrixBuffer take(std::string_view purpose, const Resources& resources) && {
    const MatrixView view = std::exchange(view_, {});
    if (owned_.view().data() != nullptr) return std::move(owned_);
    MatrixBuffer copy(view.dtype(), view.rows(), view.cols(), purpose, resources);
    const MutableMatrixView to = copy.mutable_view();
    const auto row_bytes = static_cast<size_t>(view.cols() * size_of(view.dtype()));
    for (int64_t i = 0; i < view.rows(); ++i) std::memcpy(to.row(i), view.row(i), row_bytes);
    return copy;
  }

 private:
  MatrixBuffer owned_;
  std::shared_ptr<const void> keeper_;
  MatrixView view_;
};

}  // namespace kith
