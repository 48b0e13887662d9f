#include "cuda/error.hpp"

#include <kith/error.hpp>

#include <string>

namespace kith {

void throw_cuda_error(cudaError_t error, const char* call) {
  (void)cudaGetLastError();
  const std::string text =
      std::string(call) + " failed: " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  if (error == cudaErrorMemoryAllocation) {
    throw OutOfMemory(text + "; free memory on the GPU or set a lower device memory limit", 0);
  }
  throw DeviceError(text);
}

}  // namespace kith
