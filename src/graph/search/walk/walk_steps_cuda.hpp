// The steps of a walk that waits for memory in each: where other blocks have the multiprocessor meanwhile, as of many
// queries, or where a step has enough to compare for all warps of a block.
//
// Every warp finds what is opened next, takes some of the edges, asks the seen table, and compares the codes of the
// others, eight threads a code, 16 bytes a load, four bytes a multiply-add. What is nearer than the last of the beam is
// fresh, and enters it (next_beam_cuda.hpp). A step waits twice for memory (lists, codes), and twice for the block.
#pragma once

#include "graph/search/walk/walk_start_cuda.hpp"

namespace kith {

template <int kWarps, bool kPacked>
class WalkSteps : public WalkStart<kWarps, true, kPacked> {
  using Start = WalkStart<kWarps, true, kPacked>;
  using Start::beam_;
  using Start::bounds;
  using Start::compare_round;
  using Start::counts_;
  using Start::enter_all;
  using Start::first_;
  using Start::kRound;
  using Start::kStaged;
  using Start::lane;
  using Start::last_;
  using Start::staged_;
  using Start::start;
  using Start::sync;
  using Start::task_;
  using Start::warp;
  using Start::write;

 public:
  __device__ WalkSteps(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts)
      : Start(task, memory, counts),
        degree_inverse_((65536U + static_cast<uint32_t>(task.degree) - 1U) / static_cast<uint32_t>(task.degree)) {}

  KITH_DEVICE_INLINE void run(const DeviceRowsView& queries, int64_t query) {
    if (!start(queries, query)) return;
    walk();
    write(query);
    KITH_WALK_PART_ENDS(write)
  }

 private:
  // The n-th edge of these places; kNoEdge where there is none.
  __device__ uint32_t edge_at(const uint32_t* opened, int n) const {
    const auto list = static_cast<int>(static_cast<uint32_t>(n) * degree_inverse_ >> 16);  // n / degree, n being small
    const uint32_t from = opened[list];
    if (from >= task_.places) return kNoEdge;  // of the tail
    return __ldg(task_.edges + int64_t{from} * task_.degree + (n - list * task_.degree));
  }

  // Chooses what is opened next, up to the width, and puts it where `to` is; returns how many. last_ is where the last
  // of these stands: all up to there are opened, and marked when the beam moves. By a warp.
  KITH_DEVICE_INLINE int open(uint32_t* to) {
    int count = 0;
    for (int start = first_; start < beam_.size && count < task_.width; start += 32) {
      const int i = start + lane();
      const uint64_t entry = i < beam_.size ? beam_.now[i] : kOpenedBit;
      const bool closed = (entry & kOpenedBit) == 0;
      const unsigned all = __ballot_sync(kAllLanes, closed);
      const int number = count + __popc(all & ((1U << lane()) - 1U));
      const bool chosen = closed && number < task_.width;
      if (chosen) to[number] = row_of(entry) >> 1;
      const unsigned some = __ballot_sync(kAllLanes, chosen);
      if (some != 0) last_ = start + 31 - __clz(static_cast<int>(some));
      count += __popc(some);
    }
    __syncwarp();
    return count;
  }
  // The same where a step takes several rounds: one warp chooses for all.
  KITH_DEVICE_INLINE int open_for_all() {
    if (warp() == 0) {
      const int opened = open(counts_.places);
      if (lane() == 0) {
        counts_.opened = opened;
        counts_.last = last_;
      }
    }
    sync();
    last_ = counts_.last;
    return counts_.opened;
  }

  // Steps until all places of the beam were opened.
  KITH_DEVICE_INLINE void walk() {
    const int lists = min(kRound / task_.degree, kWalkOpened);  // of a round
    const bool by_itself = task_.width <= lists;                // every warp knows what is opened
    uint32_t* const own = staged_ + kStaged;
    for (;;) {
      const int open_count = by_itself ? open(own) : open_for_all();
      if (open_count == 0) return;
      KITH_WALK_PART_ENDS(choose)
      for (int opened = 0; opened < open_count; opened += lists) {
        const uint32_t* const from = by_itself ? own : counts_.places + opened;
        compare_round(min(lists, open_count - opened) * task_.degree, bounds(),
                      [&](int i, bool has) { return has ? edge_at(from, i) : kNoEdge; });
        KITH_WALK_PART_ENDS(lists)
        sync();
        KITH_WALK_PART_ENDS(wait)
        enter_all();
        KITH_WALK_PART_ENDS(enter)
      }
    }
  }

  const uint32_t degree_inverse_;  // to divide by the degree
};

}  // namespace kith
