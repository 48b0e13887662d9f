// Allows kernels more dynamic shared memory than the default 48 KiB.
//
// The limit belongs to the kernel on its device, not to a launch: if it were set to what one call needs, another
// thread's search could lower it before the launch. So it is always set to the maximum.
#pragma once

namespace kith {

// Allows launches of `kernel` on the current device all shared memory of a block beside its static variables.
void allow_all_shared_memory(const void* kernel);

template <typename... Parameters>
void allow_all_shared_memory(void (*kernel)(Parameters...)) {
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
}

}  // namespace kith
