#include "exact/range_cpu.hpp"

#include "core/ordered_key.hpp"

namespace kith {

RangeCpu::RangeCpu(const SearchTask& task, const PlannedKnn& planned, const KnnInput& input, float most,
                   const Resources& results)
    : most_(most),
      scanner_(task, std::get<KnnCpuPlan>(planned.plan), input.kept == nullptr ? nullptr : input.kept->bits(),
               planned.resources()),
      hits_(results) {
  const int64_t length = std::get<KnnCpuPlan>(planned.plan).list_length;
  const int64_t bytes = CandidateScratch::bytes_for(length);
  scratch_memory_ = HostBuffer(results.threads() * bytes, "selection", planned.resources());
  for (int slot = 0; slot < results.threads(); ++slot) {
    scratch_.emplace_back(scratch_memory_.data() + slot * bytes, length);
  }
}

void RangeCpu::finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) {
  const CandidateScratch& scratch = scratch_[static_cast<size_t>(slot)];
  const int64_t count = list->drain(first_row, scratch, score);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t neighbor = scratch.neighbors[i];
    if (key_of_ordered(ordered_of(neighbor)) <= most_) hits_.add(slot, query, neighbor);
  }
}

std::unique_ptr<RangeBackend> make_range_cpu(const SearchTask& task, const PlannedKnn& planned, const KnnInput& input,
                                             float most, const Resources& results) {
  return std::make_unique<RangeCpu>(task, planned, input, most, results);
}

}  // namespace kith
