// The host memory of reads, reserved for as long as the returned handle lives.
#pragma once

#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace kith {

// `Reader` has memory_bytes() and free_memory(): a ValueReader or a RowReader.
template <typename Reader>
ReadMemory reserve_read_memory(const std::shared_ptr<const Reader>& reader, const std::string& path,
                               const Resources& resources) {
  const int64_t bytes = reader->memory_bytes();
  if (bytes == 0) return nullptr;
  resources.host_memory()->reserve(bytes, fmt::format("the chunks of '{}'", path));
  const auto give_back = [reader, budget = resources.host_memory(), bytes](const void*) {
    reader->free_memory();
    budget->release(bytes);
  };
  return {static_cast<const void*>(reader.get()), give_back};
}

}  // namespace kith
