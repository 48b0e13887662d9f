#include "plan/cells_on_disk_plan.hpp"

#include "core/divide.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells_on_disk/cell_store.hpp"
#include "graph/build/cells_on_disk/list_steps.hpp"
#include "graph/build/method/method_choice.hpp"
#include "graph/lists/control_rows.hpp"
#include "plan/plan_rates.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kSampleRows = 48;  // a cell, for its centre
constexpr double kCentreIterations = 6;
constexpr int64_t kDevice = int64_t{132} << 30;  // what an H200 has to give
// What a row takes on a CPU beside the products that rank cells for it: 2.4 us, in operations of these.
constexpr double kRankedRow = 264000;

// The share of probes that leave their block, measured on SIFT. Pairs across blocks are compared from both sides.
double leaving(int64_t blocks) { return blocks <= 1 ? 0 : 0.92 * (1 - std::pow(static_cast<double>(blocks), -0.45)); }

// The number of blocks, each of which fits on a GPU with operands, lists, inboxes and probes, a chunk and pieces.
int64_t blocks_on_gpu(const PlanQuestion& question, double probes) {
  constexpr double kOfBlocks = 0.6;  // as 10M rows under 2 GiB and 100M under 16 GiB were cut
  constexpr double kInbox = 16 * 8 + 4;
  constexpr double kTables = 44;  // terms, limits, places and numbers
  const bool bytes = question.dtype == DType::u8 || question.dtype == DType::i8;
  const auto operand = static_cast<double>(round_up(question.cols * (bytes ? 1 : 2), 128));
  const double row = static_cast<double>(question.cols * size_of(question.dtype) + 8 * question.k) + operand + kInbox +
                     kTables + 8 * probes;
  const double room = kOfBlocks * static_cast<double>(std::min(question.device_memory_limit, kDevice));
  const double chunks = 4.0 / 3;  // two chunks of a sixth
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(static_cast<double>(question.rows) * row * chunks / room)));
}

// Ranks so many cells for every row.
Counts ranking_counts(const PlanQuestion& question, double cells) {
  const auto rows = static_cast<double>(question.rows);
  return {{CostUnit::ranked_product, rows * (2 * cells * static_cast<double>(question.cols) + kRankedRow)}};
}

// What comparing so many pairs takes on a CPU, by the costs of cells in memory, in operations: pairs, and the lists of rows and
// probes. Ranking is a phase of its own here.
double compare_operations(const PlanQuestion& question, const CellsOnDiskCounts& cells, double pairs) {
  const GraphProblem problem = graph_problem(question);
  CellsWork work = balanced_work(problem, cells.probes);
  work.pairs = 0;
  const double without = predict_graph_costs(problem, work, DeviceKind::cpu).cells;
  work.pairs = pairs;
  const double all = predict_graph_costs(problem, work, DeviceKind::cpu).cells;
  const double ranked = static_cast<double>(question.rows) * static_cast<double>(cells.cells) * (all - without) / pairs;
  return 2 * pair_factor(question.dtype) * (all - std::min(ranked, without));
}

}  // namespace

GraphProblem graph_problem(const PlanQuestion& question) {
  return {question.rows, question.cols, question.k, question.metric, question.recall};
}

int64_t graph_result_bytes(const PlanQuestion& question) {
  return question.rows * question.k * ((question.int32_ids ? 4 : 8) + (question.ids_only ? 0 : 4));
}

CellsOnDiskCounts likely_cells_on_disk(const PlanQuestion& question) {
  CellsOnDiskCounts likely;
  likely.cells = default_cells(question.rows, question.k);
  likely.probes = question.probes > 0 ? question.probes : likely_work(graph_problem(question)).probes;
  likely.row_bytes =
      StoredRecord(question.cols * size_of(question.dtype), std::llround(likely.probes), likely.cells).bytes();
  // Half of the memory for a block with its lists, the other for what streams past it.
  const int64_t list_bytes = 8 * question.k + 32;
  if (question.gpu) {
    likely.blocks = blocks_on_gpu(question, likely.probes);
    return likely;
  }
  const int64_t room = std::max<int64_t>(question.host_memory_limit / 2, 1);
  likely.blocks = std::max<int64_t>(1, divide_up(question.rows * (likely.row_bytes + list_bytes), room));
  return likely;
}

std::vector<PlanPhase> plan_cells_on_disk(const PlanQuestion& question, const CellsOnDiskCounts& cells) {
  const auto rows = static_cast<double>(question.rows);
  const auto cols = static_cast<double>(question.cols);
  const auto count = static_cast<double>(cells.cells);
  const int64_t data = question.rows * question.cols * size_of(question.dtype);
  const int64_t store = question.rows * cells.row_bytes;
  const int64_t lists = question.rows * ListForm{question.k, question.ids_only}.row_bytes();
  const int64_t result = graph_result_bytes(question);
  const int64_t sample = cells.cells * kSampleRows * question.cols * static_cast<int64_t>(sizeof(float));
  const int64_t centres = cells.cells * question.cols * static_cast<int64_t>(sizeof(float));
  const int64_t memory = std::min(question.host_memory_limit, store + lists);
  std::vector<PlanPhase> phases;
  const auto add = [&](PlanPhase phase, const Counts& counts) {
    time_phase(phase, counts, question);
    phases.push_back(std::move(phase));
  };
  // The sample, and the true neighbours of the control rows.
  add({.name = "sample", .read_bytes = 2 * data, .written_bytes = sample, .host_bytes = memory, .disk_bytes = sample},
      {{CostUnit::graph_product, 2 * double{kControlRows} * rows * cols * (question.gpu ? 1 : exact_factor(question.dtype))}});
  add({.name = "centres", .host_bytes = std::min(memory, sample + centres), .disk_bytes = sample + centres},
      {{CostUnit::grouped_product, 2 * kCentreIterations * kSampleRows * count * count * cols}});
  add({.name = "buckets",
       .read_bytes = 2 * data,
       .written_bytes = store,
       .host_bytes = memory,
       .disk_bytes = store + centres},
      question.gpu ? Counts{{CostUnit::graph_product, 2 * rows * count * cols}} : ranking_counts(question, count));
  if (cells.cells > kMostCellsRanked) {  // rows rank the cells near their own once they are in order
    const Counts ranked =
        question.gpu ? Counts{{CostUnit::f64_step, rows * static_cast<double>(kCellsRanked) * cols}}
                     : ranking_counts(question, static_cast<double>(kCellsRanked));
    const int64_t probes = store - question.rows * (question.cols * size_of(question.dtype) + 4);
    add({.name = "near cells", .read_bytes = store - probes, .written_bytes = probes, .host_bytes = memory, .disk_bytes = store},
        ranked);
  }
  const double pairs = rows * cells.probes * rows / count * (1 + leaving(cells.blocks));
  const int64_t on_gpu = question.gpu ? std::min({question.device_memory_limit, kDevice, question.rows * 1024}) : 0;
  add({.name = "compare",
       .read_bytes = cells.blocks * store,
       .written_bytes = lists,
       .blocks = cells.blocks,
       .host_bytes = memory,
       .device_bytes = on_gpu,
       .disk_bytes = store + lists},
      question.gpu ? Counts{{CostUnit::graph_product, 2 * pairs * cols},
                            {CostUnit::graph_cells_row, rows},
                            {CostUnit::graph_probe_row, cells.cells > kMostCellsRanked ? 0 : rows * cells.probes}}
                   : Counts{{CostUnit::graph_product, compare_operations(question, cells, pairs)}});
  add({.name = "lists in order",
       .read_bytes = lists,
       .written_bytes = result,
       .host_bytes = std::min(memory, lists),
       .disk_bytes = lists + result},
      {});
  return phases;
}

}  // namespace kith
