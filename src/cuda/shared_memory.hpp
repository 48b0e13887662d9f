// Dynamic shared memory past the 48 KiB that any kernel may have.
//
// The limit is state of the kernel on its device, not of a launch: were it set to what one call needs, a search of
// another thread could lower it between that and the launch. So it is always the same, the most there can be.
#pragma once

namespace kith {

// Lets launches of `kernel` on the current device have all the shared memory of a block that its own variables leave.
void allow_all_shared_memory(const void* kernel);

template <typename... Parameters>
void allow_all_shared_memory(void (*kernel)(Parameters...)) {
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
}

}  // namespace kith
