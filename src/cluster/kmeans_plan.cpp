#include "cluster/kmeans_plan.hpp"

#include <kith/error.hpp>

#include "cluster/centre_panels.hpp"
#include "cluster/centre_sums.hpp"
#include "cluster/data_survey.hpp"
#include "cluster/kmeans_plus_plus.hpp"
#include "cluster/nearest_centre.hpp"
#include "core/byte_size.hpp"
#include "rows/row_source.hpp"

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
  if (!problem.in_memory) bytes += FileSource::bytes_for({problem.rows, problem.cols, problem.dtype}, piece);
  if (!problem.adds_up) return bytes + piece * 8;  // the piece's labels and keys
  const int64_t work =
      CentreSums::bytes_for(problem.clusters, problem.cols, std::max(piece, problem.batch_rows), threads) +
      2 * centres + problem.batch_rows * (row_bytes + 12);
  const int64_t plus_plus = KMeansPlusPlus::bytes_for(problem.sampled_rows, problem.clusters, problem.cols);
  return bytes + problem.rows * 4 + std::max(work, kmeans_start_bytes(problem, plus_plus, piece, threads));  // keys
}

// Rough rates: what matters is that a small fit is not sent to a GPU that must first wake up.
constexpr double kCpuFlopsPerThread = 30e9;
constexpr double kGpuFlops = 1e14;
constexpr double kGpuStart = 0.4;    // seconds
constexpr double kCopyBytes = 2e10;  // per second

double flops(const KMeansProblem& problem) {
  return 2.0 * static_cast<double>(problem.rows) * static_cast<double>(problem.passes) *
         static_cast<double>(problem.clusters) * static_cast<double>(problem.cols);
}
double cpu_seconds(const KMeansProblem& problem, int threads) {
  return flops(problem) / (kCpuFlopsPerThread * threads);
}

}  // namespace

int64_t kmeans_start_bytes(const KMeansProblem& problem, int64_t plus_plus, int64_t piece, int threads) {
  return std::max(plus_plus, DataSurvey::bytes_for(piece, problem.cols, threads)) +
         problem.clusters * problem.cols * static_cast<int64_t>(sizeof(float)) +
         (problem.rows + 63) / 64 * 8;  // a bit for each row, while some are drawn
}

bool kmeans_worth_a_gpu(const KMeansProblem& problem, int threads) { return cpu_seconds(problem, threads) > kGpuStart; }

Device choose_kmeans_device(const KMeansProblem& problem, int threads, const std::vector<DeviceInfo>& gpus) {
  if (gpus.empty()) return Device::cpu();
  const double bytes = static_cast<double>(problem.rows) * static_cast<double>(problem.cols) *
                       static_cast<double>(size_of(problem.dtype));
  const double gpu = kGpuStart + bytes / kCopyBytes + flops(problem) / kGpuFlops;
  return gpu < cpu_seconds(problem, threads) ? gpus.front().device : Device::cpu();
}

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
