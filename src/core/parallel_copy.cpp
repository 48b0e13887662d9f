#include "core/parallel_copy.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kAloneBytes = int64_t{4} << 20;  // up to here one thread is as fast
constexpr int64_t kCopyTaskBytes = int64_t{1} << 20;

}  // namespace

void copy_bytes(void* to, const void* from, int64_t bytes, const Resources& resources) {
  if (bytes <= kAloneBytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("copy", bytes, quiet);
  parallel_for(divide_up(bytes, kCopyTaskBytes), meter, quiet, [&](int64_t task, int) {
    const int64_t first = task * kCopyTaskBytes;
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                static_cast<size_t>(std::min(kCopyTaskBytes, bytes - first)));
  });
}

}  // namespace kith
