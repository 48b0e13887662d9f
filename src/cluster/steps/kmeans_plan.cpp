#include "cluster/steps/kmeans_plan.hpp"

#include "cluster/data/data_survey.hpp"
#include "cluster/draw/kmeans_plus_plus.hpp"
#include "core/byte_size.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kReadBytes = 32 << 20;  // read at a time

Footprint footprint_of_plan(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan,
                            const Resources& resources) {
  const int64_t piece = plan.piece_rows;
  const std::vector<float> origin(static_cast<size_t>(shape.cols));
  const Footprint assigner = footprint_of<CentreAssigner>(resources, request.kind(), plan.format, origin, shape.clusters);
  const Footprint reading{shape.read_bytes(piece)};
  const Footprint packing =
      Footprint{PackedRows::scratch_bytes(plan.format, shape.cols)}.times(resources.threads());  // of the centres
  if (!request.moves_centres) {  // the piece's labels and keys
    return reading.beside(assigner).beside(packing).beside(array_footprint<float>(2 * piece));
  }
  const int64_t most = std::max(piece, request.batch_rows);
  const Footprint loop = assigner.beside(packing)
                             .beside(footprint_of<CentreSums>(resources, shape.clusters, shape.cols, most))
                             .beside({request.batch_rows * shape.row_bytes()})
                             .beside(array_footprint<float>(2 * shape.clusters, shape.cols))
                             .beside(array_footprint<float>(3 * request.batch_rows));
  const Footprint start =
      start_footprint(shape, request, plus_plus_footprint(shape, request, plan, resources), piece, resources);
  // The backend draws candidates; else it is made once the first centres are there. Every row has a key.
  return reading.beside(array_footprint<float>(shape.rows))
      .beside(request.candidates > 0 ? loop.beside(start) : loop.then(start));
}

}  // namespace

Footprint plus_plus_footprint(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan,
                              const Resources& resources) {
  const auto choosing = [&](int64_t rows, bool packed_stay) {
    return footprint_of<KMeansPlusPlus>(resources, plan.format, PlusPlusRows(rows, shape.cols, packed_stay),
                                        shape.clusters);
  };
  if (request.candidates > 0) {  // draw_candidates
    return choosing(request.candidates, true)
        .beside(array_footprint<float>(2 * shape.rows))
        .beside(array_footprint<float>(request.candidates, shape.cols + 3));
  }
  if (request.sampled_rows == 0) return {};
  const bool on_host = shape.space.host_readable();
  const bool all = request.sampled_rows == shape.rows;
  const bool in_place = shape.in_memory && on_host && all;
  const int64_t copied = in_place ? 0 : plan.start_stays ? request.sampled_rows : all && on_host ? 0 : plan.piece_rows;
  return choosing(request.sampled_rows, plan.start_stays).beside(Footprint{copied * shape.row_bytes()});
}

Resources planning_resources(int threads) {
  ResourceOptions options;
  options.threads = threads;
  options.device = Device::cpu();
  return Resources(options);
}

Footprint start_footprint(const KMeansShape& shape, const KMeansRequest& request, const Footprint& plus_plus, int64_t piece,
                          const Resources& resources) {
  const std::vector<float> origin(static_cast<size_t>(shape.cols));
  // A bit for each row while some are drawn; then their numbers and weights.
  const Footprint drawn =
      array_footprint<uint64_t>(divide_up(shape.rows, 64))
          .beside(array_footprint<float>(request.sampled_rows < shape.rows ? 2 * request.sampled_rows : 0));
  return plus_plus.then(footprint_of<DataSurvey>(resources, origin, false, piece))
      .beside(array_footprint<float>(shape.clusters, shape.cols))
      .beside(drawn);
}

Counts work_of(const KMeansShape& shape, const KMeansRequest& request) {
  const auto rows = static_cast<double>(shape.rows);
  return {{CostUnit::grouped_product, 2.0 * rows * static_cast<double>(request.passes) *
                                          static_cast<double>(shape.clusters) * static_cast<double>(shape.cols)},
          {CostUnit::copied_byte, rows * static_cast<double>(shape.row_bytes())}};
}

KMeansPlan plan_kmeans_cpu(const KMeansShape& shape, const KMeansRequest& request, const PlanBudget& budget) {
  const Resources resources = planning_resources(budget.threads);
  KMeansPlan plan;
  plan.format = centre_format(shape.cols, budget.cpu);
  const bool table = CentreAssigner::has_table(shape.clusters, shape.cols, plan.format);
  plan.checks_finite = table && request.check_finite && !request.moves_centres;
  plan.piece_rows = shape.in_memory ? std::max<int64_t>(shape.rows, 1)
                                    : std::min(whole_sum_blocks(kReadBytes / std::max<int64_t>(shape.row_bytes(), 1)),
                                               whole_sum_blocks(shape.rows + kSumBlock - 1));
  for (;;) {
    plan.host_bytes = footprint_of_plan(shape, request, plan, resources).host;
    if (plan.host_bytes <= budget.host) return plan;
    if (request.sampled_rows > 0 && std::exchange(plan.start_stays, false)) continue;
    if (shape.in_memory ? plan.piece_rows <= kSumBlock : plan.piece_rows == kSumBlock) return plan;
    plan.piece_rows = whole_sum_blocks(plan.piece_rows / 2);
  }
}

}  // namespace kith
