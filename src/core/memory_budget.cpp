#include "core/memory_budget.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

#include <sys/mman.h>

namespace kith {

std::byte* counted_only_memory() {
  static auto* const page =
      static_cast<std::byte*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return page;
}

void MemoryBudget::reserve(int64_t bytes, std::string_view purpose) {
  if (whole_) whole_->reserve(bytes, purpose);  // whose limit it is
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (has_limit() && bytes > limit_ - used) {
      if (whole_) whole_->release(bytes);
      throw OutOfMemory(
          fmt::format("not enough memory for {}: {} needed, {} left of the {} memory limit of {}; raise the limit or "
                      "reduce the size of the problem",
                      purpose, format_bytes(bytes), format_bytes(limit_ - used), name_, format_bytes(limit_)),
          bytes);
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (used + bytes > peak && !peak_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
}

}  // namespace kith
