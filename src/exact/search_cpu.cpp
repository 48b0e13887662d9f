// Exact search on the CPU: the scanner finds candidates, and the canonical distance decides among them.
#include "core/host_array.hpp"
#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "exact/cpu_scanner.hpp"
#include "exact/exact_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace kith {
namespace {

// Every query keeps its k best over all rows scanned.
class KnnCpu final : public KnnBackend, private CandidateUser {
 public:
  KnnCpu(const SearchTask& task, const KnnCpuPlan& plan, const uint64_t* kept, const Resources& resources)
      : k_(task.k),
        scanner_(task, plan, kept, resources),
        best_(plan.query_batch * k_, "the nearest so far", resources) {}

  void begin(const MatrixView& queries, int64_t first_query) override {
    scanner_.load(queries, first_query);
    std::fill_n(best(0), queries.rows() * k_, kPadding);
  }

  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    scanner_.scan(base, first_row, ready, meter, *this);
  }

  void finish(uint64_t* neighbors) override { std::copy_n(best(0), scanner_.queries() * k_, neighbors); }

 private:
  float threshold(int64_t query) const override {
    const uint64_t kth = best(query)[k_ - 1];
    if (kth == kPadding) return kInfinity;
    const float key = key_of_ordered(ordered_of(kth));
    if (std::isnan(key)) return kInfinity;  // it excludes nothing
    return key;
  }
  bool ties_may_count() const override { return false; }
  void make_room(CandidateList* list, int64_t, uint32_t, int slot, const RowScorer& score) override {
    list->make_room(scanner_.scratch(slot), score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) override {
    list->finish(best(query), first_row, scanner_.scratch(slot), score);
  }

  uint64_t* best(int64_t query) const { return best_.data() + query * k_; }

  const int64_t k_;
  CpuScanner scanner_;
  HostArray<uint64_t> best_;
};

// Range search: whatever the scanner cannot exclude gets its canonical distance, and stays if that is in
// range. The threshold never falls, so that time grows with what is found.
class RangeCpu final : public RangeBackend, private CandidateUser {
 public:
  // Rows with keys up to `most` are in range. Hits are kept in memory of `results`, which the plan does not count.
  RangeCpu(const PlannedSearch& search, float most, const Resources& results)
      : most_(most),
        scanner_(search.task(), search.plan_as<KnnCpuPlan>(),
                 search.kept() == nullptr ? nullptr : search.kept()->bits(), search.resources()),
        hits_(results) {}

  void begin(const MatrixView& queries, int64_t first_query) override { scanner_.load(queries, first_query); }
  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    scanner_.scan(base, first_row, ready, meter, *this);
  }
  CollectedHits finish(ProgressMeter& meter) override { return hits_.collect(scanner_.queries(), meter); }
  bool hand_out(int64_t* offsets, const SortedUse& use, ProgressMeter& meter) override {
    return hits_.hand_out(scanner_.queries(), offsets, use, meter);
  }
  bool overflowed() const override { return hits_.overflowed(); }
  int64_t counted() const override { return hits_.counted(); }
  void clear() override { hits_.clear(); }
  void only_count() override { hits_.only_count(); }

 private:
  float threshold(int64_t) const override { return most_; }
  bool ties_may_count() const override { return true; }
  bool takes_keys() const override { return true; }
  void take_keys(int64_t query, uint32_t first_row, const float* keys, int64_t count, int slot) override {
    constexpr int64_t kGroup = 512;
    static_assert(kGroup <= RangeHits::kMostKeys);
    const auto count_within = [&](const float* some, int64_t number) {
      return std::count_if(some, some + number, [&](float key) { return key <= most_; });
    };
    for (int64_t at = 0; at < count;) {
      const float* const mine = keys + at;
      const uint32_t row = first_row + static_cast<uint32_t>(at);
      int64_t here = std::min(kGroup, count - at);
      int64_t within = count_within(mine, here);
      if (within == here) {
        hits_.add_keys(slot, query, row, mine, here);
      } else if (within > 0) {  // room takes memory
        const std::span<uint64_t> room = hits_.room(slot, query, here);
        if (!room.empty()) {
          if (static_cast<int64_t>(room.size()) < here) {
            here = static_cast<int64_t>(room.size());
            within = count_within(mine, here);
          }
          put_within(mine, within, row, room.data());
        }
        hits_.taken(slot, within);
      }
      at += here;
    }
  }
  void make_room(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) override {
    finish(list, query, first_row, slot, score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) override {
    const CandidateScratch& scratch = scanner_.scratch(slot);
    const int64_t within = list->drain_within(first_row, most_, scratch, score);
    hits_.add(slot, query, scratch.neighbors, within);
  }

  void put_within(const float* keys, int64_t within, uint32_t row, uint64_t* to) const {
    for (int64_t i = 0, next = 0; next < within; ++i) {
      to[next] = pack_neighbor(ordered_key(keys[i]), row + static_cast<uint32_t>(i));
      next += keys[i] <= most_;
    }
  }

  const float most_;
  CpuScanner scanner_;
  RangeHits hits_;
};

// The keys that are not above most_, `within` of them, packed with their rows.
}  // namespace

std::unique_ptr<KnnBackend> make_knn_cpu(const SearchTask& task, const KnnCpuPlan& plan, const KeptRows* kept,
                                         const Resources& resources) {
  return std::make_unique<KnnCpu>(task, plan, kept == nullptr ? nullptr : kept->bits(), resources);
}

std::unique_ptr<RangeBackend> make_range_cpu(const PlannedSearch& search, float most, const Resources& results) {
  return std::make_unique<RangeCpu>(search, most, results);
}

}  // namespace kith
