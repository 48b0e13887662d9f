#include "graph/build/nn_descent/descent_workspace.hpp"

#include <kith/error.hpp>

#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {

bool joins_are_products(KeyKind kind, int64_t cols) {
  return is_product(kind) && cols > 0 && cols <= kWindowMostHalfCols;
}

int64_t longest_gpu_list(int64_t shared_bytes) {
  int64_t longest = 8192;
  while (2 * 8 * longest > shared_bytes) longest /= 2;
  return longest;
}

int64_t most_gpu_samples(int64_t shared_bytes) {
  constexpr int64_t kOperands = 48 << 10;  // large_join_cuda.cu: of a tile with its rows apart, and pairs that are left
  constexpr int64_t kPairs = 4 << 10;
  constexpr int64_t kBytesPerSample = 248;
  return std::min<int64_t>(512, (shared_bytes - kOperands - kPairs) / kBytesPerSample);
}

void check_descent(const DescentRules& rules, int64_t list_length, Device device) {
  if (device.kind != DeviceKind::cuda) return;
  int capability = 0;
  for (const DeviceInfo& info : cuda_devices()) {
    if (info.device == device) capability = info.compute_capability;
  }
  const int64_t shared = most_shared_bytes(capability);
  if (list_length > longest_gpu_list(shared)) {
    throw Unsupported(
        fmt::format("lists of {} neighbours; nn_descent has up to {} on this GPU: use device cpu, or the "
                    "method exact",
                    list_length, longest_gpu_list(shared)));
  }
  if (rules.samples > most_gpu_samples(shared)) {
    throw Unsupported(fmt::format("samples = {}; nn_descent takes up to {} on this GPU: use device cpu, or fewer",
                                  rules.samples, most_gpu_samples(shared)));
  }
}

}  // namespace kith
