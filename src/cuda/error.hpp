// Turns the result of a CUDA call into one of Kith's exceptions.
#pragma once

#include <cuda_runtime_api.h>

namespace kith {

// OutOfMemory where the device's memory ran out, else DeviceError; the text names the call. The error is taken from
// the thread's record, so that a later launch does not report it once more.
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call);

inline void check_cuda(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw_cuda_error(error, call);
}

}  // namespace kith

#define KITH_CUDA_CHECK(call) ::kith::check_cuda((call), #call)
