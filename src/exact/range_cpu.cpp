#include "exact/range_cpu.hpp"

#include "core/ordered_key.hpp"
#include "core/ordered_number.hpp"

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
  for (int64_t at = 0; at < count;) {
    const std::span<uint64_t> room = hits_.room(slot, query, std::min(kGroup, count - at));
    const int64_t here = room.empty() ? count - at : static_cast<int64_t>(room.size());
    const float* const mine = keys + at;
    const int64_t within = std::count_if(mine, mine + here, [&](float key) { return key <= most_; });
    if (!room.empty()) {
      const uint32_t row = first_row + static_cast<uint32_t>(at);
      uint64_t* const to = room.data();
      if (within == here) {
        for (int64_t i = 0; i < here; ++i) {
          to[i] = pack_neighbor(ordered_number(mine[i]), row + static_cast<uint32_t>(i));
        }
      } else if (within > 0) {
        for (int64_t i = 0, next = 0; next < within; ++i) {
          to[next] = pack_neighbor(ordered_key(mine[i]), row + static_cast<uint32_t>(i));
          next += mine[i] <= most_;
        }
      }
    }
    hits_.taken(slot, within);
    at += here;
  }
}

std::unique_ptr<RangeBackend> make_range_cpu(const SearchTask& task, const PlannedKnn& planned, const KnnInput& input,
                                             float most, const Resources& results) {
  return std::make_unique<RangeCpu>(task, planned, input, most, results);
}

}  // namespace kith
