#include "graph/cells/cell_workspace_cuda.hpp"

#include "graph/cells/cell_training.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostPairs = int64_t{1} << 26;
constexpr int64_t kFewestPairs = int64_t{1} << 16;  // a tile of slots with a tile of rows has half as many
constexpr int64_t kPairsPerRow = 16;
constexpr int64_t kQueryBytes = int64_t{640} << 20;
constexpr int64_t kPartBytes = int64_t{256} << 20;
constexpr int64_t kMostSlots = int64_t{1} << 28;
constexpr int64_t kSpillBytes = 16;
constexpr int kMostShift = 12;
constexpr int kFewShifts = 2;     // that are tried before inboxes are made smaller
constexpr int kMostHalvings = 2;  // of inboxes
constexpr int64_t kFewestSlots = 8;

int64_t inbox_slots(int64_t length) {
  constexpr int64_t kMost = 256;
  int64_t slots = 32;
  while (slots < kMost && slots < length + length / 4) slots *= 2;
  return slots;
}

}  // namespace

CellSpacePlan lay_out_cell_space(const CellSpaceProblem& problem, int shift) {
  struct Open : CellSpacePlan {
    using WorkspaceLayout::take;
  };
  Open plan;
  plan.pair_capacity = std::max(std::clamp(kPairsPerRow * problem.rows, 4 * kFewestPairs, kMostPairs) >> shift, kFewestPairs);
  plan.spill_capacity = std::max(plan.pair_capacity / 8, 2 * kFewestPairs);
  plan.inbox_slots = std::max<int64_t>(inbox_slots(problem.length) >> problem.inbox_halvings, kFewestSlots);
  const int64_t tile_bytes = kQueryTile * problem.chunks * kChunkBytes;
  plan.tiles = std::clamp<int64_t>((kQueryBytes >> shift) / tile_bytes, 1, std::max<int64_t>(plan.pair_capacity / kQueryTile, 1));
  const int64_t part_bytes = kQueryTile * cell_parts(problem.length).stride() * 4;
  plan.own_tiles = part_bytes == 0 ? plan.tiles : std::clamp<int64_t>((kPartBytes >> shift) / part_bytes, 1, plan.tiles);
  plan.slots = std::max(kMostSlots >> shift, problem.rows);

  plan.inboxes = plan.take(problem.rows * plan.inbox_slots, 8);
  plan.inbox_counts = plan.take(problem.rows, 4);
  plan.pairs = plan.take(plan.pair_capacity, 8);
  for (int64_t& spilled : plan.spilled) spilled = plan.take(plan.spill_capacity, kSpillBytes);
  plan.spilled_count = plan.take(1, 4);
  plan.pair_counts = plan.take(kCellPiecesAhead, 4);
  plan.spill_counts = plan.take(kCellPiecesAhead, 4);
  plan.queries = plan.take(plan.tiles, tile_bytes);
  plan.parts = plan.take(plan.own_tiles, part_bytes);
  plan.slot_limits = plan.take(plan.tiles * kQueryTile, 8);
  plan.next = plan.take(problem.cells, 4);
  return plan;
}

CellSpacePlan plan_cell_space(const CellSpaceProblem& problem, int64_t available) {
  // Small inboxes before small pieces: what does not fit an inbox is brought in later.
  for (CellSpaceProblem smaller = problem;; ++smaller.inbox_halvings) {
    const bool last = smaller.inbox_halvings == kMostHalvings;
    for (int shift = 0; shift <= (last ? kMostShift : kFewShifts); ++shift) {
      const CellSpacePlan plan = lay_out_cell_space(smaller, shift);
      if (plan.bytes <= available || (last && shift == kMostShift)) return plan;
    }
  }
}

int64_t enough_for_cells(const MatrixView& x, int64_t k, const CellParams& params) {
  constexpr int64_t kSearches = int64_t{256} << 20;  // of control rows and of centres, for some rows at a time
  const int64_t rows = x.rows();
  const OperandType type = operand_type(key_kind(params.metric), x.dtype(), x.dtype(), x.cols());
  const int64_t chunks = operand_chunks(x.cols(), operand_value_bytes(type));
  const int64_t places = rows + params.cells * kOperandTile;
  const int64_t probes = ranked_probes(params);
  const int64_t copied = x.space().host_readable() ? rows * x.cols() * size_of(x.dtype()) : 0;
  const int64_t of_rows = rows * (8 + 8 * k + 4 * (probes + 4)) + 16 * places;  // norms, lists, ranks, places
  const int64_t sample = 4 * std::min(rows, kSampleRowsPerCell * params.cells) * (x.cols() + 2);
  const int64_t near = params.cells > kMostCellsRanked ? 4 * kCellsRanked * params.cells : 0;
  const int64_t slots = 4 * (rows + params.cells * kQueryTile);
  const int64_t space = lay_out_cell_space({rows, k, chunks, params.cells}, kMostShift).bytes;
  // Searches plan with half of what is left.
  return copied + of_rows + CellOperandSpace(x.cols(), chunks, places).bytes + 2 * (sample + near + slots + space) +
         kSearches;
}

}  // namespace kith
