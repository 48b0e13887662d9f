#include "cluster/shared/dealt_backend.hpp"

#include "core/divide.hpp"

#include <utility>

namespace kith {
namespace {

// Every rank keeps the distances of all rows, and draws the same.
class DrawsOnRanks final : public CandidateDraws {
 public:
  DrawsOnRanks(DealtBackend& backend, std::unique_ptr<CandidateDraws> draws)
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
  DealtBackend& backend_;
  const std::unique_ptr<CandidateDraws> draws_;
};

}  // namespace

RankPart kmeans_part(int64_t rows, const Communicator& ranks) {
  return part_of(rows, kSumBlock, ranks.rank(), ranks.size());
}

void survey_on_ranks(Communicator& ranks, DataSurvey& survey, int64_t rows, int64_t cols,
                     const KMeansSharing::SurveyPart& survey_part) {
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

void DealtBackend::set_rows(const KMeansRowArrays& rows) {
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

void DealtBackend::begin_pass(const KMeansPass& pass) {
  pass_ = pass;
  source_ = nullptr;
  KMeansPass mine = own_pass(pass);
  mine.only_nearer = false;  // candidates are drawn on the host: the own backend does not know the nearest so far
  own_->begin_pass(mine);
}

void DealtBackend::scan(const MatrixView& rows, int64_t, ProgressMeter& meter) {
  batch_ = rows;
  meter_ = &meter;
  attempt([&] {
    if (part_.count > 0) own_->scan(rows, 0, meter);
  });
}

void DealtBackend::scan_all(RowSource& source, int64_t piece_rows, ProgressMeter& meter) {
  source_ = &source;
  piece_rows_ = piece_rows;
  meter_ = &meter;
  attempt([&] {
    if (part_.count == 0) return;
    part_source_.emplace(source, part_);
    own_->scan_all(*part_source_, piece_rows, meter);
  });
}

void DealtBackend::get_rows() {
  gather_all(all_.keys);
  gather_all(all_.labels);
}

std::unique_ptr<CandidateDraws> DealtBackend::make_draws(const KMeansRowArrays& rows, const Resources& resources) {
  return std::make_unique<DrawsOnRanks>(*this, make_draws_on_host(rows, resources));
}

MatrixView DealtBackend::gather(RowSource& source, const std::vector<uint32_t>& rows) {
  const RankPart part = kmeans_part(static_cast<int64_t>(rows.size()), ranks_);
  MatrixView mine;
  attempt([&] {
    if (part.count > 0) mine = own_->gather(source, {rows.begin() + part.first, rows.begin() + part.end()});
  });
  return mine;
}

void DealtBackend::end_scan() {
  attempt([&] {
    own_->objective();
    pass_.scores || pass_.only_nearer ? own_->get_rows() : own_->get_labels();
  });
  agree_now();
}

double DealtBackend::add_objectives(const std::vector<double>& own_blocks) {
  std::vector<double> blocks(static_cast<size_t>(divide_up(all_.count, kSumBlock)));
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const RankPart part = part_of(all_.count, kSumBlock, rank, ranks_.size());
    bytes.push_back(array_bytes<double>(divide_up(part.count, kSumBlock)));
  }
  ranks_.all_gather(own_blocks.data(), bytes, blocks.data());
  double total = 0;
  for (const double block : blocks) total += block;
  return total;
}

}  // namespace kith
