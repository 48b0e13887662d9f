// The plan of an exact search on a GPU.
//
// All queries are one batch where their lists fit, since each batch passes over the whole base. Rows come to the device
// in pieces of row_tile, and query_tile x row_tile keys are computed, then selected from, at a time: enough to fill the
// machine, little enough to stay near its L2 cache. Under a tight budget first the row tile shrinks, which costs
// little, then the batch, then both to the smallest that works.
#include "exact/knn_plan.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "exact/knn_workspace_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kQueryTile = 1024;
constexpr int64_t kTileKeys = int64_t{1} << 24;      // 64 MiB of keys
constexpr int64_t kPieceBytes = int64_t{256} << 20;  // rows on the device at a time, unless k asks for more
constexpr int64_t kGoodRowTile = 1024;               // below this selection spends its time on its lists
constexpr int64_t kGoodBatch = 64;
constexpr int64_t kSmallestRowTile = 32;
constexpr int64_t kFileChunkBytes = int64_t{64} << 20;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What the loop around the backend holds on the host: a batch's packed neighbours and what is read or written in
// pieces.
int64_t host_bytes(const KnnProblem& problem, const KnnPlan& plan) {
  const auto matrix = [&](int64_t rows, int64_t row_bytes) { return saturating_multiply(rows, row_bytes); };
  int64_t bytes = matrix(plan.query_batch, saturating_multiply(problem.k, 8));
  const auto add = [&](int64_t more) { bytes = more > INT64_MAX - bytes ? INT64_MAX : bytes + more; };
  if (!problem.queries_in_memory) add(matrix(plan.query_batch, problem.cols * size_of(problem.query_dtype)));
  if (!problem.base_in_memory) add(matrix(plan.base_chunk, problem.cols * size_of(problem.base_dtype)));
  if (!problem.results_in_memory) add(matrix(plan.query_batch, saturating_multiply(problem.result_k, 12)));
  return bytes;
}

[[noreturn]] void throw_too_small(std::string_view which, int64_t needed, int64_t budget) {
  throw OutOfMemory(
      fmt::format("an exact search with these columns and k needs at least {} of {} memory, and {} are left; "
                  "raise the limit, free memory or lower k",
                  format_bytes(needed), which, format_bytes(std::max<int64_t>(budget, 0))),
      needed);
}

}  // namespace

KnnPlan plan_knn_cuda(const KnnProblem& problem, const DeviceInfo& device, const PlanBudget& budget) {
  const int64_t rows = std::max<int64_t>(problem.rows, 1);
  const int64_t row_bytes = std::max<int64_t>(problem.cols * size_of(problem.base_dtype), 1);

  KnnPlan plan;
  plan.device = device.device;
  plan.query_batch = std::max<int64_t>(problem.queries, 1);
  plan.query_tile = std::min(plan.query_batch, kQueryTile);
  // A tile as long as the lists keeps the passes over the lists no dearer than those over the keys.
  const int64_t wanted = std::max({kTileKeys / plan.query_tile, std::min(problem.k, kTileKeys), kSmallestRowTile});
  const int64_t affordable = std::max({kPieceBytes / row_bytes, std::min(problem.k, kTileKeys), kSmallestRowTile});
  plan.row_tile = std::min({wanted, affordable, rows});
  plan.query_tile = std::clamp<int64_t>(kTileKeys / plan.row_tile, 1, plan.query_tile);

  const int64_t smallest_row_tile = std::min(rows, kSmallestRowTile);
  const auto shrink_rows = [&] { plan.row_tile = std::max(divide_up(plan.row_tile, 2), smallest_row_tile); };
  const auto shrink_batch = [&] {
    plan.query_batch = divide_up(plan.query_batch, 2);
    plan.query_tile = std::min(plan.query_tile, plan.query_batch);
  };
  for (;;) {
    plan.device_bytes = KnnWorkspace(problem, plan).bytes;
    if (plan.device_bytes <= budget.device) break;
    if (plan.row_tile > std::max(kGoodRowTile, smallest_row_tile)) {
      shrink_rows();
    } else if (plan.query_batch > kGoodBatch) {
      shrink_batch();
    } else if (plan.row_tile > smallest_row_tile) {
      shrink_rows();
    } else if (plan.query_batch > 1) {
      shrink_batch();
    } else {
      throw_too_small("device", plan.device_bytes, budget.device);
    }
  }

  // A base in memory is handed over whole and cut up on its way to the device; one in a file is read in chunks.
  plan.base_chunk = problem.base_in_memory ? rows : std::min(rows, std::max<int64_t>(kFileChunkBytes / row_bytes, 1));
  for (;;) {
    plan.host_bytes = host_bytes(problem, plan);
    if (plan.host_bytes <= budget.host) break;
    if (!problem.base_in_memory && plan.base_chunk > std::min(rows, kGoodRowTile)) {
      plan.base_chunk = divide_up(plan.base_chunk, 2);
    } else if (plan.query_batch > kGoodBatch) {
      shrink_batch();
    } else if (!problem.base_in_memory && plan.base_chunk > 1) {
      plan.base_chunk = divide_up(plan.base_chunk, 2);
    } else if (plan.query_batch > 1) {
      shrink_batch();
    } else {
      throw_too_small("host", plan.host_bytes, budget.host);
    }
  }
  plan.device_bytes = KnnWorkspace(problem, plan).bytes;
  return plan;
}

}  // namespace kith
