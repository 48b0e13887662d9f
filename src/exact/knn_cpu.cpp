// k-NN search on the CPU: the scanner finds candidates, the canonical distance decides among them, and every query
// keeps its k best over all rows scanned.
#include "core/host_array.hpp"
#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "exact/cpu_scanner.hpp"
#include "exact/knn_backend.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

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

}  // namespace

std::unique_ptr<KnnBackend> make_knn_cpu(const SearchTask& task, const KnnCpuPlan& plan, const KeptRows* kept,
                                         const Resources& resources) {
  return std::make_unique<KnnCpu>(task, plan, kept == nullptr ? nullptr : kept->bits(), resources);
}

}  // namespace kith
