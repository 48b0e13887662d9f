#include "ivf/search/ivf_search.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "core/planned.hpp"
#include "ivf/search/batch_search.hpp"
#include "ivf/search/ivf_search_plan.hpp"
#include "kernels/lists/rank_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kRangeListLength = 128;  // candidates are scored when a list is full

// Kept vectors of each list, where some are left out: else the segments say how many a list has, and a search of one
// query does not look at every list.
HostArray<int64_t> kept_sizes(const IvfModel& model, const std::vector<Segment>& segments, const uint64_t* kept,
                              const Resources& resources) {
  if (kept == nullptr) return {};
  HostArray<int64_t> sizes(model.lists(), "the lists' sizes", resources);
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("filter", model.lists(), quiet);
  constexpr int64_t kListsPerTask = 64;
  parallel_for(divide_up(model.lists(), kListsPerTask), meter, quiet, [&](int64_t task, int) {
    for (int64_t list = task * kListsPerTask; list < std::min((task + 1) * kListsPerTask, model.lists()); ++list) {
      int64_t size = 0;
      for (const Segment& segment : segments) {
        for (int64_t i = segment->offsets()[list]; i < segment->offsets()[list + 1]; ++i) {
          size += keeps(kept, segment->rows()[i]);
        }
      }
      sizes[list] = size;
    }
  });
  return sizes;
}

// A vector near those of a list without a centre.
std::vector<float> mean_of_vectors(const ListedVectors& vectors) {
  constexpr int64_t kSample = 256;
  const int64_t cols = vectors.model().cols();
  std::vector<double> sums(static_cast<size_t>(cols), 0.0);
  std::vector<float> mean(static_cast<size_t>(cols), 0.0f);
  const int64_t count = std::min(kSample, vectors.size());
  for (int64_t i = 0; i < count; ++i) {
    auto place = static_cast<uint32_t>(vectors.size() * i / count);
    vectors.decode(&place, 1, mean.data());
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += mean[static_cast<size_t>(c)];
  }
  for (int64_t c = 0; c < cols; ++c) {
    const double value = count == 0 ? 0.0 : sums[static_cast<size_t>(c)] / static_cast<double>(count);
    mean[static_cast<size_t>(c)] = std::isfinite(value) ? static_cast<float>(value) : 0.0f;
  }
  return mean;
}

// Keeps the k best of each list.
class NearestUser final : public CandidateUser {
 public:
  NearestUser(BatchSearch& batch, int64_t k, int64_t stride, uint64_t* neighbors, const Resources& resources)
      : batch_(batch),
        k_(k),
        stride_(stride),
        neighbors_(neighbors),
        memory_(resources.threads() * CandidateScratch::bytes_for(k), "selection", resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      scratch_.emplace_back(memory_.data() + slot * CandidateScratch::bytes_for(k), k);
    }
  }
  float threshold(int64_t) const override { return kInfinity; }
  bool ties_may_count() const override { return true; }
  void make_room(CandidateList* list, int64_t, uint32_t, int slot, const RowScorer& score) override {
    lower(list);
    const bool nearly_full = list->size() > k_ + k_ / 4 + 16;  // it would be full again too soon
    if (nearly_full) list->make_room(scratch_[static_cast<size_t>(slot)], score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    const CandidateScratch& scratch = scratch_[static_cast<size_t>(slot)];
    lower(list);
    const int64_t count = list->drain(0, scratch, score);
    std::sort(scratch.neighbors, scratch.neighbors + count);
    std::copy_n(scratch.neighbors, std::min(count, k_), neighbors_ + batch_.number(query) * stride_);
  }

 private:
  // To a key that k candidates do not exceed.
  void lower(CandidateList* list) const {
    if (list->size() >= k_) list->lower_to(rank_value(list->upper(), list->size(), k_));
  }

  const BatchSearch& batch_;
  const int64_t k_;
  const int64_t stride_;
  uint64_t* const neighbors_;
  HostBuffer memory_;
  std::vector<CandidateScratch> scratch_;
};

// Takes all that is in range.
class RangeUser final : public CandidateUser {
 public:
  RangeUser(BatchSearch& batch, float most, RangeHits& hits, const Resources& resources)
      : batch_(batch),
        most_(most),
        hits_(hits),
        memory_(resources.threads() * CandidateScratch::bytes_for(kRangeListLength), "selection", resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      scratch_.emplace_back(memory_.data() + slot * CandidateScratch::bytes_for(kRangeListLength), kRangeListLength);
    }
  }
  float threshold(int64_t) const override { return most_; }
  bool ties_may_count() const override { return true; }
  void make_room(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    finish(list, query, 0, slot, score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    const CandidateScratch& scratch = scratch_[static_cast<size_t>(slot)];
    const int64_t count = list->drain(0, scratch, score);
    const uint32_t most = ordered_key(most_);
    int64_t within = 0;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t neighbor = scratch.neighbors[i];
      scratch.neighbors[within] = neighbor;
      within += ordered_of(neighbor) <= most;  // a NaN comes after every key
    }
    hits_.add(slot, batch_.number(query), scratch.neighbors, within);
  }

 private:
  const BatchSearch& batch_;
  const float most_;
  RangeHits& hits_;
  HostBuffer memory_;
  std::vector<CandidateScratch> scratch_;
};

void check_input(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                 int64_t probes) {
  model.validate();
  if (probes < 1) throw InvalidArgument(fmt::format("probes = {}; at least one list must be searched", probes));
  if (queries.cols() != model.cols()) {
    throw InvalidArgument(fmt::format("the queries have {} columns and the index {}", queries.cols(), model.cols()));
  }
  for (const Segment& segment : segments) {
    if (segment->lists() == model.lists() && segment->code_bytes() == model.codec->format().bytes()) continue;
    throw InvalidArgument("the lists are not of this model");
  }
}

// Searches all queries: calls use(batch, resources of the plan, meter) for batch after batch, each with as many probes
// as it takes.
template <typename Use>
void for_each_batch(const ListedVectors& vectors, const MatrixView& queries, const uint64_t* kept, IvfWish wish,
                    const HostArray<int64_t>& sizes, const Resources& resources, const Use& use) {
  const IvfModel& model = vectors.model();
  const std::vector<float> origin =
      model.has_centres() || !has_differences(key_kind(model.metric)) ? std::vector<float>() : mean_of_vectors(vectors);
  wish.asked = std::min(wish.probes, model.lists());
  const CodeWords::Wanted words = keep_words(model, wish, queries.rows(), resources);
  std::vector<int64_t> pending(static_cast<size_t>(queries.rows()));
  for (size_t i = 0; i < pending.size(); ++i) pending[i] = static_cast<int64_t>(i);
  ProgressMeter meter("search", queries.rows(), resources);
  for (wish.probes = wish.asked; !pending.empty(); wish.probes = std::min(4 * wish.probes, model.lists())) {
    const auto count = static_cast<int64_t>(pending.size());
    const Planned<IvfPlan> planned = plan_and_reserve<IvfPlan>(
        [&](const PlanBudget& budget) { return plan_search(model, wish, count, budget); }, resources);
    BatchSearch batch(vectors, origin, words, sizes.data(), kept, wish, planned.plan, planned.resources());
    std::vector<int64_t> short_ones;
    for (int64_t first = 0; first < count; first += planned.plan.query_batch) {
      batch.load(queries, pending.data() + first, std::min(planned.plan.query_batch, count - first), &short_ones);
      use(batch, planned.resources(), meter);
      meter.add(batch.queries());
      meter.poll();
    }
    pending = std::move(short_ones);
  }
  meter.finish();
}

}  // namespace

void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, uint64_t* neighbors, const Resources& resources) {
  const DefaultFloatMode mode;
  check_input(model, segments, queries, search.probes);
  if (search.k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", search.k));
  std::fill_n(neighbors, queries.rows() * search.k, kPadding);
  const ListedVectors vectors(model, segments);
  const HostArray<int64_t> sizes = kept_sizes(model, segments, search.kept, resources);
  int64_t kept = search.kept == nullptr ? vectors.size() : 0;
  for (const int64_t size : sizes) kept += size;
  if (kept == 0 || queries.rows() == 0) return;
  const int64_t k = std::min(search.k, kept);
  for_each_batch(vectors, queries, search.kept, {k, search.probes, k}, sizes, resources,
                 [&](BatchSearch& batch, const Resources& planned, ProgressMeter& meter) {
                   NearestUser user(batch, k, search.k, neighbors, planned);
                   batch.run(user, meter);
                 });
}

int64_t smallest_search_bytes(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered,
                              int64_t queries, const Resources& resources) {
  const int64_t k = std::min(search.k, rows);
  const IvfWish wish{k, std::min(search.probes, model.lists()), k};
  const int64_t sizes = filtered ? array_bytes<int64_t>(model.lists()) : 0;
  // A limit may have them searched a few at a time, which is planned otherwise.
  return sizes + std::max(least_bytes(model, wish, queries, resources), least_bytes(model, wish, 1, resources));
}

CollectedHits range_search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                               const IvfRange& range, const Resources& resources) {
  const DefaultFloatMode mode;
  check_input(model, segments, queries, range.probes);
  const ListedVectors vectors(model, segments);
  RangeHits hits(resources);
  if (vectors.size() > 0 && queries.rows() > 0) {
    for_each_batch(vectors, queries, range.kept, {kRangeListLength, range.probes, 0, false}, {}, resources,
                   [&](BatchSearch& batch, const Resources& planned, ProgressMeter& meter) {
                     RangeUser user(batch, range.most, hits, planned);
                     batch.run(user, meter);
                   });
  }
  const int64_t search_bytes =
      hits.overflowed() ? smallest_range_bytes(model, range.probes, queries.rows(), resources) : 0;
  return collect_in_range(hits, queries.rows(), search_bytes, resources);
}

int64_t smallest_range_bytes(const IvfModel& model, int64_t probes, int64_t queries, const Resources& resources) {
  const IvfWish wish{kRangeListLength, std::min(probes, model.lists()), 0, false};
  const int64_t plan = std::max(least_bytes(model, wish, queries, resources), least_bytes(model, wish, 1, resources));
  constexpr int64_t kFirstHits = 64 << 10;  // of a thread: its first two segments
  return plan + resources.threads() * kFirstHits + 64 * (queries + 1);
}

CollectedHits collect_in_range(RangeHits& hits, int64_t queries, int64_t search_bytes, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  ProgressMeter collecting("collect", queries, quiet);
  const int64_t bytes = hits.counted() * RangeHits::kBytesPerHit + 32 * (queries + 1) +
                        resources.threads() * RangeHits::kLargestSegmentBytes;
  const auto room = hits.counted() * 8 + 32 * (queries + 1);
  if (hits.overflowed() || room > resources.host_memory()->available()) {
    const int64_t found = hits.counted();
    hits.clear();
    throw NamedLimit("host", resources.host_memory()->used() + search_bytes + 2 * bytes,
                     fmt::format("{} vectors are in range, which takes {} beside the search, more than the host memory "
                                 "limit leaves; raise the limit, or lower the radius",
                                 found, format_bytes_up(bytes)));
  }
  return hits.collect(queries, collecting);
}

}  // namespace kith
