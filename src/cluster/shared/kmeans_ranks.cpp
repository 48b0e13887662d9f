#include "cluster/shared/kmeans_ranks.hpp"

#include "cluster/shared/dealt_backend.hpp"
#include "cluster/steps/centre_means.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/divide.hpp"
#include "kernels/assign/centre_sums.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRangesPerRank = 8;  // of centres, whose sums go on one after the other

class KMeansOnRanks final : public DealtBackend {
 public:
  KMeansOnRanks(Communicator& ranks, std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                const KMeansRequest& request, const KMeansPlan& plan, const Resources& resources)
      : DealtBackend(ranks, std::move(own), shape.clusters, Errors::agreed),
        resources_(resources),
        spherical_(request.spherical),
        sums_(shape.clusters, shape.cols,
              std::max({plan.piece_rows, request.batch_rows, kmeans_part(shape.rows, ranks_).count}),
              CentreSums::ByCentre(), resources) {
    const int64_t ranges = std::min(clusters_, ranks_.size() == 1 ? 1 : kRangesPerRank * ranks_.size());
    range_ = divide_up(clusters_, ranges);
    state_ = HostArray<double>(sums_.state_size(range_), "the centres' sums", resources);
  }

  double objective() override {
    end_scan();
    if (pass_.adds_up) add_up();
    return pass_.scores ? add_objectives(own_blocks()) : 0.0;
  }

  const double* weights() override { return totals_.weights; }
  SumsView sums() override { return totals_; }
  void put_sums() override {}

  double move_to_means(const MutableMatrixView& centres) override {
    const double moved = kith::move_to_means(totals_, centres, spherical_);
    own_->set_centres(centres);
    return moved;
  }
  void move_by_batch(const MutableMatrixView& centres, double* counts) override {
    kith::move_by_batch(totals_, centres, counts, spherical_);
    own_->set_centres(centres);
  }
  void get_centres(const MutableMatrixView&) override {}

 private:
  KMeansPass own_pass(const KMeansPass& pass) const override {
    KMeansPass mine = pass;
    mine.adds_up = false;
    return mine;
  }

  // This rank's rows in one piece, if they are in memory.
  std::optional<MatrixView> whole_part() const {
    if (source_ == nullptr) return batch_;
    if (const auto* const held = dynamic_cast<const HeldRows*>(source_)) return held->whole(part_);
    const RowsInfo info = source_->info();
    if (!info.in_memory || !info.space.host_readable() || source_->together(part_.first) < part_.count) return {};
    return source_->fetch(part_.first, part_.count);
  }

  // Calls add(rows, first) for this rank's rows, which were labelled, piece by piece.
  template <typename Add>
  void for_pieces(const Add& add) {
    for (int64_t first = part_.first; first < part_.end(); first += piece_rows_) {
      add(source_->fetch(first, std::min(piece_rows_, part_.end() - first)), first);
    }
  }

  void add_up() {
    const float* const weights = all_.weights;
    const auto add = [&](const MatrixView& rows, int64_t first, int64_t begin, int64_t end) {
      sums_.add_centres(begin, end, rows, first, weights == nullptr ? weights : weights + first, *meter_, resources_);
    };
    const std::optional<MatrixView> whole = part_.count > 0 ? whole_part() : MatrixView();
    // Rows that come in pieces, on any rank, come once for all centres.
    const int64_t range = all_ranks(whole.has_value()) ? range_ : clusters_;
    if (state_.size() < sums_.state_size(range)) {
      attempt([&] { state_ = HostArray<double>(sums_.state_size(clusters_), "the centres' sums", resources_); });
    }
    agree_now();
    sums_.clear();
    if (whole) sums_.order_by_centre(all_.labels + part_.first, whole->rows());
    for (int64_t begin = 0; begin < clusters_; begin += range) {
      const int64_t end = std::min(begin + range, clusters_);
      pass_on(begin, end, [&] {
        if (whole) return add(*whole, part_.first, begin, end);
        for_pieces([&](const MatrixView& rows, int64_t first) {
          sums_.order_by_centre(all_.labels + first, rows.rows());
          add(rows, first, begin, end);
        });
      });
    }
    agree_now();
    totals_ = sums_.finish();
    ranks_.broadcast(ranks_.size() - 1, totals_.sums, array_bytes<double>(sums_.size()));
  }

  // Whether a condition holds on every rank.
  bool all_ranks(bool holds) {
    const auto size = static_cast<size_t>(ranks_.size());
    const int64_t own = holds ? 1 : 0;
    std::vector<int64_t> each(size);
    ranks_.all_gather(&own, std::vector<int64_t>(size, sizeof(own)), each.data());
    return std::all_of(each.begin(), each.end(), [](int64_t held) { return held == 1; });
  }

  // Continues the sums of these centres: receives those of the rank before, adds, and passes them to the next.
  template <typename Add>
  void pass_on(int64_t begin, int64_t end, const Add& add) {
    const int rank = ranks_.rank();
    const int64_t bytes = array_bytes<double>(sums_.state_size(end - begin));
    if (rank > 0) {
      ranks_.receive(rank - 1, state_.data(), bytes);
      sums_.read_state(begin, end, state_.data());
    }
    if (part_.count > 0) attempt(add);
    if (rank + 1 < ranks_.size()) {
      sums_.write_state(begin, end, state_.data());
      ranks_.send(rank + 1, state_.data(), bytes);
    }
  }

  std::vector<double> own_blocks() const {
    std::vector<double> blocks;
    for (int64_t first = part_.first; first < part_.end(); first += kSumBlock) {
      const float* const weights = all_.weights == nullptr ? nullptr : all_.weights + first;
      blocks.push_back(objective_of(all_.keys + first, weights, std::min(kSumBlock, part_.end() - first)));
    }
    return blocks;
  }

  const Resources resources_;
  const bool spherical_;
  CentreSums sums_;
  int64_t range_ = 1;        // centres whose sums go on together
  HostArray<double> state_;  // of these, on its way
  SumsView totals_;
};

}  // namespace

std::unique_ptr<KMeansBackend> KMeansSharedByRanks::share(std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                                                          const KMeansRequest& request, const KMeansPlan& plan,
                                                          const Resources& resources) const {
  return std::make_unique<KMeansOnRanks>(ranks_, std::move(own), shape, request, plan, resources);
}

void KMeansSharedByRanks::survey(DataSurvey& survey, int64_t rows, int64_t cols, const SurveyPart& survey_part) const {
  survey_on_ranks(ranks_, survey, rows, cols, survey_part);
}

}  // namespace kith
