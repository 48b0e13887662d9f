// k-means on the CPU: rows are assigned in parallel, block by block, and added up in parallel, centre by centre.
#include "cluster/centre_means.hpp"
#include "cluster/centre_panels.hpp"
#include "cluster/kmeans_backend.hpp"
#include "cluster/kmeans_run.hpp"
#include "cluster/nearest_centre.hpp"
#include "cluster/row_sample.hpp"

#include <algorithm>
#include <deque>

namespace kith {
namespace {

class KMeansCpu final : public KMeansBackend {
 public:
  KMeansCpu(const KMeansProblem& problem, const KMeansPlan& plan, DataSample sample, const Resources& resources)
      : resources_(resources),
        spherical_(problem.spherical),
        origin_(std::move(sample.origin)),
        panels_(problem.spherical ? KeyKind::inner_product : KeyKind::squared_l2, problem.clusters, problem.cols,
                resources) {
    for (int slot = 0; slot < resources.threads(); ++slot)
      nearest_.emplace_back(panels_.kind(), problem.cols, resources);
    if (problem.adds_up) {
      sums_.emplace_back(problem.clusters, problem.cols, std::max(plan.piece_rows, problem.batch_rows), resources);
      batch_ = MatrixBuffer(problem.dtype, problem.batch_rows, problem.cols, "a mini-batch", resources);
    }
  }

  void set_rows(const KMeansRowArrays& rows) override {
    rows_ = rows;
    std::fill_n(rows.labels, rows.count, kNoLabel);
  }

  void set_centres(const MatrixView& centres) override {
    centres_ = centres;
    packed_ = false;
  }

  void begin_pass(bool adds_up) override {
    adds_up_ = adds_up;
    if (adds_up) sums_.front().clear();
    if (!packed_) panels_.pack(centres_, origin_);
    packed_ = true;
  }

  void scan(const MatrixView& rows, int64_t first_row, ProgressMeter& meter) override {
    int32_t* const labels = rows_.labels + first_row;
    float* const keys = rows_.keys + first_row;
    const int64_t block = NearestCentre::block_rows(rows.cols());
    parallel_for((rows.rows() + block - 1) / block, meter, resources_, [&](int64_t task, int slot) {
      const int64_t first = task * block;
      const int64_t count = std::min(block, rows.rows() - first);
      nearest_[static_cast<size_t>(slot)].assign(panels_, rows.slice(first, count), labels + first, keys + first);
      meter.add(count);
    });
    if (!adds_up_) return;
    const float* const weights = rows_.weights == nullptr ? nullptr : rows_.weights + first_row;
    sums_.front().add(rows, first_row, labels, weights, meter, resources_);
  }

  double objective() override {
    if (adds_up_) added_ = sums_.front().finish();
    return objective_of(rows_.keys, rows_.weights, rows_.count);
  }

  const double* weights() override { return added_.weights; }
  SumsView sums() override { return added_; }
  void put_sums() override {}

  double move_to_means(const MutableMatrixView& centres) override {
    packed_ = false;
    return kith::move_to_means(added_, centres, spherical_);
  }
  void move_by_batch(const MutableMatrixView& centres, double* counts) override {
    packed_ = false;
    kith::move_by_batch(added_, centres, counts, spherical_);
  }

  void get_centres(const MutableMatrixView&) override {}
  void get_rows() override {}
  void get_counts(double* counts) override { count_labels(rows_, panels_.count(), counts); }

  MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) override {
    const MutableMatrixView out = batch_.mutable_view().slice(0, static_cast<int64_t>(rows.size()));
    kith::gather(source, rows, out, resources_);
    return out;
  }

 private:
  const Resources resources_;
  const bool spherical_;
  const std::vector<float> origin_;
  CentrePanels panels_;
  std::deque<NearestCentre> nearest_;  // one for each thread
  std::deque<CentreSums> sums_;        // one, or none where rows are only assigned
  MatrixBuffer batch_;                 // rows gathered for mini-batches
  KMeansRowArrays rows_;
  MatrixView centres_;
  bool packed_ = false;  // the panels hold the centres as they are
  bool adds_up_ = false;
  SumsView added_;
};

}  // namespace

std::unique_ptr<KMeansBackend> make_kmeans_cpu(const KMeansProblem& problem, const KMeansPlan& plan,
                                               const DataSample& sample, const Resources& resources) {
  return std::make_unique<KMeansCpu>(problem, plan, sample, resources);
}

}  // namespace kith
