// How the parts of a workspace, one block of device memory, follow each other: typed slots, each aligned, and the bytes of
// all. Pure arithmetic, so that a plan can count on any machine what a backend will lay out.
//
// A layout derives from this and takes its slots in its constructor; `layout.labels.in(memory)` is then an int32_t*.
#pragma once

#include <kith/dtype.hpp>

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/slot.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

struct WorkspaceLayout {
  int64_t bytes = 0;  // INT64_MAX where the sum cannot be counted

 protected:
  // The next `count` values, or `count` times `each` of them. Parts that are not needed have 0 values.
  template <typename T>
  Slot<T> take(int64_t count, int64_t each = 1) {
    const int64_t values = saturating_multiply(count, each);
    return {take_bytes(saturating_multiply(values, sizeof(T))), values};
  }
  // Rows of a dtype that is known at run time.
  Slot<std::byte> take_rows(int64_t count, int64_t cols, DType dtype) {
    return take<std::byte>(count, saturating_multiply(cols, size_of(dtype)));
  }
  // What another layout describes.
  Slot<std::byte> take_layout(const WorkspaceLayout& inner) { return take<std::byte>(inner.bytes); }

 private:
  int64_t take_bytes(int64_t size) {
    constexpr int64_t kAlignment = 256;
    const int64_t start = bytes;
    bytes = size > INT64_MAX - kAlignment - start ? INT64_MAX : round_up(start + size, kAlignment);
    return start;
  }
};

}  // namespace kith
