#include "cluster/steps/kmeans_plan.hpp"

#include <kith/error.hpp>

#include "cluster/data/data_survey.hpp"
#include "cluster/draw/kmeans_plus_plus.hpp"
#include "core/byte_size.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kReadBytes = 32 << 20;   // read at a time
constexpr double kGpuProductFlops = 1e14;  // per second

int64_t bytes_of(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan, int threads) {
  const int64_t piece = plan.piece_rows;
  int64_t bytes = shape.read_bytes(piece);
  bytes += CentreAssigner::bytes_for(plan.cpu.format, shape.clusters, shape.cols, threads);
  if (!wish.moves_centres) return bytes + piece * 8;  // the piece's labels and keys
  const int64_t sums = CentreSums::bytes_for(shape.clusters, shape.cols, std::max(piece, wish.batch_rows), threads);
  const int64_t work =
      sums + array_bytes<float>(2 * shape.clusters * shape.cols) + wish.batch_rows * (shape.row_bytes() + 12);
  const int64_t plus_plus = host_plus_plus_bytes(shape, wish, plan, threads);
  const int64_t keys = array_bytes<float>(shape.rows);
  const int64_t start = kmeans_start_bytes(shape, wish, plus_plus, piece, threads);
  return bytes + keys + (wish.candidates > 0 ? work + start : std::max(work, start));
}

}  // namespace

int64_t host_plus_plus_bytes(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan, int threads) {
  const PanelFormat format = plan.cpu.format;
  if (wish.candidates > 0) {  // oversampled_start.hpp
    return array_bytes<float>(2 * shape.rows + wish.candidates * (shape.cols + 3)) +
           KMeansPlusPlus::bytes_for(format, wish.candidates, shape.clusters, shape.cols, threads, true);
  }
  const bool in_place = shape.in_memory && shape.space.host_readable() && wish.sampled_rows == shape.rows;
  const KMeansStartPlan& start = plan.start;
  const int64_t rows = in_place                                                         ? 0
                       : start.rows_stay                                                ? wish.sampled_rows
                       : wish.sampled_rows == shape.rows && shape.space.host_readable() ? 0
                                                                                        : plan.piece_rows;
  const bool packed = start.packed_stay && (in_place || start.rows_stay);
  return rows * shape.row_bytes() +
         KMeansPlusPlus::bytes_for(format, wish.sampled_rows, shape.clusters, shape.cols, threads, packed);
}

bool shrink_start(KMeansStartPlan& start) {
  if (!start.packed_stay) return false;
  start = {false, false};
  return true;
}

int64_t kmeans_start_bytes(const KMeansShape& shape, const KMeansWish& wish, int64_t plus_plus, int64_t piece,
                           int threads) {
  int64_t drawn = array_bytes<uint64_t>(divide_up(shape.rows, 64));    // a bit for each row, while some are drawn
  if (wish.sampled_rows < shape.rows) drawn += wish.sampled_rows * 8;  // their numbers and weights
  return std::max(plus_plus, DataSurvey::bytes_for(piece, shape.cols, threads)) +
         array_bytes<float>(shape.clusters * shape.cols) + drawn;
}

Work work_of(const KMeansShape& shape, const KMeansWish& wish) {
  const auto rows = static_cast<double>(shape.rows);
  return {2.0 * rows * static_cast<double>(wish.passes) * static_cast<double>(shape.clusters) *
              static_cast<double>(shape.cols),
          rows * static_cast<double>(shape.row_bytes()), kGpuProductFlops};
}

KMeansPlan plan_kmeans_cpu(const KMeansShape& shape, const KMeansWish& wish, const PlanBudget& budget) {
  KMeansPlan plan;
  plan.cpu.format = centre_format(shape.cols, budget.cpu);
  plan.cpu.checks_finite = CentreAssigner::has_few(shape.clusters) && wish.check_finite && !wish.moves_centres;
  plan.piece_rows = shape.in_memory ? std::max<int64_t>(shape.rows, 1)
                                    : std::min(whole_sum_blocks(kReadBytes / std::max<int64_t>(shape.row_bytes(), 1)),
                                               whole_sum_blocks(shape.rows + kSumBlock - 1));
  for (;;) {
    plan.host_bytes = bytes_of(shape, wish, plan, budget.threads);
    if (plan.host_bytes <= budget.host) return plan;
    if (wish.sampled_rows > 0 && shrink_start(plan.start)) continue;
    if (shape.in_memory ? plan.piece_rows <= kSumBlock : plan.piece_rows == kSumBlock) break;
    plan.piece_rows = whole_sum_blocks(plan.piece_rows / 2);
  }
  throw OutOfMemory(
      fmt::format(
          "k-means of {} x {} vectors to {} centres with {} threads needs at least {}, and the host memory limit "
          "leaves {}; raise the limit, or lower the clusters, the sample or the threads",
          shape.rows, shape.cols, shape.clusters, budget.threads, format_bytes(plan.host_bytes),
          format_bytes(std::max<int64_t>(budget.host, 0))),
      plan.host_bytes);
}

}  // namespace kith
