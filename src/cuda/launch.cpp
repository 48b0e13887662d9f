#include "cuda/launch.hpp"

#include "core/memory_budget.hpp"
#include "cuda/error.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kith {
namespace {

// By device, whether a kernel's code waits for the kernel before it: code for older GPUs, which may run on newer ones,
// does not. Cached, since asking the runtime takes as long as the pause that chaining saves.
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

std::string name_of_kernel(const void* kernel) {
#if CUDART_VERSION >= 12030
  const char* mangled = nullptr;
  if (cudaFuncGetName(&mangled, kernel) != cudaSuccess || mangled == nullptr) return "a kernel";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : mangled;
#else
  (void)kernel;
  return "a kernel";
#endif
}

}  // namespace

void launch_kernel(const void* kernel, void** arguments, const Grid& grid, cudaStream_t stream) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0 || is_counted_only(stream)) return;
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared_bytes);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = grid.is_chained && waits_itself(kernel) ? 1 : 0;
  const cudaError_t error = cudaLaunchKernelExC(&config, kernel, arguments);
  if (error != cudaSuccess) throw_cuda_error(error, ("launch of " + name_of_kernel(kernel)).c_str());
}

void fill_bytes(void* memory, int byte, int64_t bytes, cudaStream_t stream) {
  if (bytes == 0 || is_counted_only(stream)) return;
  KITH_CUDA_CHECK(cudaMemsetAsync(memory, byte, static_cast<size_t>(bytes), stream));
}

}  // namespace kith
