// Sets of rows compared by a user's metric: every distance is computed, and is the key.
#include "core/divide.hpp"
#include "graph/lists/pairs/pair_scan.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kWidth = custom::kPanelRows;

class CustomPairScan final : public PairScan {
 public:
  CustomPairScan(const PairRows& rows, int64_t most_queries, int64_t most_rows, const Resources& resources)
      : all_(rows),
        scratch_(kWidth * rows.cols(), "a set of rows", resources),
        queries_(most_queries * rows.cols(), "a set of rows", resources),
        panels_(round_up(most_rows, kWidth) * rows.cols(), "a set of rows", resources),
        query_limits_(most_queries, "a set of rows", resources),
        row_limits_(most_rows, "a set of rows", resources) {}

  void set_queries(const uint32_t* rows, int64_t count) override {
    query_count_ = count;
    for (int64_t i = 0; i < count; ++i) widen_row(all_.view(), all_.row_at(rows[i]), queries_.data() + i * all_.cols());
    std::fill_n(query_limits_.data(), count, kNoKey);
  }
  void set_rows(const uint32_t* rows, int64_t count) override {
    row_count_ = count;
    const int64_t cols = all_.cols();
    for (int64_t first = 0; first < count; first += kWidth) {
      const int64_t here = std::min(kWidth, count - first);
      for (int64_t i = 0; i < here; ++i) {
        widen_row(all_.view(), all_.row_at(rows[first + i]), scratch_.data() + i * cols);
      }
      pack_units(scratch_.data(), cols, here, cols, kWidth, panels_.data() + first * cols);
    }
    std::fill_n(row_limits_.data(), count, kNoKey);
  }
  void limit_query(int64_t query, float key) override { query_limits_[query] = key; }
  void limit_row(int64_t row, float key) override { row_limits_[row] = key; }
  bool exact() const override { return true; }

  void run_first(int64_t, PairFirsts& firsts) override {  // all of them
    std::vector<uint32_t> places(static_cast<size_t>(row_count_));
    std::vector<float> found(static_cast<size_t>(round_up(row_count_, kWidth)));
    std::iota(places.begin(), places.end(), 0u);
    for (int64_t q = 0; q < query_count_; ++q) {
      for (int64_t first = 0; first < row_count_; first += kWidth) distances(q, first, found.data() + first);
      firsts.on_first(q, places.data(), found.data(), row_count_);
    }
  }

  void run(PairHits& hits) override {
    for (int64_t first = 0; first < row_count_; first += kWidth) {
      const int64_t here = std::min(kWidth, row_count_ - first);
      for (int64_t q = 0; q < query_count_; ++q) {
        float keys[kWidth];
        distances(q, first, keys);
        for (int64_t i = 0; i < here; ++i) {
          const bool for_query = keys[i] <= query_limits_[q];
          const bool for_row = keys[i] <= row_limits_[first + i];
          if (for_query || for_row) hits.on_pair({q, first + i, keys[i], keys[i], for_query, for_row});
        }
      }
    }
  }

 private:
  // Distances of a query and a panel.
  void distances(int64_t query, int64_t first_row, float* keys) const {
    const custom::PanelMetric& metric = *all_.custom();
    metric.distances(metric.metric, queries_.data() + query * all_.cols(), panels_.data() + first_row * all_.cols(),
                     all_.cols(), keys);
  }

  const PairRows& all_;
  HostArray<float> scratch_;
  HostArray<float> queries_;
  HostArray<float> panels_;
  HostArray<float> query_limits_;  // NaN: nothing matters
  HostArray<float> row_limits_;
  int64_t query_count_ = 0;
  int64_t row_count_ = 0;
};

}  // namespace

std::unique_ptr<PairScan> make_custom_pair_scan(const PairRows& rows, int64_t most_queries, int64_t most_rows,
                                                const Resources& resources) {
  return std::make_unique<CustomPairScan>(rows, most_queries, most_rows, resources);
}

}  // namespace kith
