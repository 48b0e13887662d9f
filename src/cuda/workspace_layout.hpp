// How the parts of a workspace, one block of device memory, follow each other: offsets from its start, each aligned,
// and the bytes of all. Pure arithmetic, so that a plan can count on any machine what a backend will lay out.
#pragma once

#include "core/byte_size.hpp"
#include "core/divide.hpp"

#include <cstdint>

namespace kith {

struct WorkspaceLayout {
  int64_t bytes = 0;  // INT64_MAX where the sum cannot be counted

 protected:
  // The next part's place. One that is not needed has no bytes.
  int64_t take(int64_t count, int64_t bytes_each) {
    constexpr int64_t kAlignment = 256;
    const int64_t start = bytes;
    const int64_t size = saturating_multiply(count, bytes_each);
    bytes = size > INT64_MAX - kAlignment - start ? INT64_MAX : round_up(start + size, kAlignment);
    return start;
  }
};

}  // namespace kith
