#include "exact/range_cpu.hpp"

#include "core/ordered_key.hpp"

#include <algorithm>

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
  const uint32_t most = ordered_key(most_);
  int64_t within = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t neighbor = scratch.neighbors[i];
    scratch.neighbors[within] = neighbor;
    within += ordered_of(neighbor) <= most;  // a NaN comes after every key
  }
  hits_.add(slot, query, scratch.neighbors, within);
}

void RangeCpu::take_keys(int64_t query, uint32_t first_row, const float* keys, int64_t count, int slot) {
  constexpr int64_t kGroup = 256;
  uint64_t neighbors[kGroup];
  for (int64_t at = 0; at < count; at += kGroup) {
    int64_t within = 0;
    for (int64_t i = at; i < std::min(at + kGroup, count); ++i) {
      neighbors[within] = pack_neighbor(ordered_key(keys[i]), first_row + static_cast<uint32_t>(i));
      within += keys[i] <= most_;
    }
    hits_.add(slot, query, neighbors, within);
  }
}

std::unique_ptr<RangeBackend> make_range_cpu(const SearchTask& task, const PlannedKnn& planned, const KnnInput& input,
                                             float most, const Resources& results) {
  return std::make_unique<RangeCpu>(task, planned, input, most, results);
}

}  // namespace kith
