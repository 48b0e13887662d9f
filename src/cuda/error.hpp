// Turns the result of a CUDA call into one of Kith's exceptions.
#pragma once

#include <cuda_runtime_api.h>

namespace kith {

// Throws OutOfMemory if the device's memory ran out, otherwise DeviceError; the text names the call. Clears the
// thread's last error, so that a later launch does not report it again.
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call);

inline void check_cuda(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw_cuda_error(error, call);
}

}  // namespace kith

#define KITH_CUDA_CHECK(call) ::kith::check_cuda((call), #call)
