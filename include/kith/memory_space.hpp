// The memory that a pointer refers to.
#pragma once

#include <cstdint>

namespace kith {

enum class MemoryKind : uint8_t { host, pinned, managed, cuda };

struct MemorySpace {
  MemoryKind kind = MemoryKind::host;
  int device = 0;  // the CUDA device, for managed and cuda

  static constexpr MemorySpace host() { return {}; }
  static constexpr MemorySpace cuda(int device) { return {MemoryKind::cuda, device}; }

  constexpr bool host_readable() const { return kind != MemoryKind::cuda; }
  constexpr bool operator==(const MemorySpace&) const = default;
};

}  // namespace kith
