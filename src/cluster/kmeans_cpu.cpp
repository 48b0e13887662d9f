// k-means on the CPU: rows are assigned in parallel, block by block, and added up in parallel, centre by centre. Few
// centres have a way of their own, one pass that assigns and adds up (nearest_of_few_cpu.hpp, few_centre_sums.hpp).
#include "cluster/centre_means.hpp"
#include "cluster/few_centre_sums.hpp"
#include "cluster/kmeans_backend.hpp"
#include "cluster/kmeans_checks.hpp"
#include "cluster/kmeans_run.hpp"
#include "cluster/nearest_centre.hpp"
#include "cluster/row_sample.hpp"
#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "core/typed_row.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/nearest_of_few_cpu.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>

namespace kith {
namespace {

class KMeansCpu final : public KMeansBackend {
 public:
  KMeansCpu(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan, DataSample sample,
            const Resources& resources)
      : resources_(resources),
        kind_(wish.kind()),
        spherical_(wish.spherical),
        checks_finite_(plan.cpu.checks_finite),
        block_(plan.cpu.few ? kFewBlock : NearestCentre::block_rows(plan.cpu.format, shape.cols)) {
    if (wish.moves_centres) {
      batch_ = MatrixBuffer(shape.dtype, wish.batch_rows, shape.cols, "a mini-batch", resources);
    }
    if (plan.cpu.few) {
      few_.emplace(wish.kind(), std::move(sample.origin), shape.clusters, resources);
      scratch_floats_ = FewRows::scratch_floats(shape.cols);
      scratch_ = HostArray<float>(resources.threads() * scratch_floats_, "a block of rows", resources);
      if (wish.moves_centres) few_sums_.emplace(shape.clusters, shape.cols, resources);
      return;
    }
    packed_centres_.emplace(wish.kind(), plan.cpu.format, std::move(sample.origin), shape.clusters, resources);
    for (int slot = 0; slot < resources.threads(); ++slot) {
      nearest_.emplace_back(wish.kind(), plan.cpu.format, shape.cols, resources);
    }
    if (wish.moves_centres) {
      sums_.emplace(shape.clusters, shape.cols, std::max(plan.piece_rows, wish.batch_rows), resources);
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

  void begin_pass(const KMeansPass& pass) override {
    pass_ = pass;
    if (!pass.adds_up) return;
    few_ ? few_sums_->clear() : sums_->clear();
  }

  void scan(const MatrixView& rows, int64_t first_row, ProgressMeter& meter) override {
    int32_t* const labels = rows_.labels + first_row;
    const float* const weights = rows_.weights == nullptr ? nullptr : rows_.weights + first_row;
    if (scores_labels(rows)) return score_labels(rows, first_row, meter);
    if (!packed_) pack(meter);
    std::atomic<bool> finite = true;
    const auto assign = [&](int64_t first, int64_t count, int slot) {
      float* const keys = rows_.keys == nullptr || !pass_.scores ? nullptr : rows_.keys + first_row + first;
      if (few_) {
        float* const scratch = scratch_.data() + slot * scratch_floats_;
        if (!few_->nearest(rows.slice(first, count), labels + first, keys, scratch)) finite = false;
      } else {
        nearest_[static_cast<size_t>(slot)].assign(*packed_centres_, centres_, rows.slice(first, count), labels + first,
                                                   keys);
      }
      meter.add(count);
    };
    if (few_ && pass_.adds_up) return few_sums_->add(rows, first_row, labels, weights, assign, meter, resources_);
    parallel_for(divide_up(rows.rows(), block_), meter, resources_, [&](int64_t task, int slot) {
      assign(task * block_, std::min(block_, rows.rows() - task * block_), slot);
    });
    if (checks_finite_ && !finite) check_rows_finite(rows, rows_.first + first_row, meter, resources_);
    if (pass_.adds_up) sums_->add(rows, first_row, labels, weights, meter, resources_);
  }

  double objective() override {
    if (pass_.adds_up) added_ = few_ ? few_sums_->finish() : sums_->finish();
    return pass_.scores ? objective_of(rows_.keys, rows_.weights, rows_.count) : 0.0;
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
  void get_labels() override {}
  void get_counts(double* counts) override { count_labels(rows_, centres_.rows(), counts); }

  MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) override {
    const MutableMatrixView out = batch_.mutable_view().slice(0, static_cast<int64_t>(rows.size()));
    kith::gather(source, rows, out, resources_);
    return out;
  }

 private:
  static constexpr int64_t kFewBlock = 1024;
  // Products of a row with all centres from which on its one key is found sooner than by another pass.
  static constexpr int64_t kScoredAloneFrom = 8192;

  bool scores_labels(const MatrixView& rows) const {
    return pass_.labels_known && !pass_.adds_up && rows.dtype() == DType::f32 && rows_.keys != nullptr &&
           centres_.rows() * centres_.cols() >= kScoredAloneFrom;
  }
  void score_labels(const MatrixView& rows, int64_t first_row, ProgressMeter& meter) const {
    parallel_for(divide_up(rows.rows(), block_), meter, resources_, [&](int64_t task, int) {
      const int64_t end = std::min((task + 1) * block_, rows.rows());
      for (int64_t i = task * block_; i < end; ++i) {
        const auto label = static_cast<uint32_t>(rows_.labels[first_row + i]);
        float key;
        canonical_keys_cpu(kind_, {typed_row<float>(rows, i)}, centres_, &label, 1, &key);
        rows_.keys[first_row + i] = key_of_ordered(ordered_key(key));
      }
      meter.add(end - task * block_);
    });
  }

  void pack(ProgressMeter& meter) {
    few_ ? few_->set(centres_) : packed_centres_->pack(centres_, {}, meter, resources_);
    packed_ = true;
  }

  const Resources resources_;
  const KeyKind kind_;
  const bool spherical_;
  const bool checks_finite_;
  const int64_t block_;  // rows of a task
  // Either few centres,
  std::optional<FewRows> few_;
  std::optional<FewCentreSums> few_sums_;  // none where rows are only assigned
  int64_t scratch_floats_ = 0;
  HostArray<float> scratch_;  // of all threads
  // or many.
  std::optional<PackedRows> packed_centres_;
  std::deque<NearestCentre> nearest_;  // one for each thread
  std::optional<CentreSums> sums_;     // none where rows are only assigned
  MatrixBuffer batch_;                 // rows gathered for mini-batches
  KMeansRowArrays rows_;
  MatrixView centres_;
  bool packed_ = false;  // the centres as they are
  KMeansPass pass_;
  SumsView added_;
};

}  // namespace

std::unique_ptr<KMeansBackend> make_kmeans_cpu(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan,
                                               const DataSample& sample, const Resources& resources) {
  return std::make_unique<KMeansCpu>(shape, wish, plan, sample, resources);
}

}  // namespace kith
