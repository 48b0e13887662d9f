#include "graph/build/nn_descent/descent_workspace.hpp"

#include <kith/error.hpp>

#include "graph/lists/control_rows.hpp"
#include "graph/lists/start_rules.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operand_layout.hpp"
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
    throw Unsupported(fmt::format("lists of {} neighbours; nn_descent has up to {} on this GPU: use device cpu, or the "
                                  "method exact",
                                  list_length, longest_gpu_list(shared)));
  }
  if (rules.samples > most_gpu_samples(shared)) {
    throw Unsupported(fmt::format("samples = {}; nn_descent takes up to {} on this GPU: use device cpu, or fewer",
                                  rules.samples, most_gpu_samples(shared)));
  }
}

int64_t enough_for_descent(const MatrixView& x, Metric metric, int64_t k, int64_t list_length,
                           const DescentRules& rules) {
  constexpr int64_t kSearches = int64_t{256} << 20;  // of control rows, for some rows at a time
  constexpr int64_t kSmall = int64_t{4} << 20;       // surveys, control rows' lists, results on their way
  const int64_t rows = x.rows();
  const int64_t copied = x.space().host_readable() ? rows * x.cols() * size_of(x.dtype()) : 0;
  const int64_t norms = metric == Metric::cosine ? 8 * rows : 0;
  int64_t operands = 0;
  if (joins_are_products(key_kind(metric), x.cols())) {
    operands = operand_bytes(rows, operand_chunks(x.cols(), 2)) + 16 * rows +
               std::min(rows, kFactRows) * static_cast<int64_t>(sizeof(QueryFacts)) + 4 * x.cols();
  }
  const int64_t lists = 8 * rows * list_length;
  const int64_t start = 8 * rows + std::min(kStartBytes, 12 * rows * list_length);
  const int64_t rounds = operands + DescentLayout(rows, list_length, rules).bytes;
  const int64_t control = kControlRows * 8 * std::max(k, list_length);
  return copied + norms + lists + std::max(start, rounds) + kSearches + kSmall + control + 12 * k * std::min(rows, kFactRows);
}

}  // namespace kith
