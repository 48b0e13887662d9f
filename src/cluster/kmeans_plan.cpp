#include "cluster/kmeans_plan.hpp"

#include <kith/error.hpp>

#include "cluster/centre_panels.hpp"
#include "cluster/centre_sums.hpp"
#include "cluster/data_survey.hpp"
#include "cluster/kmeans_plus_plus.hpp"
#include "cluster/nearest_centre.hpp"
#include "core/byte_size.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kReadBytes = 32 << 20;  // read at a time

int64_t bytes_of(const KMeansProblem& problem, int64_t piece, int threads) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t centres = problem.clusters * problem.cols * kFloat;
  const int64_t row_bytes = problem.cols * size_of(problem.dtype);
  int64_t bytes =
      CentrePanels::bytes_for(problem.clusters, problem.cols) + threads * NearestCentre::bytes_for(problem.cols);
  if (!problem.in_memory) bytes += piece * row_bytes;
  if (!problem.adds_up) return bytes + piece * 8;  // the piece's labels and keys
  const int64_t work =
      CentreSums::bytes_for(problem.clusters, problem.cols, std::max(piece, problem.batch_rows), threads) +
      2 * centres + problem.batch_rows * (row_bytes + 12);
  // Before the loop begins the first centres are chosen and the data are surveyed.
  const int64_t start = std::max(KMeansPlusPlus::bytes_for(problem.sampled_rows, problem.clusters, problem.cols),
                                 DataSurvey::bytes_for(piece, problem.cols, threads)) +
                        centres + (problem.rows + 63) / 64 * 8;  // a bit for each row, while some are drawn
  return bytes + problem.rows * 4 + std::max(work, start);       // keys
}

}  // namespace

KMeansPlan plan_kmeans_cpu(const KMeansProblem& problem, const PlanBudget& budget) {
  const int64_t row_bytes = problem.cols * size_of(problem.dtype);
  const auto whole_blocks = [](int64_t rows) { return std::max(rows / kSumBlock, int64_t{1}) * kSumBlock; };
  KMeansPlan plan;
  plan.piece_rows = problem.in_memory ? std::max<int64_t>(problem.rows, 1)
                                      : std::min(whole_blocks(kReadBytes / std::max<int64_t>(row_bytes, 1)),
                                                 whole_blocks(problem.rows + kSumBlock - 1));
  for (;;) {
    plan.host_bytes = bytes_of(problem, plan.piece_rows, budget.threads);
    if (plan.host_bytes <= budget.host) return plan;
    if (problem.in_memory ? plan.piece_rows <= kSumBlock : plan.piece_rows == kSumBlock) break;
    plan.piece_rows = whole_blocks(plan.piece_rows / 2);
  }
  throw OutOfMemory(
      fmt::format(
          "k-means of {} x {} vectors to {} centres with {} threads needs at least {}, and the host memory limit "
          "leaves {}; raise the limit, or lower the clusters, the sample or the threads",
          problem.rows, problem.cols, problem.clusters, budget.threads, format_bytes(plan.host_bytes),
          format_bytes(std::max<int64_t>(budget.host, 0))),
      plan.host_bytes);
}

}  // namespace kith
