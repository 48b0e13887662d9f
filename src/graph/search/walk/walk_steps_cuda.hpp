// Plain steps of a walk, each of which waits for memory. Used when other blocks keep the multiprocessor busy meanwhile,
// as with many queries, or when a step has enough to compare for all warps of a block.
//
// Every warp determines which places are opened next, takes a share of their edges, skips seen places, and compares the
// codes of the others: eight threads per code, 16-byte loads, multiply-adds of four bytes. Entries nearer than the last
// of the beam are fresh and are merged into it (next_beam_cuda.hpp). A step waits twice for memory (lists, codes) and
// has two barriers.
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
  // The n-th edge of these places, or kNoEdge.
  __device__ uint32_t edge_at(const uint32_t* opened, int n) const {
    const auto list = static_cast<int>(static_cast<uint32_t>(n) * degree_inverse_ >> 16);  // n / degree, n being small
    const uint32_t from = opened[list];
    if (from >= task_.places) return kNoEdge;  // places of the tail have no edges
    return __ldg(task_.edges + int64_t{from} * task_.degree + (n - list * task_.degree));
  }

  // Writes the places to open next, at most the width, to `to`; returns their number. last_ is the position of the last
  // one: all up to it are opened, and marked as such when the beam moves. By one warp.
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
  // The same for steps of several rounds: one warp chooses for all.
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

  // Takes steps until all places of the beam are opened.
  KITH_DEVICE_INLINE void walk() {
    const int lists = min(kRound / task_.degree, kWalkOpened);  // per round
    const bool by_itself = task_.width <= lists;                // every warp determines the opened places itself
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
