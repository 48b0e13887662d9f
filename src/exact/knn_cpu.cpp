// k-NN search on the CPU: the scanner finds candidates, the canonical distance decides among them, and every query
// keeps its k best over all rows scanned.
#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "exact/cpu_scanner.hpp"
#include "exact/knn_backend.hpp"
#include "exact/packed_base.hpp"
#include "kernels/select/candidate_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class KnnCpu final : public KnnBackend, private CandidateUser {
 public:
  KnnCpu(const SearchTask& task, const KnnCpuPlan& plan, const uint64_t* kept, const Resources& resources)
      : k_(task.scope.k),
        scanner_(task, plan, kept, resources),
        best_(plan.query_batch * k_, "the nearest so far", resources),
        scratch_memory_(resources.threads() * CandidateScratch::bytes_for(k_), "selection", resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      scratch_.emplace_back(scratch_memory_.data() + slot * CandidateScratch::bytes_for(k_), k_);
    }
  }

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
    list->make_room(scratch_[static_cast<size_t>(slot)], score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) override {
    list->finish(best(query), first_row, scratch_[static_cast<size_t>(slot)], score);
  }

  uint64_t* best(int64_t query) const { return best_.data() + query * k_; }

  const int64_t k_;
  CpuScanner scanner_;
  HostArray<uint64_t> best_;
  HostBuffer scratch_memory_;
  std::vector<CandidateScratch> scratch_;
};

}  // namespace

std::unique_ptr<KnnBackend> make_knn_cpu(const SearchTask& task, const KnnCpuPlan& plan, const KeptRows* kept,
                                         const Resources& resources) {
  return std::make_unique<KnnCpu>(task, plan, kept == nullptr ? nullptr : kept->bits(), resources);
}

std::shared_ptr<PreparedBase> prepare_base_cpu(const MatrixView& base, const PrepareOptions& options,
                                               const Resources& resources) {
  const DefaultFloatMode mode;
  const KeyKind kind = key_kind(options.metric);
  PanelFormat format = choose_panel_format(kind, options.queries, base.dtype(), base.cols(), cpu_extensions());
  const auto bytes_for = [&] { return PackedBase::bytes_for(format, base.rows(), base.cols(), resources.threads()); };
  const int64_t most = resources.host_memory()->available() / 2;  // a search needs memory too
  if (format == PanelFormat::screened && bytes_for() > most) format = PanelFormat::f32;
  const int64_t bytes = bytes_for();
  if (bytes > most) {
    throw OutOfMemory(fmt::format("it needs {}, more than half of the {} that the host memory limit leaves",
                                  format_bytes(bytes), format_bytes(resources.host_memory()->available())),
                      2 * bytes);
  }
  auto packed = std::make_shared<PackedBase>(kind, format, choose_centre(kind, base), base.rows(), resources);
  ProgressMeter meter("prepare", base.rows(), resources);
  packed->pack(base, options.check_finite, options.first_row, 1, meter, resources);
  meter.finish();
  return packed;
}

}  // namespace kith
