// k-means on the CPU: rows are assigned in parallel (assign_cpu.hpp) and added up (centre_sums.hpp), for few centres in
// one pass.
#include <kith/error.hpp>

#include "cluster/data/kmeans_checks.hpp"
#include "cluster/draw/draw_tree.hpp"
#include "cluster/steps/centre_means.hpp"
#include "cluster/steps/kmeans_backend.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/dispatch.hpp"
#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "core/typed_row.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

namespace kith {
namespace {

constexpr int64_t kRowsPerDrawTask = 8192;

class DrawsOnHost final : public CandidateDraws {
 public:
  DrawsOnHost(const KMeansRowArrays& rows, const Resources& resources)
      : rows_(rows),
        resources_(resources),
        nearest_(rows.count, "drawing candidates", resources),
        owner_(rows.count, "drawing candidates", resources),
        steps_{nearest_.data(), rows.weights},
        tree_(rows.count),
        sums_(static_cast<size_t>(tree_.size)) {
    std::fill(nearest_.begin(), nearest_.end(), INFINITY);
    std::fill(owner_.begin(), owner_.end(), 0);
  }

  void take_nearer(int64_t first, ProgressMeter& meter) override {
    parallel_for(divide_up(rows_.count, kRowsPerDrawTask), meter, resources_, [&](int64_t task, int) {
      for (int64_t i = task * kRowsPerDrawTask; i < std::min((task + 1) * kRowsPerDrawTask, rows_.count); ++i) {
        if (!(rows_.keys[i] < nearest_[i])) continue;
        nearest_[i] = rows_.keys[i];
        owner_[i] = static_cast<int32_t>(first) + rows_.labels[i];
      }
    });
  }

  double add_up(ProgressMeter& meter) override {
    constexpr int64_t kBlocks = 64;  // of a task
    parallel_for(divide_up(tree_.blocks(), kBlocks), meter, resources_, [&](int64_t task, int) {
      const int64_t end = std::min((task + 1) * kBlocks, tree_.blocks());
      for (int64_t b = task * kBlocks; b < end; ++b) sums_[static_cast<size_t>(b)] = steps_.block(tree_, b);
    });
    add_up_tree(tree_, sums_.data());
    return tree_total(tree_, sums_.data());
  }

  std::vector<uint32_t> draw(const std::vector<double>& shares) override {
    std::vector<uint32_t> drawn;
    drawn.reserve(shares.size());
    for (const double share : shares) drawn.push_back(draw_by_share(tree_, sums_.data(), steps_, share));
    return drawn;
  }

  std::vector<float> weights(int64_t candidates) override {
    std::vector<double> sums(static_cast<size_t>(candidates));
    count_labels({rows_.count, owner_.data(), nullptr, rows_.weights}, candidates, sums.data());
    return {sums.begin(), sums.end()};
  }

 private:
  const KMeansRowArrays rows_;
  const Resources& resources_;
  const HostArray<float> nearest_;  // each row's squared distance to the nearest candidate
  const HostArray<int32_t> owner_;  // which one
  const DrawSteps steps_;
  const DrawTree tree_;
  std::vector<double> sums_;  // the tree's: 8 bytes for each 1,024 rows
};

class KMeansCpu final : public KMeansBackend {
 public:
  KMeansCpu(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan, DataSample sample,
            const Resources& resources)
      : resources_(resources),
        kind_(request.kind()),
        spherical_(request.spherical),
        checks_finite_(plan.checks_finite),
        assigner_(request.kind(), plan.format, std::move(sample.origin), shape.clusters, resources) {
    if (!request.moves_centres) return;
    batch_ = MatrixBuffer(shape.dtype, request.batch_rows, shape.cols, "a mini-batch", resources);
    sums_.emplace(shape.clusters, shape.cols, std::max(plan.piece_rows, request.batch_rows), resources);
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
    if (pass.adds_up) sums_->clear();
  }

  void scan(const MatrixView& rows, int64_t first_row, ProgressMeter& meter) override {
    int32_t* const labels = rows_.labels + first_row;
    const float* const weights = rows_.weights == nullptr ? nullptr : rows_.weights + first_row;
    if (scores_labels(rows)) return score_labels(rows, first_row, meter);
    if (!packed_) assigner_.set(centres_, meter, resources_);
    packed_ = true;
    float* const keys = rows_.keys == nullptr || !pass_.scores ? nullptr : rows_.keys + first_row;
    if (pass_.adds_up) return sums_->add(assigner_, rows, first_row, labels, keys, weights, meter, resources_);
    std::atomic<bool> finite = true;
    for_blocks(rows, meter, [&](int64_t first, int64_t count, int slot) {
      float* const some = keys == nullptr ? nullptr : keys + first;
      if (!assigner_.assign(rows.slice(first, count), labels + first, some, slot)) finite = false;
      meter.add(count);
    });
    if (checks_finite_ && !finite) check_rows_finite(rows, rows_.first + first_row, resources_);
  }

  double objective() override {
    if (pass_.adds_up) added_ = sums_->finish();
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

  std::unique_ptr<CandidateDraws> make_draws(const KMeansRowArrays& rows, const Resources& resources) override {
    return make_draws_on_host(rows, resources);
  }

  MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) override {
    const MutableMatrixView out = batch_.mutable_view().slice(0, static_cast<int64_t>(rows.size()));
    kith::gather(source, rows, out, resources_);
    return out;
  }

 private:
  // Products of a row with all centres, from which on computing its single key is faster than another pass.
  static constexpr int64_t kScoredAloneFrom = 8192;

  bool scores_labels(const MatrixView& rows) const {
    return pass_.labels_known && !pass_.adds_up && rows.dtype() == DType::f32 && rows_.keys != nullptr &&
           centres_.rows() * centres_.cols() >= kScoredAloneFrom;
  }
  void score_labels(const MatrixView& rows, int64_t first_row, ProgressMeter& meter) const {
    for_blocks(rows, meter, [&](int64_t first, int64_t count, int) {
      for (int64_t i = first; i < first + count; ++i) {
        const auto label = static_cast<uint32_t>(rows_.labels[first_row + i]);
        float key;
        canonical_keys_cpu(kind_, {typed_row<float>(rows, i)}, centres_, &label, 1, &key);
        rows_.keys[first_row + i] = key_of_ordered(ordered_key(key));
      }
      meter.add(count);
    });
  }
  // Calls body(first row, count, slot) for rows that are best given together.
  template <typename Body>
  void for_blocks(const MatrixView& rows, ProgressMeter& meter, const Body& body) const {
    const int64_t block = assigner_.block_rows();
    parallel_for(divide_up(rows.rows(), block), meter, resources_, [&](int64_t task, int slot) {
      body(task * block, std::min(block, rows.rows() - task * block), slot);
    });
  }

  const Resources resources_;
  const KeyKind kind_;
  const bool spherical_;
  const bool checks_finite_;
  CentreAssigner assigner_;
  std::optional<CentreSums> sums_;  // none where rows are only assigned
  MatrixBuffer batch_;              // rows gathered for mini-batches
  KMeansRowArrays rows_;
  MatrixView centres_;
  bool packed_ = false;  // the centres as they are
  KMeansPass pass_;
  SumsView added_;
};

}  // namespace

std::unique_ptr<CandidateDraws> make_draws_on_host(const KMeansRowArrays& rows, const Resources& resources) {
  return std::make_unique<DrawsOnHost>(rows, resources);
}

std::unique_ptr<KMeansBackend> make_kmeans_cpu(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan,
                                               const DataSample& sample, const Resources& resources) {
  return std::make_unique<KMeansCpu>(shape, request, plan, sample, resources);
}

// Defaults of backends, and the choice of a backend.
void KMeansBackend::scan_all(RowSource& source, int64_t piece_rows, ProgressMeter& meter) {
  for (int64_t first = 0; first < source.rows(); first += piece_rows) {
    scan(source.fetch(first, std::min(piece_rows, source.rows() - first)), first, meter);
    meter.poll();
  }
}

void KMeansBackend::finish_on_device(int) { throw InvalidState("this backend has no device memory to write to"); }

void count_labels(const KMeansRowArrays& rows, int64_t clusters, double* counts) {
  std::fill_n(counts, clusters, 0.0);
  for (int64_t i = 0; i < rows.count; ++i) {
    counts[rows.labels[i]] += rows.weights == nullptr ? 1.0 : static_cast<double>(rows.weights[i]);
  }
}

std::unique_ptr<KMeansBackend> make_kmeans_backend(const KMeansShape& shape, const KMeansRequest& request,
                                                   const KMeansPlan& plan, const DataSample& sample,
                                                   const Resources& resources) {
  return dispatch(
      plan.device(), [&] { return make_kmeans_cpu(shape, request, plan, sample, resources); },
      [&](int) { return make_kmeans_cuda(shape, request, plan, sample, resources); });
}

}  // namespace kith
