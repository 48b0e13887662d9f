#include "exact/range_cpu.hpp"

#include "core/ordered_key.hpp"

#include <algorithm>

namespace kith {

RangeCpu::RangeCpu(const SettledSearch& search, float most, const Resources& results)
    : most_(most),
      scanner_(search.task(), std::get<KnnCpuPlan>(search.plan()),
               search.kept() == nullptr ? nullptr : search.kept()->bits(), search.resources()),
      hits_(results) {
  const int64_t length = std::get<KnnCpuPlan>(search.plan()).list_length;
  const int64_t bytes = CandidateScratch::bytes_for(length);
  scratch_memory_ = HostBuffer(results.threads() * bytes, "selection", search.resources());
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

// The keys that are not above most_, `within` of them, packed with their rows.
void RangeCpu::put_within(const float* keys, int64_t within, uint32_t row, uint64_t* to) const {
  for (int64_t i = 0, next = 0; next < within; ++i) {
    to[next] = pack_neighbor(ordered_key(keys[i]), row + static_cast<uint32_t>(i));
    next += keys[i] <= most_;
  }
}

void RangeCpu::take_keys(int64_t query, uint32_t first_row, const float* keys, int64_t count, int slot) {
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

std::unique_ptr<RangeBackend> make_range_cpu(const SettledSearch& search, float most, const Resources& results) {
  return std::make_unique<RangeCpu>(search, most, results);
}

}  // namespace kith
