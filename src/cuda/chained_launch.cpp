#include "cuda/chained_launch.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace kith {
namespace {

// By device, whether a kernel's code waits by itself: code for older GPUs does not, and may run on newer ones. A cache:
// the answer cannot change, and to ask the runtime takes as long as the pause that is saved.
struct Waits {
  std::mutex mutex;
  std::map<std::pair<const void*, int>, bool> kernels;
};

Waits& waits() {
  static Waits* const instance = new Waits;
  return *instance;
}

bool waits_itself(const void* kernel) {
  constexpr int kLeastVersion = 90;
  int device = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard lock(waits().mutex);
  const auto found = waits().kernels.find({kernel, device});
  if (found != waits().kernels.end()) return found->second;
  cudaFuncAttributes attributes;
  KITH_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  return waits().kernels[{kernel, device}] = attributes.ptxVersion >= kLeastVersion;
}

}  // namespace

void launch_chained(const LaunchShape& shape, const void* kernel, void** arguments, const char* name) {
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = shape.threads;
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = shape.stream;
  config.attrs = &early;
  config.numAttrs = waits_itself(kernel) ? 1 : 0;
  check_cuda(cudaLaunchKernelExC(&config, kernel, arguments), name);
}

}  // namespace kith
