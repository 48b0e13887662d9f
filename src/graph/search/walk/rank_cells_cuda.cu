// Finds the nearest cells of many queries, by code keys, on the matrix units: a block multiplies sixteen queries with
// all centres, in rounds, and keeps the best kNearCells of each by (key, cell). Sixteen queries share the reading of
// the centres, which a walk that ranks for itself would read alone. With fewer queries, several blocks take a slice of
// the cells each, and the walk merges their results. Queries whose codes are not bytes are ranked by their walks.
#include "graph/search/walk/walk_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "graph/search/walk/code_query_cuda.hpp"

namespace kith {
namespace {

constexpr int kRankQueries = 16;  // rows of a matrix product
constexpr int kRankWarps = 4;
constexpr int kRankThreads = 32 * kRankWarps;
constexpr int kTileCells = 8;   // columns of a product
constexpr int kTilesAhead = 4;  // products per warp that share a query's fragments
constexpr int kRankRound = kRankWarps * kTilesAhead * kTileCells;
constexpr int kBest = static_cast<int>(kNearCells);
constexpr int kRankRoom = kBest + kRankRound;  // the best, and a round's candidates
constexpr int kRowPadding = 32;                // bytes, so that rows of queries begin in different banks

struct RankShared {
  uint64_t lists[kRankQueries][kRankRoom];
  uint64_t sorted[kRankWarps][kBest];
  int counts[kRankQueries];  // lengths of the lists
  uint32_t norms[kRankQueries];
  bool ranked[kRankQueries];
};

// Moves the best kBest of a list to its beginning; by one warp.
__device__ void keep_best(uint64_t* list, int& count, uint64_t* room) {
  const int have = count;
  for (int i = lane_index(); i < have; i += 32) {
    const uint64_t entry = list[i];
    int rank = 0;
    for (int j = 0; j < have; ++j) rank += list[j] < entry ? 1 : 0;
    if (rank < kBest) room[rank] = entry;
  }
  __syncwarp();
  const int kept = min(have, kBest);
  if (lane_index() < kept) list[lane_index()] = room[lane_index()];
  __syncwarp();
  if (lane_index() == 0) count = kept;
  __syncwarp();
}

__global__ void __launch_bounds__(kRankThreads)
    rank_cells_kernel(const __grid_constant__ WalkTaskCuda task, const __grid_constant__ InlineQueries given) {
  extern __shared__ __align__(16) int8_t rank_codes[];  // codes of the queries
  __shared__ RankShared shared;
  const int lane = lane_index();
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first_query = static_cast<int64_t>(blockIdx.x) * kRankQueries;
  const auto stride = static_cast<int>(task.stride);
  const int row_bytes = stride + kRowPadding;
  const DeviceRowsView queries = given.rows(task.queries);
  for (int i = warp; i < kRankQueries; i += kRankWarps) {
    const int64_t query = first_query + i;
    int8_t* const to = rank_codes + i * row_bytes;
    bool ranked = false;
    uint32_t norm = 0;
    if (query < queries.count && task.plain) {
      auto* const words = reinterpret_cast<uint32_t*>(to);
      norm = visit_plain_code(task, queries, query, [&](int at, uint32_t word) { words[at] = word; });
      ranked = true;
    } else if (query < queries.count) {
      const CodedQuery coded(task, queries, query);
      ranked = coded.finite() && coded.bytes();
      norm = coded.visit([&](int col, int level) { to[col] = static_cast<int8_t>(ranked ? level : 0); });
    } else {
      for (int col = lane; col < stride; col += 32) to[col] = 0;
    }
    if (lane == 0) {
      shared.ranked[i] = ranked;
      shared.norms[i] = task.kind == WalkKind::products ? 0 : norm;
      shared.counts[i] = 0;
    }
  }
  __syncthreads();
  // A lane holds rows `high` and `high` + 8 of a product, and cells 2 * `part` and 2 * `part` + 1 of each tile.
  const int high = lane / 4;
  const int part = lane % 4;
  const auto slice = static_cast<int>(blockIdx.y);
  const int slice_cells = (task.cells + task.rank_slices - 1) / task.rank_slices;
  const int first_cell = slice * slice_cells;
  const int end_cell = min(first_cell + slice_cells, task.cells);
  for (int first = first_cell; first < end_cell;) {
    const int tiles = first == first_cell ? 1 : kTilesAhead;  // a small first round bounds the later ones
    const int start = first + warp * tiles * kTileCells;
    int32_t sums[kTilesAhead][4] = {};
    for (int offset = part * 8; offset - part * 8 < stride; offset += 32) {
      uint32_t a[4] = {};
      if (offset < stride) {
        const auto low = load_vector<uint2>(rank_codes + high * row_bytes + offset);
        const auto other = load_vector<uint2>(rank_codes + (high + 8) * row_bytes + offset);
        a[0] = low.x;
        a[1] = other.x;
        a[2] = low.y;
        a[3] = other.y;
      }
      KITH_UNROLL
      for (int tile = 0; tile < kTilesAhead; ++tile) {
        if (tile >= tiles) break;
        const int cell = start + tile * kTileCells + high;
        uint32_t b[2] = {};
        if (cell < end_cell && offset < stride) {
          const auto code = __ldg(vectors<uint2>(task.centres + int64_t{cell} * task.stride + offset));
          b[0] = code.x;
          b[1] = code.y;
        }
        ptx::multiply_add(sums[tile], a, b);
      }
    }
    KITH_UNROLL
    for (int tile = 0; tile < kTilesAhead; ++tile) {
      if (tile >= tiles) break;
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int row = high + i / 2 * 8;
        const int cell = start + tile * kTileCells + 2 * part + i % 2;
        if (cell >= end_cell || !shared.ranked[row]) continue;
        const auto product = static_cast<uint32_t>(sums[tile][i]);
        const uint32_t key =
            task.kind == WalkKind::products ? 0U - product : shared.norms[row] + task.centre_norms[cell] - 2U * product;
        const uint64_t entry = pack_neighbor(key ^ kSignBit, static_cast<uint32_t>(cell));
        uint64_t* const list = shared.lists[row];
        if (first > first_cell && entry > list[kBest - 1]) continue;
        list[atomicAdd(&shared.counts[row], 1)] = entry;
      }
    }
    __syncthreads();
    for (int row = warp; row < kRankQueries; row += kRankWarps) {
      keep_best(shared.lists[row], shared.counts[row], shared.sorted[warp]);
    }
    __syncthreads();
    first += kRankWarps * tiles * kTileCells;
  }
  for (int i = static_cast<int>(threadIdx.x); i < kRankQueries * kBest; i += kRankThreads) {
    const int row = i / kBest;
    const int64_t query = first_query + row;
    if (query >= queries.count) break;
    const bool there = shared.ranked[row] && i % kBest < shared.counts[row];
    if (task.rank_slices > 1) {
      auto* const out = reinterpret_cast<uint64_t*>(task.near_cells) + (query * task.rank_slices + slice) * kBest;
      out[i % kBest] = there ? shared.lists[row][i % kBest] : kPadding;
    } else {
      task.near_cells[query * kBest + i % kBest] = there ? row_of(shared.lists[row][i % kBest]) : kNotRanked;
    }
  }
}

}  // namespace

void launch_rank_cells(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream) {
  allow_all_shared_memory(rank_cells_kernel);
  const int64_t blocks = divide_up(task.queries.count, int64_t{kRankQueries});
  const Grid grid = Grid::of(blocks, task.rank_slices, kRankThreads);
  launch(rank_cells_kernel, grid.with_shared(kRankQueries * (task.stride + kRowPadding)), stream, task, given);
}

}  // namespace kith
