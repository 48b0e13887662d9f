#include "ivf/search/piece_steps_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/select/select_entry.hpp"

#include <cstdint>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__global__ void __launch_bounds__(kThreads) piece_offsets_kernel(PieceRange piece, int64_t* offsets) {
  const int64_t list = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (list > piece.lists) return;
  const int64_t at = piece.offsets[list];
  const int64_t within = at < piece.first ? piece.first : at > piece.end ? piece.end : at;
  offsets[list] = within - piece.first;
}

__device__ bool is_here(const PieceRange& piece, uint64_t probe) {
  if (probe == kPadding || row_of(probe) >= piece.lists) return false;
  const int64_t begin = piece.offsets[row_of(probe)];
  const int64_t end = piece.offsets[row_of(probe) + 1];
  return begin < end && begin >= piece.first && end <= piece.end;
}

// Calls use(slot, probe, place) by each lane that has one of the query's lists of the piece; returns their number. By a
// warp.
template <typename Use>
__device__ uint32_t for_lists_here(const RankedProbes& ranked, const PieceRange& piece, int64_t query, const Use& use) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  uint32_t placed = 0;
  for (int64_t first = 0; first < ranked.slots; first += 32) {
    const uint64_t probe = first + lane < ranked.slots ? ranked.probes[query * ranked.slots + first + lane] : kPadding;
    const bool here = is_here(piece, probe);
    const unsigned all = __ballot_sync(0xFFFFFFFFu, here);
    if (here) use(probe, placed + static_cast<uint32_t>(__popc(all & ((1u << lane) - 1))));
    placed += static_cast<uint32_t>(__popc(all));
  }
  return placed;
}

constexpr int kWarpQueries = 4;  // one after the other

__global__ void __launch_bounds__(kThreads)
    count_here_kernel(RankedProbes ranked, PieceRange piece, PieceProbes* found) {
  __shared__ uint32_t all_queries;
  __shared__ uint32_t all_most;
  if (threadIdx.x == 0) all_queries = all_most = 0;
  __syncthreads();
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32) * kWarpQueries;
  uint32_t queries = 0;
  uint32_t most = 0;
  for (int64_t query = first; query < first + kWarpQueries && query < ranked.queries; ++query) {
    const uint32_t here = for_lists_here(ranked, piece, query, [](uint64_t, uint32_t) {});
    queries += here > 0 ? 1 : 0;
    most = here > most ? here : most;
  }
  if (threadIdx.x % 32 == 0 && queries > 0) {
    atomicAdd(&all_queries, queries);
    atomicMax(&all_most, most);
  }
  __syncthreads();
  if (threadIdx.x != 0 || all_queries == 0) return;
  atomicAdd(&found->queries, all_queries);
  atomicMax(&found->most, all_most);
}

// A warp for each query.
__global__ void __launch_bounds__(kThreads) take_here_kernel(const __grid_constant__ TakeHereTask task) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  if (query >= task.ranked.queries) return;
  const uint32_t here = for_lists_here(task.ranked, task.piece, query, [](uint64_t, uint32_t) {});
  if (here == 0) return;
  uint32_t place = 0;
  if (lane == 0) place = atomicAdd(task.taken, 1u);
  const auto to = static_cast<int64_t>(__shfl_sync(0xFFFFFFFFu, place, 0));
  uint64_t* const probes = task.here.probes + to * task.most;
  for_lists_here(task.ranked, task.piece, query, [&](uint64_t probe, uint32_t at) { probes[at] = probe; });
  for (int64_t at = here + lane; at < task.most; at += 32) probes[at] = kPadding;
  const float* const row = task.rows + query * task.row_stride;
  for (int64_t col = lane; col < task.cols; col += 32) task.here.rows[to * task.cols + col] = row[col];
  if (lane != 0) return;
  task.here.numbers[to] = static_cast<uint32_t>(query);
  task.here.bounds[to] = task.bounds[query];
}

// A thread for each entry of both lists, as in merge_found_kernel.
__global__ void __launch_bounds__(kThreads) merge_here_kernel(const __grid_constant__ MergeHereTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= 2 * task.queries * task.k) return;
  const int64_t query = i / (2 * task.k);
  const int64_t at = i % (2 * task.k);
  const bool first = at < task.k;
  const int64_t place = first ? at : at - task.k;
  const uint64_t* const best = task.best + int64_t{task.numbers[query]} * task.k;
  const uint64_t* const found = task.found + query * task.k;
  const uint64_t entry = (first ? best : found)[place];
  // Padding of the first list comes behind all that is real; that of the second would come to the same places.
  if (!first && entry == kPadding) return;
  const int64_t to = place + rank_in_list(first ? found : best, task.k, entry);
  if (to < task.k) task.merged[query * task.k + to] = entry;
}

__global__ void __launch_bounds__(kThreads) put_here_kernel(const __grid_constant__ MergeHereTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.queries * task.k) return;
  const int64_t query = task.numbers[i / task.k];
  const int64_t at = i % task.k;
  const uint64_t entry = task.merged[i];
  task.best[query * task.k + at] = entry;
  if (at == task.k - 1 && entry < task.bounds[query]) task.bounds[query] = entry;  // padding is the largest
}

constexpr int kGatherThreads = 128;

// A block for each list. Word: the largest that codes consist of.
template <typename Word>
__global__ void __launch_bounds__(kGatherThreads) gather_sample_kernel(const __grid_constant__ SampleTask task) {
  const int64_t list = blockIdx.x;
  int64_t to = task.starts[list];
  int64_t begin = 0;
  int64_t length = 0;
  for (int64_t segment = 0; segment <= task.segment; ++segment) {
    to += length < task.each ? length : task.each;  // of the segment before
    begin = task.offsets[segment * (task.lists + 1) + list];
    length = task.offsets[segment * (task.lists + 1) + list + 1] - begin;
  }
  const bool whole = length <= task.each;
  const int64_t rows = whole ? length : task.each;
  const int64_t run = whole ? length : task.run;
  const int64_t apart = whole ? length : length / (task.each / task.run);
  const int64_t words = task.code_bytes / static_cast<int64_t>(sizeof(Word));
  const auto place_of = [&](int64_t row) { return begin + row / run * apart + row % run; };
  for (int64_t i = threadIdx.x; i < rows * words; i += kGatherThreads) {
    const int64_t row = i / words;
    vectors<Word>(task.to_codes)[to * words + i] = vectors<Word>(task.codes)[place_of(row) * words + i % words];
  }
  for (int64_t row = threadIdx.x; row < rows; row += kGatherThreads) task.to_rows[to + row] = task.rows[place_of(row)];
}

}  // namespace

void launch_piece_offsets(const PieceRange& piece, int64_t* offsets, cudaStream_t stream) {
  launch(piece_offsets_kernel, Grid::over(piece.lists + 1, kThreads), stream, piece, offsets);
}

void launch_count_here(const RankedProbes& ranked, const PieceRange& piece, PieceProbes* found, cudaStream_t stream) {
  const int64_t warps = divide_up(ranked.queries, int64_t{kWarpQueries});
  launch(count_here_kernel, Grid::over(32 * warps, kThreads), stream, ranked, piece, found);
}

void launch_take_here(const TakeHereTask& task, cudaStream_t stream) {
  launch(take_here_kernel, Grid::over(32 * task.ranked.queries, kThreads), stream, task);
}

void launch_merge_here(const MergeHereTask& task, cudaStream_t stream) {
  launch(merge_here_kernel, Grid::over(2 * task.queries * task.k, kThreads), stream, task);
  launch(put_here_kernel, Grid::over(task.queries * task.k, kThreads), stream, task);
}

void launch_gather_sample(const SampleTask& task, cudaStream_t stream) {
  const Grid grid = Grid::of(task.lists, kGatherThreads);
  const auto suits = [&](int64_t bytes) { return task.code_bytes % bytes == 0 && is_aligned(task.codes, bytes); };
  if (suits(16)) return launch(gather_sample_kernel<uint4>, grid, stream, task);
  if (suits(4)) return launch(gather_sample_kernel<uint32_t>, grid, stream, task);
  launch(gather_sample_kernel<uint8_t>, grid, stream, task);
}

}  // namespace kith
