// k-means on a GPU: the steps of kmeans_backend.hpp. Labels, keys, sums and centres stay on the device; what the host
// sees in every pass is the objective, the centres' weights and how far they moved. It waits for these once: the
// centres are moved before anyone has asked for it, in another place, and again where sums have changed since.
//
// A piece of rows comes to the device, unless it lies or was kept there, and where all do not fit while the piece
// before it is worked on (cuda/rows_ahead.hpp); every row's nearest centre is found (centre_search_cuda.hpp), then the
// rows are added up by centre (centre_sums_cuda.hpp).
#include "cluster/candidate_draws_cuda.hpp"
#include "cluster/centre_means_cuda.hpp"
#include "cluster/centre_search_cuda.hpp"
#include "cluster/centre_sums_cuda.hpp"
#include "cluster/kmeans_backend.hpp"
#include "cluster/kmeans_workspace_cuda.hpp"
#include "cluster/row_lists_cuda.hpp"
#include "cluster/row_sample.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "cuda/rows_ahead.hpp"
#include "exact/prepared_base_cuda.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace kith {
namespace {

class KMeansCuda final : public KMeansBackend {
 public:
  KMeansCuda(const KMeansShape& shape, const KMeansWish& wish, const KMeansPlan& plan, DataSample sample,
             const Resources& resources)
      : shape_(shape),
        wish_(wish),
        plan_(plan),
        layout_(shape, wish, plan),
        resources_(resources),
        context_(std::make_shared<DeviceContext>(plan.device.index, resources.options().stream)),
        workspace_(layout_.bytes, "k-means", context_, resources),
        upload_(plan.cuda.pinned_bytes > 0, resources),
        search_(layout_.search_shape, plan.cuda.search, std::move(sample), at<std::byte>(layout_.search), context_,
                resources),
        host_weights_(static_cast<size_t>(shape.clusters)) {
    if (!plan.cuda.rows_ahead) return;
    ahead_ = std::make_unique<RowsAhead>(plan.device.index, upload_, resources);
    for (const int buffer : {0, 1}) ahead_->used(buffer, stream());  // the workspace is there in that stream's order
  }

  void set_rows(const KMeansRowArrays& rows) override {
    const DeviceGuard guard(context_->device());
    rows_ = rows;
    labelled_ = guesses_ = false;
    if (rows.weights != nullptr) context_->copy(at<float>(layout_.weights), rows.weights, rows.count * 4);
  }

  void set_centres(const MatrixView& centres) override {
    const DeviceGuard guard(context_->device());
    centre_count_ = centres.rows();
    context_->copy(centres_now(), centres.data(), centres.rows() * centres.cols() * 4);
    centres_ready_ = labelled_ = guesses_ = moved_ahead_ = false;
  }

  // Keys are written in every pass: the next one's guesses need them.
  void begin_pass(const KMeansPass& pass) override {
    const DeviceGuard guard(context_->device());
    adds_up_ = pass.adds_up;
    moved_ahead_ = false;
    if (pass.adds_up) {
      KITH_CUDA_CHECK(cudaMemsetAsync(at<double>(layout_.sums), 0, static_cast<size_t>(sums_bytes()), stream()));
    }
    if (!centres_ready_) search_.set_centres(centres_now(), centre_count_);
    centres_ready_ = true;
  }

  void scan(const MatrixView& rows, int64_t first, ProgressMeter& meter) override {
    const DeviceGuard guard(context_->device());
    if (rows.rows() == 0) return;
    work_on(arrive(rows, first, meter), first, meter);
    if (ahead_ != nullptr) ahead_->used(0, stream());
  }

  void scan_all(RowSource& source, int64_t piece_rows, ProgressMeter& meter) override {
    if (!rows_kept_ && ahead_ == nullptr) return KMeansBackend::scan_all(source, piece_rows, meter);
    const DeviceGuard guard(context_->device());
    for (int64_t first = 0; first < rows_.count; first += piece_rows) {
      const int64_t count = std::min(piece_rows, rows_.count - first);
      if (rows_kept_) {
        work_on(rows_at(place_of(first), count), first, meter);
      } else {
        work_on(arrive_ahead(source, first, piece_rows), first, meter);
        ahead_->used(turn_, stream());
      }
      meter.poll();
    }
  }

  bool plain_rows() const override { return search_.plain_rows(); }

  double objective() override {
    const DeviceGuard guard(context_->device());
    labelled_ = true;
    guesses_ = false;
    launch_block_objectives(at<float>(layout_.keys), weights_on_device(), rows_.count, at<double>(layout_.objectives),
                            stream());
    const int64_t blocks = divide_up(rows_.count, kSumBlock);
    if (adds_up_) launch_move(nullptr, centres_next());
    moved_ahead_ = adds_up_;
    // The weights, the moves and the objective's blocks follow each other.
    const std::byte* const first =
        adds_up_ ? reinterpret_cast<std::byte*>(weight_sums()) : at<std::byte>(layout_.objectives);
    const std::byte* const objectives = at<std::byte>(layout_.objectives);
    report_.resize(static_cast<size_t>((objectives - first) / 8 + blocks));
    context_->copy(report_.data(), first, static_cast<int64_t>(report_.size()) * 8);
    context_->synchronize();
    if (adds_up_) std::copy_n(report_.begin(), shape_.clusters, host_weights_.begin());
    double total = 0;
    for (size_t i = report_.size() - static_cast<size_t>(blocks); i < report_.size(); ++i) total += report_[i];
    return total;
  }

  const double* weights() override { return host_weights_.data(); }

  SumsView sums() override {
    const DeviceGuard guard(context_->device());
    if (host_sums_.size() == 0) {
      host_sums_ = HostArray<double>(shape_.clusters * (shape_.cols + 1), "the centres' sums", resources_);
    }
    context_->copy(host_sums_.data(), at<double>(layout_.sums), sums_bytes());
    context_->synchronize();
    return {host_sums_.data(), host_sums_.data() + shape_.clusters * shape_.cols};
  }
  void put_sums() override {
    const DeviceGuard guard(context_->device());
    context_->copy(at<double>(layout_.sums), host_sums_.data(), sums_bytes());
    context_->synchronize();
    moved_ahead_ = false;
  }

  double move_to_means(const MutableMatrixView&) override {
    const DeviceGuard guard(context_->device());
    const auto moves_place =
        static_cast<size_t>((at<std::byte>(layout_.moves) - reinterpret_cast<std::byte*>(weight_sums())) / 8);
    if (!moved_ahead_) {
      launch_move(nullptr, centres_next());
      report_.resize(moves_place + static_cast<size_t>(shape_.clusters));
      context_->copy(report_.data() + moves_place, at<double>(layout_.moves), shape_.clusters * 8);
      context_->synchronize();
    }
    turn_centres_ ^= 1;
    have_moved();
    double moves = 0;
    for (int64_t c = 0; c < shape_.clusters; ++c) moves += report_[moves_place + static_cast<size_t>(c)];
    return moves;
  }

  void move_by_batch(const MutableMatrixView&, double* counts) override {
    const DeviceGuard guard(context_->device());
    context_->copy(at<double>(layout_.counts), counts, shape_.clusters * 8);
    launch_move(at<double>(layout_.counts), centres_now());
    have_moved();
    context_->synchronize();
    for (int64_t c = 0; c < shape_.clusters; ++c) {
      if (host_weights_[static_cast<size_t>(c)] > 0) counts[c] += host_weights_[static_cast<size_t>(c)];
    }
  }

  void get_centres(const MutableMatrixView& centres) override {
    const DeviceGuard guard(context_->device());
    context_->copy(centres.data(), centres_now(), shape_.clusters * shape_.cols * 4);
    context_->synchronize();
  }

  void get_rows() override {
    const DeviceGuard guard(context_->device());
    context_->copy(rows_.keys, at<float>(layout_.keys), rows_.count * 4);
    get_labels();
  }
  void get_labels() override {
    const DeviceGuard guard(context_->device());
    context_->copy(rows_.labels, at<int32_t>(layout_.labels), rows_.count * 4);
    context_->synchronize();
  }

  void finish_on_device(int exponent) override {
    if (rows_.keys == nullptr) return;
    const DeviceGuard guard(context_->device());
    launch_distances_of_keys(rows_.keys, rows_.count, wish_.spherical, exponent, stream());
  }

  void get_counts(double* counts) override {
    if (rows_.weights != nullptr) return count_labels(rows_, shape_.clusters, counts);
    const DeviceGuard guard(context_->device());
    auto* const found = at<uint32_t>(layout_.counts);
    std::vector<uint32_t> whole(static_cast<size_t>(shape_.clusters));
    KITH_CUDA_CHECK(cudaMemsetAsync(found, 0, whole.size() * 4, stream()));
    launch_count_labels(at<int32_t>(layout_.labels), rows_.count, shape_.clusters, found, stream());
    context_->copy(whole.data(), found, shape_.clusters * 4);
    context_->synchronize();
    std::copy(whole.begin(), whole.end(), counts);
  }

  std::unique_ptr<CandidateDraws> make_draws(const KMeansRowArrays& rows, const Resources&) override {
    return std::make_unique<Draws>(*this, rows);
  }

  MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) override {
    const auto count = static_cast<int64_t>(rows.size());
    if (const std::optional<MatrixView> matrix = on_gpu(source)) {
      const DeviceGuard guard(context_->device());
      context_->copy(at<uint32_t>(layout_.gather_list), rows.data(), count * 4);
      launch_gather_rows(device_rows(*matrix), shape_.cols, at<uint32_t>(layout_.gather_list), count,
                         at<std::byte>(layout_.gathered), stream());
      context_->synchronize();  // the list may change
      return {at<std::byte>(layout_.gathered),
              shape_.dtype,
              {count, shape_.cols, shape_.cols},
              MemorySpace::cuda(context_->device())};
    }
    if (batch_.rows() == 0) {
      batch_ = MatrixBuffer(shape_.dtype, wish_.batch_rows, shape_.cols, "a mini-batch", resources_);
    }
    kith::gather(source, rows, batch_.mutable_view().slice(0, count), resources_);
    return batch_.view().slice(0, count);
  }

 private:
  // Candidates drawn where the rows' distances are.
  class Draws final : public CandidateDraws {
   public:
    Draws(const KMeansCuda& own, const KMeansRowArrays& rows) : own_(own), rows_(rows) {
      const DeviceGuard guard(own.context_->device());
      const KMeansWorkspace& layout = own.layout_;
      task_.tree = DrawTree(rows.count);
      task_.nearest = own.at<float>(layout.nearest);
      task_.owner = own.at<int32_t>(layout.owners);
      task_.sums = own.at<double>(layout.draw_sums);
      if (rows.weights != nullptr) {
        own.context_->copy(own.at<float>(layout.weights), rows.weights, rows.count * 4);
        task_.weights = own.at<float>(layout.weights);
      }
      launch_no_candidates(task_, own.stream());
    }

    void take_nearer(int64_t first, ProgressMeter&) override {
      const DeviceGuard guard(own_.context_->device());
      launch_take_nearer(task_, own_.keys(), own_.labels(), first, own_.stream());
    }

    double add_up(ProgressMeter&) override {
      const DeviceGuard guard(own_.context_->device());
      launch_add_up(task_, own_.stream());
      const int level = task_.tree.top();
      std::vector<double> top(static_cast<size_t>(task_.tree.sizes[level]));
      own_.context_->copy(top.data(), task_.sums + task_.tree.offsets[level], array_bytes<double>(std::ssize(top)));
      own_.context_->synchronize();
      return sum_children([&](int i) { return top[static_cast<size_t>(i)]; }, static_cast<int>(top.size()));
    }

    std::vector<uint32_t> draw(const std::vector<double>& shares) override {
      const DeviceGuard guard(own_.context_->device());
      const auto count = static_cast<int64_t>(shares.size());
      auto* const on_device = own_.at<uint32_t>(own_.layout_.drawn);
      own_.context_->copy(own_.at<double>(own_.layout_.shares), shares.data(), array_bytes<double>(count));
      launch_draw(task_, own_.at<double>(own_.layout_.shares), count, on_device, own_.stream());
      std::vector<uint32_t> drawn(shares.size());
      own_.context_->copy(drawn.data(), on_device, array_bytes<uint32_t>(count));
      own_.context_->synchronize();
      return drawn;
    }

    // Whole numbers are exact in any order; others are added up on the host.
    std::vector<float> weights(int64_t candidates) override {
      const DeviceGuard guard(own_.context_->device());
      if (rows_.weights == nullptr) {
        auto* const found = own_.at<uint32_t>(own_.layout_.candidate_rows);
        std::vector<uint32_t> counts(static_cast<size_t>(candidates));
        KITH_CUDA_CHECK(cudaMemsetAsync(found, 0, counts.size() * 4, own_.stream()));
        launch_count_labels(task_.owner, rows_.count, candidates, found, own_.stream());
        own_.context_->copy(counts.data(), found, array_bytes<uint32_t>(candidates));
        own_.context_->synchronize();
        return {counts.begin(), counts.end()};
      }
      own_.context_->copy(rows_.labels, task_.owner, rows_.count * 4);
      own_.context_->synchronize();
      std::vector<double> sums(static_cast<size_t>(candidates), 0.0);
      for (int64_t i = 0; i < rows_.count; ++i) {
        sums[static_cast<size_t>(rows_.labels[i])] += static_cast<double>(rows_.weights[i]);
      }
      return {sums.begin(), sums.end()};
    }

   private:
    const KMeansCuda& own_;
    const KMeansRowArrays rows_;
    DrawTask task_;
  };

  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(workspace_.data() + offset);
  }
  cudaStream_t stream() const { return context_->stream(); }
  // Where a pass writes to.
  int32_t* labels() const {
    return rows_.on_device && rows_.labels != nullptr ? rows_.labels : at<int32_t>(layout_.labels);
  }
  float* keys() const { return rows_.on_device && rows_.keys != nullptr ? rows_.keys : at<float>(layout_.keys); }

  float* centres_now() const { return at<float>(layout_.centres[turn_centres_]); }
  float* centres_next() const { return at<float>(layout_.centres[turn_centres_ ^ 1]); }
  int64_t sums_bytes() const { return array_bytes<double>(shape_.clusters * (shape_.cols + 1)); }
  double* weight_sums() const { return at<double>(layout_.sums) + shape_.clusters * shape_.cols; }
  const float* weights_on_device() const { return rows_.weights == nullptr ? nullptr : at<float>(layout_.weights); }

  // The room for rows `first` and those after it.
  std::byte* place_of(int64_t first) const {
    return at<std::byte>(layout_.rows) + (plan_.cuda.rows_stay ? first * shape_.row_bytes() : 0);
  }
  DeviceRowsView rows_at(const std::byte* place, int64_t count) const {
    return {place, shape_.dtype, shape_.cols, count, nullptr};
  }

  // Rows on the device: where they lie, or where they are brought.
  DeviceRowsView arrive(const MatrixView& rows, int64_t first, ProgressMeter& meter) {
    check_on_device(rows, "data", context_->device());
    if (lies_on(rows, context_->device())) return device_rows(rows);
    if (coming_ != kNothing) ahead_->await(turn_ ^ 1, stream());  // not this one, and not wanted any more
    coming_ = kNothing;
    upload_.copy(rows, place_of(first), stream(), meter);
    return rows_at(place_of(first), rows.rows());
  }

  // The piece that was begun before, while the next one is begun: after the last piece the first again, since a pass
  // that adds up is mostly followed by another. Of a file only what the pass needs: others may fetch between passes.
  DeviceRowsView arrive_ahead(RowSource& source, int64_t first, int64_t piece_rows) {
    const auto begin = [&](int buffer, int64_t row) {
      const int64_t count = std::min(piece_rows, rows_.count - row);
      coming_ = row;
      ahead_->begin(
          buffer, [&source, row, count] { return source.fetch(row, count); }, ahead_place(buffer));
    };
    if (coming_ != first) begin(turn_ ^ 1, first);
    turn_ ^= 1;
    coming_ = kNothing;
    ahead_->await(turn_, stream());
    const int64_t next = first + piece_rows;
    if (next < rows_.count) {
      begin(turn_ ^ 1, next);
    } else if (shape_.in_memory && adds_up_) {
      begin(turn_ ^ 1, 0);
    }
    return rows_at(ahead_place(turn_), std::min(piece_rows, rows_.count - first));
  }
  std::byte* ahead_place(int buffer) const { return at<std::byte>(buffer == 0 ? layout_.rows : layout_.rows_ahead); }

  void work_on(const DeviceRowsView& piece, int64_t first, ProgressMeter& meter) {
    CentreSearchTask task;
    task.rows = piece;
    task.first = first;
    task.number = rows_.first + first;
    task.operands_kept = operands_kept_;
    task.check_finite = plan_.cuda.checks_finite && !checked_;
    task.labels = labels() + first;
    task.keys = keys() + first;
    task.wants_keys = !keys_with_sums() && !(rows_.on_device && rows_.keys == nullptr);
    if (guesses_) task.squared_moves = at<double>(layout_.moves);
    if (rows_.on_device && piece.count == shape_.rows) task.probe = last_sampled_row(shape_.rows);
    search_.run(task, meter);
    if (adds_up_) add(piece, first);
    if (first + piece.count == rows_.count) {  // the same rows come in the next pass
      rows_kept_ = plan_.cuda.rows_stay;
      operands_kept_ = plan_.cuda.operands_stay;
      checked_ = can_stay();
    }
    meter.add(piece.count);
  }

  // Keys come with the sums, for which every row is read: unless rows are so wide, and so few, that the sixteen threads
  // of each run would leave the machine idle.
  bool keys_with_sums() const {
    constexpr int64_t kWideCols = 512;
    constexpr int64_t kFewRuns = 8192;
    const int64_t runs = divide_up(rows_.count, sum_block(shape_.clusters)) * shape_.clusters;
    return adds_up_ && plan_.cuda.search.products && !plan_.cuda.lists_rows && !wish_.spherical &&
           rows_.weights == nullptr && shape_.cols <= kMostKeyCols && (shape_.cols <= kWideCols || runs >= kFewRuns);
  }

  void add(const DeviceRowsView& rows, int64_t first) const {
    SumsTask task;
    task.rows = rows;
    task.cols = shape_.cols;
    task.clusters = shape_.clusters;
    task.first = first;
    task.last = first + rows.count == rows_.count;
    task.labels = at<int32_t>(layout_.labels) + first;
    task.weights = rows_.weights == nullptr ? nullptr : at<float>(layout_.weights) + first;
    for (int i = 0; i < 2; ++i) {
      task.runs.keys[i] = at<uint32_t>(layout_.sort_keys[i]);
      task.runs.rows[i] = at<uint32_t>(layout_.sort_rows[i]);
    }
    task.runs.sort = at<std::byte>(layout_.sort);
    task.runs.sort_bytes = layout_.sort_bytes;
    task.runs.starts = at<uint32_t>(layout_.run_starts);
    task.runs.sums = at<double>(layout_.run_sums);
    task.runs.weights = at<double>(layout_.run_weights);
    task.sums = {at<double>(layout_.sums), at<double>(layout_.open_sums)};
    if (keys_with_sums()) {
      task.keys = at<float>(layout_.keys) + first;
      task.centres = centres_now();
    }
    if (plan_.cuda.lists_rows) return launch_add_few(task, plan_.cuda.search.multiprocessors, stream());
    launch_add_rows(task, stream());
  }

  void launch_move(const double* counts, float* moved) const {
    launch_move_centres({at<double>(layout_.sums), weight_sums(), counts, centres_now(), moved,
                         at<double>(layout_.moves), shape_.clusters, shape_.cols, wish_.spherical},
                        stream());
  }
  void have_moved() {
    centres_ready_ = moved_ahead_ = false;
    guesses_ = labelled_;
    labelled_ = false;
  }
  // Whether the same rows come in every pass.
  bool can_stay() const { return wish_.moves_centres && wish_.batch_rows == 0; }

  const KMeansShape shape_;
  const KMeansWish wish_;
  const KMeansPlan plan_;
  const KMeansWorkspace layout_;
  const Resources resources_;
  std::shared_ptr<const DeviceContext> context_;
  DeviceBuffer workspace_;
  RowUpload upload_;
  CentreSearchCuda search_;
  KMeansRowArrays rows_;
  int64_t centre_count_ = 0;
  MatrixBuffer batch_;  // rows of a mini-batch, gathered from the host
  HostArray<double> host_sums_;
  std::vector<double> host_weights_;
  std::vector<double> report_;  // of a pass: the centres' weights and moves, the objective's blocks
  int turn_centres_ = 0;        // where the centres are
  bool moved_ahead_ = false;    // where they will be is known
  bool adds_up_ = false;
  bool checked_ = false;        // all rows were found to be finite
  bool centres_ready_ = false;  // for the search
  bool labelled_ = false;       // labels and keys are those of the centres as they are
  bool guesses_ = false;        // labels and keys are those before the centres' last move
  bool rows_kept_ = false;      // on the device, and their operands
  bool operands_kept_ = false;
  static constexpr int64_t kNothing = -1;
  int64_t coming_ = kNothing;         // the first row of the piece that comes ahead
  int turn_ = 1;                      // the buffer of the piece that is worked on
  std::unique_ptr<RowsAhead> ahead_;  // ends first: it uses the others
};

}  // namespace

std::unique_ptr<KMeansBackend> make_kmeans_cuda(const KMeansShape& shape, const KMeansWish& wish,
                                                const KMeansPlan& plan, const DataSample& sample,
                                                const Resources& resources) {
  const DeviceGuard guard(plan.device.index);
  return std::make_unique<KMeansCuda>(shape, wish, plan, sample, resources);
}

}  // namespace kith
