// k-means on the CPU: rows are assigned in parallel, block by block, and added up in parallel, centre by centre.
#include <kith/error.hpp>

#include "cluster/centre_panels.hpp"
#include "cluster/kmeans_backend.hpp"
#include "cluster/nearest_centre.hpp"
#include "core/dispatch.hpp"

#include <algorithm>
#include <deque>

namespace kith {
namespace {

class KMeansCpu final : public KMeansBackend {
 public:
  KMeansCpu(const KMeansProblem& problem, const KMeansPlan& plan, std::vector<float> origin, const Resources& resources)
      : resources_(resources),
        origin_(std::move(origin)),
        panels_(problem.spherical ? KeyKind::inner_product : KeyKind::squared_l2, problem.clusters, problem.cols,
                resources) {
    for (int slot = 0; slot < resources.threads(); ++slot)
      nearest_.emplace_back(panels_.kind(), problem.cols, resources);
    if (problem.adds_up) {
      sums_.emplace_back(problem.clusters, problem.cols, std::max(plan.piece_rows, problem.batch_rows), resources);
    }
  }

  void set_centres(const MatrixView& centres) override { panels_.pack(centres, origin_); }

  void assign(const MatrixView& rows, int32_t* labels, float* keys, ProgressMeter& meter) override {
    const int64_t block = NearestCentre::block_rows(rows.cols());
    parallel_for((rows.rows() + block - 1) / block, meter, resources_, [&](int64_t task, int slot) {
      const int64_t first = task * block;
      const int64_t count = std::min(block, rows.rows() - first);
      nearest_[static_cast<size_t>(slot)].assign(panels_, rows.slice(first, count), labels + first, keys + first);
      meter.add(count);
    });
  }

  void clear_sums() override { sums_.front().clear(); }
  void add(const MatrixView& rows, const int32_t* labels, const float* weights, ProgressMeter& meter) override {
    sums_.front().add(rows, labels, weights, meter, resources_);
  }
  SumsView sums() override { return sums_.front().view(); }

 private:
  const Resources resources_;
  const std::vector<float> origin_;
  CentrePanels panels_;
  std::deque<NearestCentre> nearest_;  // one for each thread
  std::deque<CentreSums> sums_;        // one, or none where rows are only assigned
};

}  // namespace

std::unique_ptr<KMeansBackend> make_kmeans_cpu(const KMeansProblem& problem, const KMeansPlan& plan,
                                               std::vector<float> origin, const Resources& resources) {
  return std::make_unique<KMeansCpu>(problem, plan, std::move(origin), resources);
}

std::unique_ptr<KMeansBackend> make_kmeans_backend(const KMeansProblem& problem, const KMeansPlan& plan,
                                                   std::vector<float> origin, const Resources& resources) {
  return dispatch(
      plan.device, [&] { return make_kmeans_cpu(problem, plan, std::move(origin), resources); },
      [&](int) -> std::unique_ptr<KMeansBackend> {
        throw Unsupported("k-means runs on the CPU alone; use device cpu or auto");
      });
}

}  // namespace kith
