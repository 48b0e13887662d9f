// Walks on a GPU (walk.hpp says what they find; this finds the same). A block has one query: from its values to its
// code, the nearest cells, their entries, and step after step until all places of the beam were opened. The host is not
// asked on the way.
//
// A step of one of many queries: every warp finds what is opened next, takes some of the edges, asks the seen table,
// and compares the codes of the others, eight threads a code, 16 bytes a load, four bytes a multiply-add. What is
// nearer than the last of the beam is fresh, and enters it (next_beam_cuda.hpp). It waits twice for memory (lists,
// codes), and twice for the block; other blocks have the processor meanwhile. Few queries have no others:
// walk_ahead_cuda.hpp.
#include "graph/search/walk/walk_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/search/walk/walk_ahead_cuda.hpp"

#include <cuda_runtime.h>

#include <type_traits>

namespace kith {
namespace {

template <int kWarps, bool kPacked>
class Walker : public WalkStart<kWarps, true, kPacked> {
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
  __device__ Walker(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts)
      : Start(task, memory, counts),
        degree_inverse_((65536U + static_cast<uint32_t>(task.degree) - 1U) / static_cast<uint32_t>(task.degree)) {}

  KITH_DEVICE_INLINE void run(const DeviceRowsView& queries, int64_t query) {
    if (!start(queries, query)) return;
    walk();
    write(query);
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
      for (int opened = 0; opened < open_count; opened += lists) {
        const uint32_t* const from = by_itself ? own : counts_.places + opened;
        compare_round(min(lists, open_count - opened) * task_.degree, bounds(),
                      [&](int i, bool has) { return has ? edge_at(from, i) : kNoEdge; });
        sync();
        enter_all();
      }
    }
  }

  const uint32_t degree_inverse_;  // to divide by the degree
};

// The walk of a block: kHeld entries of the beam in each lane of a warp that looks ahead; 0: as many queries walk.
template <int kWarps, int kHeld, bool kPacked>
struct WalkOf {
  using Type = WalkAhead<kWarps, kHeld, kPacked>;
};
template <int kWarps, bool kPacked>
struct WalkOf<kWarps, 0, kPacked> {
  using Type = Walker<kWarps, kPacked>;
};

// Blocks that a multiprocessor has room for.
constexpr int walk_blocks(int warps, int held) {
  if (warps > 4) return 1;
  if (held > 0) return warps == 4 ? 6 : 8;
  return warps <= 2 ? 24 / warps : 1;
}

template <int kWarps, int kHeld, bool kPacked>
__global__ void __launch_bounds__(kWarps * 32, walk_blocks(kWarps, kHeld))
    walk_kernel(const __grid_constant__ WalkTaskCuda task, const __grid_constant__ InlineQueries given) {
  extern __shared__ __align__(16) std::byte memory[];
  __shared__ WalkCounts counts;
  const DeviceRowsView queries = given.rows(task.queries);
  typename WalkOf<kWarps, kHeld, kPacked>::Type(task, memory, counts).run(queries, blockIdx.x);
}

template <int kWarps, int kHeld, bool kPacked>
void launch_kernel(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream) {
  auto* const kernel = walk_kernel<kWarps, kHeld, kPacked>;
  allow_all_shared_memory(kernel);
  Grid grid = Grid::of(task.queries.count, kWarps * 32).with_shared(task.layout.bytes);
  if (task.near_cells != nullptr) grid = grid.chained();
  launch(kernel, grid, stream, task, given);
}

template <int kWarps, int kHeld = 0>
void launch_with(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream) {
  if (task.packed) return launch_kernel<kWarps, kHeld, true>(task, given, stream);
  launch_kernel<kWarps, kHeld, false>(task, given, stream);
}

}  // namespace

void launch_walks(WalkTaskCuda task, const InlineQueries& given, int multiprocessors, cudaStream_t stream) {
  const WalkForm form = walk_form(task, multiprocessors);
  if (task.near_cells != nullptr) launch_rank_cells(task, given, stream);
  task.seen = form.seen(task);
  task.layout = form.layout(task);
  task.ahead = walk_lists_ahead(form.warps);
  if (form.warps == 1) return launch_with<1>(task, given, stream);
  const auto launch_of = [&](auto warps) {
    constexpr int kWarps = decltype(warps)::value;
    if (!form.ahead) return launch_with<kWarps>(task, given, stream);
    if (task.beam <= 64) return launch_with<kWarps, 2>(task, given, stream);
    return launch_with<kWarps, 4>(task, given, stream);
  };
  if (form.warps == 2) return launch_of(std::integral_constant<int, 2>());
  if (form.warps == 4) return launch_of(std::integral_constant<int, 4>());
  launch_of(std::integral_constant<int, kWalkMostWarps>());
}

}  // namespace kith
