#include "core/memory_budget.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

namespace kith {

void MemoryBudget::reserve(int64_t bytes, std::string_view purpose) {
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ - used) {
      throw OutOfMemory(
          fmt::format("no room for {}: {}, which is {} more than the {} memory limit of {} has left; raise the limit "
                      "or lower the "
                      "problem's size",
                      purpose, format_bytes(bytes), format_bytes(bytes - (limit_ - used)), name_, format_bytes(limit_)),
          bytes);
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
}

}  // namespace kith
