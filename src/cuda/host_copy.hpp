// Reads values from a GPU on which the host bases a decision.
#pragma once

#include "core/host_array.hpp"
#include "cuda/device_context.hpp"

#include <cstdint>
#include <string_view>

namespace kith {

// Waits for the context's stream. `purpose`: what the memory is for, in the words of an error.
template <typename T>
HostArray<T> copied_to_host(const T* from, int64_t count, std::string_view purpose, const DeviceContext& context,
                            const Resources& resources) {
  HostArray<T> values(count, purpose, resources);
  context.copy_values(values.data(), from, count);
  context.synchronize();
  return values;
}

}  // namespace kith
