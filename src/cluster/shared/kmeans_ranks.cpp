#include "cluster/shared/kmeans_ranks.hpp"

#include "cluster/steps/centre_means.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/divide.hpp"
#include "kernels/assign/centre_sums.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRangesPerRank = 8;  // of centres, whose sums go on one after the other

// Rows first, first + 1, ... of another source.
class PartSource final : public RowSource {
 public:
  PartSource(RowSource& from, RankPart part) : from_(from), part_(part) {}
  RowsInfo info() const override {
    RowsInfo info = from_.info();
    info.rows = part_.count;
    return info;
  }
  int64_t together(int64_t first) const override {
    return std::min(from_.together(part_.first + first), part_.count - first);
  }
  MatrixView fetch(int64_t first, int64_t count) override { return from_.fetch(part_.first + first, count); }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    std::vector<uint32_t> there(rows, rows + count);
    for (uint32_t& row : there) row += static_cast<uint32_t>(part_.first);
    from_.gather(there.data(), count, out, resources);
  }

 private:
  RowSource& from_;
  const RankPart part_;
};

class KMeansOnRanks final : public KMeansBackend {
 public:
  KMeansOnRanks(Communicator& ranks, std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                const KMeansWish& wish, const KMeansPlan& plan, const Resources& resources)
      : ranks_(ranks),
        resources_(resources),
        own_(std::move(own)),
        clusters_(shape.clusters),
        spherical_(wish.spherical),
        sums_(shape.clusters, shape.cols,
              std::max({plan.piece_rows, wish.batch_rows, kmeans_part(shape.rows, ranks_).count}),
              CentreSums::ByCentre(), resources) {
    const int64_t ranges = std::min(clusters_, ranks_.size() == 1 ? 1 : kRangesPerRank * ranks_.size());
    range_ = divide_up(clusters_, ranges);
    state_ = HostArray<double>(sums_.state_size(range_), "the centres' sums", resources);
  }

  void set_rows(const KMeansRowArrays& rows) override {
    all_ = rows;
    part_ = kmeans_part(rows.count, ranks_);
    KMeansRowArrays mine = rows;
    mine.count = part_.count;
    mine.labels += part_.first;
    if (mine.keys != nullptr) mine.keys += part_.first;
    if (mine.weights != nullptr) mine.weights += part_.first;
    mine.first += part_.first;
    own_->set_rows(mine);
  }
  void set_centres(const MatrixView& centres) override { own_->set_centres(centres); }

  void begin_pass(const KMeansPass& pass) override {
    pass_ = pass;
    source_ = nullptr;
    KMeansPass mine = pass;
    mine.adds_up = false;
    own_->begin_pass(mine);
  }
  // `rows` are those that gather() has brought.
  void scan(const MatrixView& rows, int64_t, ProgressMeter& meter) override {
    batch_ = rows;
    meter_ = &meter;
    attempt([&] {
      if (part_.count > 0) own_->scan(rows, 0, meter);
    });
  }
  void scan_all(RowSource& source, int64_t piece_rows, ProgressMeter& meter) override {
    source_ = &source;
    piece_rows_ = piece_rows;
    meter_ = &meter;
    attempt([&] {
      if (part_.count == 0) return;
      PartSource part(source, part_);
      own_->scan_all(part, piece_rows, meter);
    });
  }

  double objective() override {
    end_scan();
    if (pass_.adds_up) add_up();
    return pass_.scores ? add_objectives() : 0.0;
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
  void get_rows() override {
    gather_all(all_.keys);
    gather_all(all_.labels);
  }
  void get_labels() override { gather_all(all_.labels); }
  void get_counts(double* counts) override { count_labels(all_, clusters_, counts); }

  std::unique_ptr<CandidateDraws> make_draws(const KMeansRowArrays& rows, const Resources& resources) override;

  MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) override {
    const RankPart part = kmeans_part(static_cast<int64_t>(rows.size()), ranks_);
    MatrixView mine;
    attempt([&] {
      if (part.count > 0) mine = own_->gather(source, {rows.begin() + part.first, rows.begin() + part.end()});
    });
    return mine;
  }

  // The pass has gone over all rows: throws on all ranks what one has thrown meanwhile.
  void end_scan() {
    attempt([&] {
      own_->objective();
      pass_.scores || pass_.only_nearer ? own_->get_rows() : own_->get_labels();
    });
    agree(ranks_, std::exchange(error_, nullptr));
  }

 private:
  // What is thrown waits for the next agreement, up to which nothing more is done.
  template <typename Work>
  void attempt(const Work& work) {
    if (error_ != nullptr) return;
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  // This rank's rows in one piece, if they lie in memory.
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
    agree(ranks_, std::exchange(error_, nullptr));
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
    agree(ranks_, std::exchange(error_, nullptr));
    totals_ = sums_.finish();
    ranks_.broadcast(ranks_.size() - 1, totals_.sums, array_bytes<double>(sums_.size()));
  }

  // Whether it holds on every rank.
  bool all_ranks(bool holds) {
    const auto size = static_cast<size_t>(ranks_.size());
    const int64_t own = holds ? 1 : 0;
    std::vector<int64_t> each(size);
    ranks_.all_gather(&own, std::vector<int64_t>(size, sizeof(own)), each.data());
    return std::all_of(each.begin(), each.end(), [](int64_t held) { return held == 1; });
  }

  // Goes on with the sums of these centres: those of the rank before are taken, and handed to the next.
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

  // Blocks of kSumBlock rows, whose sums are added in their order.
  double add_objectives() {
    std::vector<double> blocks(static_cast<size_t>(divide_up(all_.count, kSumBlock)));
    for (int64_t first = part_.first; first < part_.end(); first += kSumBlock) {
      const float* const weights = all_.weights == nullptr ? nullptr : all_.weights + first;
      const int64_t count = std::min(kSumBlock, part_.end() - first);
      blocks[static_cast<size_t>(first / kSumBlock)] = objective_of(all_.keys + first, weights, count);
    }
    std::vector<int64_t> bytes;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const RankPart part = part_of(all_.count, kSumBlock, rank, ranks_.size());
      bytes.push_back(array_bytes<double>(divide_up(part.count, kSumBlock)));
    }
    ranks_.all_gather(blocks.data() + part_.first / kSumBlock, bytes, blocks.data());
    double total = 0;
    for (const double block : blocks) total += block;
    return total;
  }

  // Every rank's values of its rows, to all ranks.
  template <typename T>
  void gather_all(T* values) {
    std::vector<int64_t> bytes;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      bytes.push_back(array_bytes<T>(part_of(all_.count, kSumBlock, rank, ranks_.size()).count));
    }
    ranks_.all_gather(values + part_.first, bytes, values);
  }

  Communicator& ranks_;
  const Resources resources_;
  const std::unique_ptr<KMeansBackend> own_;
  const int64_t clusters_;
  const bool spherical_;
  CentreSums sums_;
  int64_t range_ = 1;        // centres whose sums go on together
  HostArray<double> state_;  // of these, on its way
  KMeansRowArrays all_;
  RankPart part_;
  KMeansPass pass_;
  RowSource* source_ = nullptr;  // null: a batch
  int64_t piece_rows_ = 0;
  MatrixView batch_;
  ProgressMeter* meter_ = nullptr;
  SumsView totals_;
  std::exception_ptr error_;
};

// Every rank keeps the distances of all rows, and draws the same.
class DrawsOnRanks final : public CandidateDraws {
 public:
  DrawsOnRanks(KMeansOnRanks& backend, std::unique_ptr<CandidateDraws> draws)
      : backend_(backend), draws_(std::move(draws)) {}

  void take_nearer(int64_t first, ProgressMeter& meter) override {
    backend_.end_scan();
    backend_.get_rows();
    draws_->take_nearer(first, meter);
  }
  double add_up(ProgressMeter& meter) override { return draws_->add_up(meter); }
  std::vector<uint32_t> draw(const std::vector<double>& shares) override { return draws_->draw(shares); }
  std::vector<float> weights(int64_t candidates) override { return draws_->weights(candidates); }

 private:
  KMeansOnRanks& backend_;
  const std::unique_ptr<CandidateDraws> draws_;
};

std::unique_ptr<CandidateDraws> KMeansOnRanks::make_draws(const KMeansRowArrays& rows, const Resources& resources) {
  return std::make_unique<DrawsOnRanks>(*this, make_draws_on_host(rows, resources));
}

}  // namespace

RankPart kmeans_part(int64_t rows, const Communicator& ranks) {
  return part_of(rows, kSumBlock, ranks.rank(), ranks.size());
}

std::unique_ptr<KMeansBackend> KMeansSharedByRanks::share(std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                                                          const KMeansWish& wish, const KMeansPlan& plan,
                                                          const Resources& resources) const {
  return std::make_unique<KMeansOnRanks>(ranks_, std::move(own), shape, wish, plan, resources);
}

void KMeansSharedByRanks::survey(DataSurvey& survey, int64_t rows, int64_t cols, const SurveyPart& survey_part) const {
  Communicator& ranks = ranks_;
  const RankPart part = kmeans_part(rows, ranks);
  survey.keep_blocks();
  survey_part(part.first, part.count);
  agree(ranks, nullptr);
  // The columns' sums and their squares', then the rows.
  std::vector<double> sums(static_cast<size_t>(2 * cols), 0.0);
  int64_t counted = 0;
  const int64_t bytes = array_bytes<double>(2 * cols);
  if (ranks.rank() > 0) {
    ranks.receive(ranks.rank() - 1, sums.data(), bytes);
    ranks.receive(ranks.rank() - 1, &counted, sizeof(counted));
  }
  survey.fold(sums, counted);
  if (ranks.rank() + 1 < ranks.size()) {
    ranks.send(ranks.rank() + 1, sums.data(), bytes);
    ranks.send(ranks.rank() + 1, &counted, sizeof(counted));
  }
  ranks.broadcast(ranks.size() - 1, sums.data(), bytes);
  survey.set_total(std::move(sums), rows);
}

}  // namespace kith
