#include "cluster/shared/kmeans_devices.hpp"

#include "cluster/shared/dealt_backend.hpp"
#include "core/divide.hpp"
#include "ranks/transfer.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// The location of a device's sums, which it tells the next device.
struct SumsPlace {
  double* totals = nullptr;
  double* open_block = nullptr;
  int64_t device = 0;

  explicit SumsPlace(SumsInTurn& sums) : totals(sums.totals()), open_block(sums.open_block()), device(sums.device()) {}
};

class KMeansOnDevices final : public DealtBackend {
 public:
  KMeansOnDevices(Communicator& ranks, const MutualReads& reads, std::unique_ptr<KMeansBackend> own,
                  const KMeansShape& shape, const Resources& resources)
      : DealtBackend(ranks, std::move(own), shape.clusters, Errors::thrown),
        reads_(reads),
        sums_(*own_->sums_in_turn()),
        outer_(resources.with_progress({})),
        resources_(resources.with_progress({}).with_stream(sums_.work_stream())) {}

  double objective() override {
    if (pass_.adds_up) add_up();
    own_->objective();
    return pass_.scores ? add_objectives(sums_.objective_blocks()) : 0.0;
  }

  // Sums and centres are the same on every device.
  const double* weights() override { return own_->weights(); }
  SumsView sums() override { return own_->sums(); }
  void put_sums() override { own_->put_sums(); }
  double move_to_means(const MutableMatrixView& centres) override { return own_->move_to_means(centres); }
  void move_by_batch(const MutableMatrixView& centres, double* counts) override {
    own_->move_by_batch(centres, counts);
  }
  void get_centres(const MutableMatrixView& centres) override { own_->get_centres(centres); }

  void get_rows() override {
    own_->get_rows();
    DealtBackend::get_rows();
  }
  void get_labels() override {
    own_->get_labels();
    DealtBackend::get_labels();
  }

  // Draws are from all rows; the plan of a part has no memory for these, so they are made on the host.
  std::unique_ptr<CandidateDraws> make_draws(const KMeansRowArrays& rows, const Resources&) override {
    return DealtBackend::make_draws(rows, outer_);
  }

 private:
  KMeansPass own_pass(const KMeansPass& pass) const override {
    KMeansPass mine = pass;
    mine.adds_in_turn = pass.adds_up;
    return mine;
  }

  void add_up() {
    const int rank = ranks_.rank();
    const int last = ranks_.size() - 1;
    SumsPlace place(sums_);
    const MutualReads::Opened opened(reads_, rank);
    if (rank > 0) {
      SumsPlace before = place;
      ranks_.receive(rank - 1, &before, sizeof(before));
      const MutualReads::Reading reading(reads_, rank - 1);
      copy(before.totals, before.device, place.totals);
      copy(before.open_block, before.device, place.open_block);
    }
    const bool ends = part_.end() == all_.count;
    if (source_ == nullptr) {
      sums_.add_labelled(nullptr, std::max<int64_t>(part_.count, 1), part_.first, ends, *meter_);
    } else {
      sums_.add_labelled(part_source_ ? &*part_source_ : nullptr, piece_rows_, part_.first, ends, *meter_);
    }
    if (rank < last) ranks_.send(rank + 1, &place, sizeof(place));
    SumsPlace totals = place;
    ranks_.broadcast(last, &totals, sizeof(totals));
    if (rank < last) {
      const MutualReads::Reading reading(reads_, last);
      copy(totals.totals, totals.device, place.totals);
    }
    ranks_.barrier();  // nobody reads them any more
  }

  void copy(const double* from, int64_t device, double* to) const {
    transfer(from, MemorySpace::cuda(static_cast<int>(device)), array_bytes<double>(sums_.size()), to,
             MemorySpace::cuda(sums_.device()), resources_);
  }

  const MutualReads& reads_;
  SumsInTurn& sums_;
  const Resources outer_;
  const Resources resources_;  // on the backend's stream
};

}  // namespace

KMeansShape KMeansSharedByDevices::own_shape(const KMeansShape& shape) const {
  KMeansShape own = shape;
  const int64_t blocks = divide_up(divide_up(shape.rows, kSumBlock), ranks_.size());
  own.rows = std::min(shape.rows, blocks * kSumBlock);
  return own;
}

void KMeansSharedByDevices::begin(const std::function<void()>& choose, const MutableMatrixView& centres) const {
  if (ranks_.rank() == 0) choose();
  ranks_.broadcast(0, centres.data(), array_bytes<float>(centres.rows() * centres.cols()));
}

std::unique_ptr<KMeansBackend> KMeansSharedByDevices::share(std::unique_ptr<KMeansBackend> own,
                                                            const KMeansShape& shape, const KMeansRequest&,
                                                            const KMeansPlan&, const Resources& resources) const {
  return std::make_unique<KMeansOnDevices>(ranks_, reads_, std::move(own), shape, resources);
}

void KMeansSharedByDevices::survey(DataSurvey& survey, int64_t rows, int64_t cols,
                                   const SurveyPart& survey_part) const {
  if (!rows_on_host_) return survey_part(0, rows);  // cheaper than exchanging the results
  survey_on_ranks(ranks_, survey, rows, cols, survey_part);
}

}  // namespace kith
