// k-means on a GPU: the steps of kmeans_backend.hpp. Labels, keys, sums and centres stay on the device; in every pass
// the host sees only the objective, the centres' weights and how far they moved. It waits for these once: the centres
// are moved ahead of the request, into a second array, and moved again if the host changes sums.
//
// A piece of rows is copied to the device unless it is there already; if not all rows fit, it is copied while the piece
// before it is processed (cuda/rows_ahead.hpp). Then every row's nearest centre is found (centre_search_cuda.hpp), and
// the rows are added up by centre (centre_sums_cuda.hpp).
#include "cluster/search/centre_search_cuda.hpp"
#include "cluster/steps/kmeans_backend.hpp"
#include "cluster/steps/kmeans_steps_cuda.hpp"
#include "cluster/steps/kmeans_workspace_cuda.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "cuda/rows_ahead.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "kernels/assign/centre_sums_cuda.hpp"
#include "rows/gather_rows_cuda.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace kith {
namespace {

class KMeansCuda final : public KMeansBackend, private SumsInTurn {
 public:
  KMeansCuda(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan, DataSample sample,
             const Resources& resources)
      : shape_(shape),
        request_(request),
        cuda_(*plan.cuda()),
        checks_finite_(plan.checks_finite),
        layout_(shape, request, plan),
        resources_(resources),
        context_(std::make_shared<DeviceContext>(cuda_.device.index, resources.options().stream)),
        workspace_(layout_.bytes, "k-means", context_, resources),
        upload_(cuda_.pinned_bytes > 0, resources),
        search_(layout_.search_shape, cuda_.search, std::move(sample), at(layout_.search), context_, resources),
        host_weights_(static_cast<size_t>(shape.clusters)) {
    if (!cuda_.rows_ahead) return;
    ahead_ = std::make_unique<RowsAhead>(cuda_.device.index, upload_, resources);
    for (const int buffer : {0, 1}) ahead_->used(buffer, stream());  // the workspace is there in that stream's order
  }

  void set_rows(const KMeansRowArrays& rows) override {
    const DeviceGuard guard(context_->device());
    rows_ = rows;
    labelled_ = guesses_ = false;
    if (rows.weights != nullptr) context_->copy_values(at(layout_.weights), rows.weights, rows.count);
  }

  void set_centres(const MatrixView& centres) override {
    const DeviceGuard guard(context_->device());
    centre_count_ = centres.rows();
    context_->copy(centres_now(), centres.data(), array_bytes<float>(centres.rows() * centres.cols()));
    centres_ready_ = labelled_ = guesses_ = moved_ahead_ = false;
  }

  // Keys are written in every pass, since the next pass uses them as guesses.
  void begin_pass(const KMeansPass& pass) override {
    const DeviceGuard guard(context_->device());
    adds_up_ = pass.adds_up;
    adds_in_turn_ = pass.adds_in_turn;
    only_nearer_ = pass.only_nearer;
    moved_ahead_ = false;
    if (pass.adds_up) context_->fill(at(layout_.sums), 0, layout_.sums.count);
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
    if (rows_.count > 0) {
      launch_block_objectives(at(layout_.keys), weights_on_device(), rows_.count, at(layout_.objectives), stream());
    }
    const int64_t blocks = divide_up(rows_.count, kSumBlock);
    if (adds_up_) launch_move(nullptr, centres_next());
    moved_ahead_ = adds_up_;
    // The weights, the moves and the objective's blocks follow each other.
    const double* const first = adds_up_ ? weight_sums() : at(layout_.objectives);
    report_.resize(static_cast<size_t>(at(layout_.objectives) - first + blocks));
    context_->copy_values(report_.data(), first, std::ssize(report_));
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
      host_sums_ = HostArray<double>(layout_.sums.count, "the centres' sums", resources_);
    }
    context_->copy_values(host_sums_.data(), at(layout_.sums), layout_.sums.count);
    context_->synchronize();
    return {host_sums_.data(), host_sums_.data() + shape_.clusters * shape_.cols};
  }
  void put_sums() override {
    const DeviceGuard guard(context_->device());
    context_->copy_values(at(layout_.sums), host_sums_.data(), layout_.sums.count);
    context_->synchronize();
    moved_ahead_ = false;
  }

  double move_to_means(const MutableMatrixView&) override {
    const DeviceGuard guard(context_->device());
    const auto moves_place = static_cast<size_t>(at(layout_.moves) - weight_sums());
    if (!moved_ahead_) {
      launch_move(nullptr, centres_next());
      report_.resize(moves_place + static_cast<size_t>(shape_.clusters));
      context_->copy_values(report_.data() + moves_place, at(layout_.moves), shape_.clusters);
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
    context_->copy_values(at(layout_.counts), counts, shape_.clusters);
    launch_move(at(layout_.counts), centres_now());
    have_moved();
    context_->synchronize();
    for (int64_t c = 0; c < shape_.clusters; ++c) {
      if (host_weights_[static_cast<size_t>(c)] > 0) counts[c] += host_weights_[static_cast<size_t>(c)];
    }
  }

  void get_centres(const MutableMatrixView& centres) override {
    const DeviceGuard guard(context_->device());
    context_->copy(centres.data(), centres_now(), layout_.centres[0].bytes());
    context_->synchronize();
  }

  void get_rows() override {
    const DeviceGuard guard(context_->device());
    context_->copy_values(rows_.keys, at(layout_.keys), rows_.count);
    get_labels();
  }
  void get_labels() override {
    const DeviceGuard guard(context_->device());
    context_->copy_values(rows_.labels, at(layout_.labels), rows_.count);
    context_->synchronize();
  }

  void finish_on_device(int exponent) override {
    if (rows_.keys == nullptr) return;
    const DeviceGuard guard(context_->device());
    launch_distances_of_keys(rows_.keys, rows_.count, request_.spherical, exponent, stream());
  }

  void get_counts(double* counts) override {
    if (rows_.weights != nullptr) return count_labels(rows_, shape_.clusters, counts);
    const DeviceGuard guard(context_->device());
    uint32_t* const found = at(layout_.run_starts);  // whose work is done
    std::vector<uint32_t> whole(static_cast<size_t>(shape_.clusters));
    context_->fill(found, 0, shape_.clusters);
    launch_count_labels(at(layout_.labels), rows_.count, shape_.clusters, found, stream());
    context_->copy_values(whole.data(), found, shape_.clusters);
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
      context_->copy_values(at(layout_.gather_list), rows.data(), count);
      launch_gather_rows(device_rows(*matrix), shape_.cols, at(layout_.gather_list), count, at(layout_.gathered),
                         stream());
      context_->synchronize();  // the list may change
      return {
          at(layout_.gathered), shape_.dtype, {count, shape_.cols, shape_.cols}, MemorySpace::cuda(context_->device())};
    }
    if (batch_.rows() == 0) {
      batch_ = MatrixBuffer(shape_.dtype, request_.batch_rows, shape_.cols, "a mini-batch", resources_);
    }
    kith::gather(source, rows, batch_.mutable_view().slice(0, count), resources_);
    return batch_.view().slice(0, count);
  }

  SumsInTurn* sums_in_turn() override { return this; }

 private:
  int device() const override { return context_->device(); }
  void* work_stream() const override { return stream(); }
  int64_t size() const override { return layout_.sums.count; }
  double* totals() override { return at(layout_.sums); }
  double* open_block() override { return at(layout_.open_sums); }

  void add_labelled(RowSource* source, int64_t piece_rows, int64_t first_row, bool last,
                    ProgressMeter& meter) override {
    const DeviceGuard guard(context_->device());
    for (int64_t first = 0; first < rows_.count; first += piece_rows) {
      const int64_t count = std::min(piece_rows, rows_.count - first);
      const bool ends = last && first + count == rows_.count;
      if (rows_kept_) {
        add(rows_at(place_of(first), count), first, first_row + first, ends);
      } else if (count == rows_.count) {
        add(last_piece_, first, first_row, ends);
      } else {
        add(arrive(source->fetch(first, count), first, meter), first, first_row + first, ends);
        if (ahead_ != nullptr) ahead_->used(0, stream());
      }
    }
    context_->synchronize();
  }

  std::vector<double> objective_blocks() const override {
    return {report_.end() - divide_up(rows_.count, kSumBlock), report_.end()};
  }

  // Draws candidates on the device that has the rows' distances.
  class Draws final : public CandidateDraws {
   public:
    Draws(const KMeansCuda& own, const KMeansRowArrays& rows) : own_(own), rows_(rows) {
      const DeviceGuard guard(own.context_->device());
      const KMeansWorkspace& layout = own.layout_;
      task_.tree = DrawTree(rows.count);
      task_.nearest = own.at(layout.nearest);
      task_.owner = own.at(layout.owners);
      task_.sums = own.at(layout.draw_sums);
      if (rows.weights != nullptr) {
        own.context_->copy_values(own.at(layout.weights), rows.weights, rows.count);
        task_.weights = own.at(layout.weights);
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
      own_.context_->copy_values(top.data(), task_.sums + task_.tree.offsets[level], std::ssize(top));
      own_.context_->synchronize();
      return sum_children([&](int i) { return top[static_cast<size_t>(i)]; }, static_cast<int>(top.size()));
    }

    std::vector<uint32_t> draw(const std::vector<double>& shares) override {
      const DeviceGuard guard(own_.context_->device());
      const auto count = static_cast<int64_t>(shares.size());
      auto* const on_device = own_.at(own_.layout_.drawn);
      own_.context_->copy_values(own_.at(own_.layout_.shares), shares.data(), count);
      launch_draw(task_, own_.at(own_.layout_.shares), count, on_device, own_.stream());
      std::vector<uint32_t> drawn(shares.size());
      own_.context_->copy_values(drawn.data(), on_device, count);
      own_.context_->synchronize();
      return drawn;
    }

    // Whole numbers are exact in any order; others are added up on the host.
    std::vector<float> weights(int64_t candidates) override {
      const DeviceGuard guard(own_.context_->device());
      if (rows_.weights == nullptr) {
        auto* const found = own_.at(own_.layout_.candidate_rows);
        std::vector<uint32_t> counts(static_cast<size_t>(candidates));
        own_.context_->fill(found, 0, candidates);
        launch_count_labels(task_.owner, rows_.count, candidates, found, own_.stream());
        own_.context_->copy_values(counts.data(), found, candidates);
        own_.context_->synchronize();
        return {counts.begin(), counts.end()};
      }
      own_.context_->copy_values(rows_.labels, task_.owner, rows_.count);
      own_.context_->synchronize();
      std::vector<double> sums(static_cast<size_t>(candidates));
      count_labels(rows_, candidates, sums.data());
      return {sums.begin(), sums.end()};
    }

   private:
    const KMeansCuda& own_;
    const KMeansRowArrays rows_;
    DrawTask task_;
  };

  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(workspace_.data());
  }
  cudaStream_t stream() const { return context_->stream(); }
  // Where a pass writes to.
  int32_t* labels() const { return rows_.on_device && rows_.labels != nullptr ? rows_.labels : at(layout_.labels); }
  float* keys() const { return rows_.on_device && rows_.keys != nullptr ? rows_.keys : at(layout_.keys); }

  float* centres_now() const { return at(layout_.centres[turn_centres_]); }
  float* centres_next() const { return at(layout_.centres[turn_centres_ ^ 1]); }
  double* weight_sums() const { return at(layout_.sums) + shape_.clusters * shape_.cols; }
  const float* weights_on_device() const { return rows_.weights == nullptr ? nullptr : at(layout_.weights); }

  // The room for rows `first` and those after it.
  std::byte* place_of(int64_t first) const {
    return at(layout_.rows) + (cuda_.rows_stay ? first * shape_.row_bytes() : 0);
  }
  DeviceRowsView rows_at(const std::byte* place, int64_t count) const {
    return {place, shape_.dtype, shape_.cols, count, nullptr};
  }

  // Rows on the device: in place, or copied there.
  DeviceRowsView arrive(const MatrixView& rows, int64_t first, ProgressMeter& meter) {
    check_on_device(rows, "data", context_->device());
    if (lies_on(rows, context_->device())) return device_rows(rows);
    if (coming_ != kNothing) ahead_->await(turn_ ^ 1, stream());  // not this one, and not wanted any more
    coming_ = kNothing;
    upload_.copy(rows, place_of(first), stream(), meter);
    return rows_at(place_of(first), rows.rows());
  }

  // Returns the piece whose copy was started before, and starts the next: after the last the first again, since most
  // passes that add up are followed by another. Of a file only this pass is read: others may read it between passes.
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
  std::byte* ahead_place(int buffer) const { return at(buffer == 0 ? layout_.rows : layout_.rows_ahead); }

  void work_on(const DeviceRowsView& piece, int64_t first, ProgressMeter& meter) {
    CentreSearchTask task;
    task.rows = piece;
    task.first = first;
    task.number = rows_.first + first;
    task.operands_kept = operands_kept_;
    task.check_finite = checks_finite_ && !checked_;
    task.labels = labels() + first;
    task.keys = keys() + first;
    task.wants_keys = !keys_with_sums() && !(rows_.on_device && rows_.keys == nullptr);
    if (guesses_) task.squared_moves = at(layout_.moves);
    if (only_nearer_) task.known = at(layout_.nearest) + first;
    if (rows_.on_device && piece.count == shape_.rows) task.probe = last_sampled_row(shape_.rows);
    search_.run(task, meter);
    if (adds_up_ && !adds_in_turn_) add(piece, first, first, first + piece.count == rows_.count);
    last_piece_ = piece;
    if (first + piece.count == rows_.count) {  // the same rows come in the next pass
      rows_kept_ = cuda_.rows_stay;
      operands_kept_ = cuda_.operands_stay;
      checked_ = can_stay();
    }
    meter.add(piece.count);
  }

  // Whether keys are computed together with the sums, which read every row anyway: not if rows are so wide and so few
  // that sixteen threads for each run would leave the GPU idle.
  bool keys_with_sums() const {
    constexpr int64_t kWideCols = 512;
    constexpr int64_t kFewRuns = 8192;
    const int64_t runs = divide_up(rows_.count, sum_block(shape_.clusters)) * shape_.clusters;
    return adds_up_ && cuda_.search.has_products() && !cuda_.lists_rows && !request_.spherical &&
           rows_.weights == nullptr && shape_.cols <= kMostKeyCols && (shape_.cols <= kWideCols || runs >= kFewRuns);
  }

  // Rows `first` and those after it of this backend's; `number` is the first one's among all that are added up.
  void add(const DeviceRowsView& rows, int64_t first, int64_t number, bool last) const {
    SumsTask task;
    task.rows = rows;
    task.cols = shape_.cols;
    task.clusters = shape_.clusters;
    task.first = number;
    task.last = last;
    task.labels = at(layout_.labels) + first;
    task.weights = rows_.weights == nullptr ? nullptr : at(layout_.weights) + first;
    for (int i = 0; i < 2; ++i) {
      task.runs.keys[i] = at(layout_.sort_keys[i]);
      task.runs.rows[i] = at(layout_.sort_rows[i]);
    }
    task.runs.sort = at(layout_.sort);
    task.runs.sort_bytes = layout_.sort.count;
    task.runs.starts = at(layout_.run_starts);
    task.runs.sums = at(layout_.run_sums);
    task.runs.weights = at(layout_.run_weights);
    task.sums = {at(layout_.sums), at(layout_.open_sums)};
    if (keys_with_sums()) {
      task.keys = at(layout_.keys) + first;
      task.centres = centres_now();
    }
    if (cuda_.lists_rows) return launch_add_few(task, cuda_.search.multiprocessors, stream());
    launch_add_rows(task, stream());
  }

  void launch_move(const double* counts, float* moved) const {
    launch_move_centres({at(layout_.sums), weight_sums(), counts, centres_now(), moved, at(layout_.moves),
                         shape_.clusters, shape_.cols, request_.spherical},
                        stream());
  }
  void have_moved() {
    centres_ready_ = moved_ahead_ = false;
    guesses_ = labelled_;
    labelled_ = false;
  }
  // Whether the same rows come in every pass.
  bool can_stay() const { return request_.moves_centres && request_.batch_rows == 0; }

  const KMeansShape shape_;
  const KMeansRequest request_;
  const KMeansCudaPlan cuda_;
  const bool checks_finite_;
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
  DeviceRowsView last_piece_;   // that was labelled
  bool adds_up_ = false;
  bool adds_in_turn_ = false;
  bool only_nearer_ = false;
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

std::unique_ptr<KMeansBackend> make_kmeans_cuda(const KMeansShape& shape, const KMeansRequest& request,
                                                const KMeansPlan& plan, const DataSample& sample,
                                                const Resources& resources) {
  const DeviceGuard guard(plan.device().index);
  return std::make_unique<KMeansCuda>(shape, request, plan, sample, resources);
}

}  // namespace kith
