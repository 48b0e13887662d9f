// k-means on the CPU: rows are assigned in parallel, block by block, and added up in parallel, centre by centre.
#include "cluster/centre_means.hpp"
#include "cluster/kmeans_backend.hpp"
#include "cluster/kmeans_run.hpp"
#include "cluster/nearest_centre.hpp"
#include "cluster/row_sample.hpp"
#include "core/divide.hpp"

#include <algorithm>
#include <deque>
#include <optional>

namespace kith {
namespace {

class KMeansCpu final : public KMeansBackend {
 public:
  KMeansCpu(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan, DataSample sample,
            const Resources& resources)
      : resources_(resources),
        spherical_(wish.spherical),
        block_(NearestCentre::block_rows(plan.cpu.format, shape.cols)),
        packed_centres_(wish.kind(), plan.cpu.format, std::move(sample.origin), shape.clusters, resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      nearest_.emplace_back(wish.kind(), plan.cpu.format, shape.cols, resources);
    }
    if (wish.moves_centres) {
      sums_.emplace(shape.clusters, shape.cols, std::max(plan.piece_rows, wish.batch_rows), resources);
      batch_ = MatrixBuffer(shape.dtype, wish.batch_rows, shape.cols, "a mini-batch", resources);
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
    if (adds_up) sums_->clear();
  }

  void scan(const MatrixView& rows, int64_t first_row, ProgressMeter& meter) override {
    int32_t* const labels = rows_.labels + first_row;
    float* const keys = rows_.keys + first_row;
    if (!packed_) packed_centres_.pack(centres_, {}, meter, resources_);
    packed_ = true;
    parallel_for(divide_up(rows.rows(), block_), meter, resources_, [&](int64_t task, int slot) {
      const int64_t first = task * block_;
      const int64_t count = std::min(block_, rows.rows() - first);
      nearest_[static_cast<size_t>(slot)].assign(packed_centres_, centres_, rows.slice(first, count), labels + first,
                                                 keys + first);
      meter.add(count);
    });
    if (!adds_up_) return;
    const float* const weights = rows_.weights == nullptr ? nullptr : rows_.weights + first_row;
    sums_->add(rows, first_row, labels, weights, meter, resources_);
  }

  double objective() override {
    if (adds_up_) added_ = sums_->finish();
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
  void get_counts(double* counts) override { count_labels(rows_, centres_.rows(), counts); }

  MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) override {
    const MutableMatrixView out = batch_.mutable_view().slice(0, static_cast<int64_t>(rows.size()));
    kith::gather(source, rows, out, resources_);
    return out;
  }

 private:
  const Resources resources_;
  const bool spherical_;
  const int64_t block_;  // rows of a task
  PackedRows packed_centres_;
  std::deque<NearestCentre> nearest_;  // one for each thread
  std::optional<CentreSums> sums_;     // none where rows are only assigned
  MatrixBuffer batch_;                 // rows gathered for mini-batches
  KMeansRowArrays rows_;
  MatrixView centres_;
  bool packed_ = false;  // the centres as they are
  bool adds_up_ = false;
  SumsView added_;
};

}  // namespace

std::unique_ptr<KMeansBackend> make_kmeans_cpu(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan,
                                               const DataSample& sample, const Resources& resources) {
  return std::make_unique<KMeansCpu>(shape, wish, plan, sample, resources);
}

}  // namespace kith
