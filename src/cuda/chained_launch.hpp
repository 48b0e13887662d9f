// Launches of kernels that follow each other in a stream, without the pause between them.
//
// From compute capability 9.0 on a kernel's blocks can take their places while the last blocks of the kernel before are
// still at work. Such a kernel calls ptx::wait_for_kernel_before() before it reads what that kernel wrote, or writes
// what that kernel reads. Since the next one may start only after that, whatever was written two kernels ago or earlier
// can be read even before the call. Saves one to three microseconds a launch.
#pragma once

#include "cuda/error.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

namespace kith {

struct LaunchShape {
  int64_t blocks = 0;
  dim3 threads;  // of a block
  int64_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

// Launches as <<<>>> does where the device or the code it runs knows no such thing. `name` is the kernel's.
void launch_chained(const LaunchShape& shape, const void* kernel, void** arguments, const char* name);

template <typename... Parameters>
void launch_chained(const LaunchShape& shape, const char* name, void (*kernel)(Parameters...),
                    std::type_identity_t<Parameters>... arguments) {
  void* pointers[] = {&arguments...};
  launch_chained(shape, reinterpret_cast<const void*>(kernel), pointers, name);
}

}  // namespace kith
