// The plan of k-means on a GPU.
//
// Rows from the host stay on the device if they fit, so that they are copied once; else they come piece by piece in
// every pass, each while the one before it is worked on. So do the operands that products are made of: where there is
// no room for those of all rows they are made anew for each piece. Under a tight budget first the pieces shrink to a
// size that still fills the machine, then the operands go, then the rows, then the pieces shrink to the smallest that
// work.
#include "cluster/kmeans_plan.hpp"

#include <kith/error.hpp>

#include "cluster/device_row_gather_cuda.hpp"
#include "cluster/kmeans_plus_plus.hpp"
#include "cluster/kmeans_workspace_cuda.hpp"
#include "cluster/plus_plus_workspace_cuda.hpp"
#include "cuda/pinned_bytes.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostPiece = int64_t{1} << 24;
constexpr int64_t kGoodPiece = int64_t{1} << 17;
constexpr int64_t kReadBytes = int64_t{256} << 20;  // of rows that come from the host in every pass
constexpr int64_t kRestRows = 16384;
constexpr int64_t kLeastRest = 64;

int64_t whole_blocks(int64_t rows) { return std::max<int64_t>(rows / kSumBlock, 1) * kSumBlock; }

int64_t host_bytes(const KMeansProblem& problem, const KMeansPlan& plan, int threads) {
  constexpr int64_t kDouble = sizeof(double);
  const int64_t row_bytes = problem.cols * size_of(problem.dtype);
  const int64_t piece = std::min(plan.piece_rows, std::max<int64_t>(problem.rows, 1));
  int64_t bytes = plan.cuda.pinned_bytes + plan.cuda.rest.host_bytes + plan.cuda.rest_rows * 8;
  if (!problem.in_memory) bytes += FileSource::bytes_for({problem.rows, problem.cols, problem.dtype}, piece);
  bytes += problem.cols * 8 + problem.rows / kSumBlock * kDouble + kDouble;  // the origin, the objective's blocks
  if (!problem.adds_up) return bytes + piece * 8;                            // labels and keys
  const int64_t surveyed = problem.space.host_readable() ? piece : 0;
  const int64_t work = problem.clusters * (problem.cols + 4) * kDouble +  // sums, where centres are empty
                       2 * problem.clusters * problem.cols * 4 + problem.batch_rows * (row_bytes + 12);
  const int64_t plus_plus = !plan.cuda.plus_plus
                                ? KMeansPlusPlus::bytes_for(problem.sampled_rows, problem.clusters, problem.cols)
                            : problem.space.host_readable() ? problem.sampled_rows * problem.cols * 4
                                                            : 0;
  return bytes + problem.rows * 4 + std::max(work, kmeans_start_bytes(problem, plus_plus, surveyed, threads));  // keys
}

// Of k-means++, which is done before the rest begins.
int64_t plus_plus_bytes(const KMeansProblem& problem) {
  PlusPlusShape shape;
  shape.rows = problem.sampled_rows;
  shape.cols = problem.cols;
  shape.clusters = problem.clusters;
  shape.trials = plus_plus_trials(problem.clusters);
  shape.weighted = problem.weighted;
  shape.listed = !problem.space.host_readable() && problem.sampled_rows < problem.rows;
  shape.in_place = !problem.space.host_readable() && problem.dtype == DType::f32 && !shape.listed;
  return PlusPlusWorkspace(shape).bytes;
}

// What a plan needs in all; INT64_MAX where that cannot be counted.
int64_t device_bytes(const KMeansProblem& problem, const KMeansPlan& plan) {
  const int64_t own = KMeansWorkspace(problem, plan).bytes;
  const int64_t more = plan.cuda.rest.device_bytes + (problem.space.host_readable() ? 0 : 2 * kGatherBytes);
  return own > INT64_MAX - more ? INT64_MAX : own + more;
}

}  // namespace

SearchTask rest_search(const KMeansProblem& problem, Device device, int64_t rows) {
  SearchShape shape;
  shape.queries = rows;
  shape.rows = problem.clusters;
  shape.cols = problem.cols;
  shape.query_dtype = problem.dtype;
  shape.metric = problem.spherical ? Metric::inner_product : Metric::sqeuclidean;
  shape.query_space = shape.base_space = MemorySpace::cuda(device.index);
  return search_of(shape, {.k = 1, .check_finite = false});
}

ProductSchedule schedule_nearest(int64_t rows, int64_t clusters, int multiprocessors) {
  ProductSchedule schedule;
  schedule.query_tiles = static_cast<int>(operand_tiles(rows) / 2);
  schedule.base_tiles = static_cast<int>(operand_tiles(clusters));
  const int64_t wanted =
      schedule.query_tiles > kFewQueryTiles ? 1 : divide_up(2 * multiprocessors, schedule.query_tiles);
  const int64_t parts = std::clamp<int64_t>(wanted, 1, std::min<int64_t>(kMostNearestParts, schedule.base_tiles / 2));
  schedule.tiles_per_item = static_cast<int>(divide_up(schedule.base_tiles / 2, parts) * 2);
  schedule.items =
      schedule.query_tiles * static_cast<int>(divide_up(schedule.base_tiles, schedule.tiles_per_item));
  return schedule;
}

KMeansPlan plan_kmeans_cuda(const KMeansProblem& problem, const DeviceInfo& device, const PlanBudget& budget,
                            ProductEngine asked) {
  const int64_t rows = std::max<int64_t>(problem.rows, 1);
  const int64_t row_bytes = std::max<int64_t>(problem.cols * size_of(problem.dtype), 1);
  const bool from_host = problem.space.kind != MemoryKind::cuda;
  KMeansPlan plan;
  plan.device = device.device;
  plan.cuda.products = device.compute_capability >= 80 && problem.cols <= kWindowMostCols;
  plan.cuda.engine = plan.cuda.products ? product_engine(device.compute_capability, asked) : ProductEngine::automatic;
  plan.cuda.multiprocessors = device.multiprocessors;
  if (from_host && problem.space.kind == MemoryKind::host && saturating_multiply(rows, row_bytes) >= kPinnedBytes) {
    plan.cuda.pinned_bytes = kPinnedBytes;
  }

  // So many rows at a time are left to exact search, in so much memory; the smallest search where that is too little.
  const auto with_rest = [&](int64_t rest, int64_t bytes) {
    plan.cuda.rest_rows = std::min(rows, rest);
    const SearchTask search = rest_search(problem, device.device, plan.cuda.rest_rows);
    try {
      plan.cuda.rest = plan_knn_cuda(search, device, {budget.host, bytes, budget.threads});
    } catch (const OutOfMemory& error) {
      plan.cuda.rest = plan_knn_cuda(search, device, {budget.host, error.bytes_needed(), budget.threads});
    }
  };
  const auto fits = [&](int64_t piece, bool rows_stay, bool operands_stay, bool ahead) {
    plan.piece_rows = std::min(piece, whole_blocks(rows + kSumBlock - 1));
    plan.cuda.rows_stay = from_host && rows_stay;
    plan.cuda.rows_ahead = ahead && plan.piece_rows < rows;
    plan.cuda.operands_stay = operands_stay;
    plan.device_bytes = device_bytes(problem, plan);
    return plan.device_bytes <= budget.device;
  };
  // Nothing stays that is used but once.
  const bool can_stay = problem.adds_up && problem.batch_rows == 0;
  const int64_t largest = whole_blocks(std::min(rows + kSumBlock - 1, kMostPiece));
  const int64_t streamed = std::min(largest, whole_blocks(kReadBytes / row_bytes));
  const auto choose = [&] {
    for (const auto& [rows_stay, operands_stay] : {std::pair{true, true}, {true, false}}) {
      if (!can_stay) break;
      for (int64_t piece = problem.in_memory ? largest : streamed;; piece = whole_blocks(piece / 2)) {
        if (fits(piece, rows_stay, operands_stay, false)) return true;
        if (piece <= kGoodPiece) break;
      }
    }
    const bool ahead = from_host && problem.adds_up;
    for (int64_t piece = from_host ? streamed : largest;; piece = whole_blocks(piece / 2)) {
      if (fits(piece, false, false, ahead)) return true;
      if (piece == kSumBlock) return ahead && fits(piece, false, false, false);
    }
  };
  bool found = false;
  for (int64_t rest = kRestRows; !found && rest >= kLeastRest; rest /= 4) {
    with_rest(rest, budget.device / 4);
    found = choose();
  }
  if (!found) {
    with_rest(kLeastRest, 0);
    found = choose();
  }
  if (!found) {
    throw OutOfMemory(
        fmt::format("k-means of {} x {} vectors to {} centres needs at least {} of device memory, and {} are left; "
                    "raise the limit, free memory or lower the clusters",
                    problem.rows, problem.cols, problem.clusters, format_bytes(plan.device_bytes),
                    format_bytes(std::max<int64_t>(budget.device, 0))),
        plan.device_bytes);
  }

  // Where there is no room for k-means++ the host does it, with the same centres.
  const int64_t plus_plus = problem.sampled_rows > 0 ? plus_plus_bytes(problem) : INT64_MAX;
  plan.cuda.plus_plus = plus_plus <= budget.device;
  const auto count_device_bytes = [&] {
    plan.device_bytes = std::max(device_bytes(problem, plan), plan.cuda.plus_plus ? plus_plus : 0);
  };
  count_device_bytes();
  for (;;) {
    plan.host_bytes = host_bytes(problem, plan, budget.threads);
    if (plan.host_bytes <= budget.host) return plan;
    if (plan.cuda.pinned_bytes > 0) {
      plan.cuda.pinned_bytes = 0;
    } else if (plan.piece_rows > kSumBlock) {
      plan.piece_rows = whole_blocks(plan.piece_rows / 2);
      count_device_bytes();
    } else {
      throw OutOfMemory(
          fmt::format("k-means of {} x {} vectors to {} centres on a GPU needs at least {} of host memory, and the "
                      "limit leaves {}; raise the limit, or lower the clusters or the sample",
                      problem.rows, problem.cols, problem.clusters, format_bytes(plan.host_bytes),
                      format_bytes(std::max<int64_t>(budget.host, 0))),
          plan.host_bytes);
    }
  }
}

}  // namespace kith
