#include <kith/error.hpp>
#include <kith/knn_graph.hpp>
#include <kith/work_plan.hpp>

#include "core/byte_size.hpp"
#include "core/cpu_model.hpp"
#include "core/divide.hpp"
#include "core/within_limits.hpp"
#include "graph/build/method/method_choice.hpp"
#include "index/factory.hpp"
#include "plan/cells_on_disk_plan.hpp"
#include "plan/plan_rates.hpp"
#include "quantize/code_encoder.hpp"
#include "rows/rows_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kMost = INT32_MAX;  // rows of one graph or index
constexpr double kProduct = 2;        // operations of a column of a pair

int64_t data_bytes(const PlanQuestion& question) { return question.rows * question.cols * size_of(question.dtype); }

// --- graphs

// Plans are requested explicitly, so no number of pairs is refused.
GraphMethod method_of(const PlanQuestion& question) {
  return first_method(graph_problem(question), question.gpu ? DeviceKind::cuda : DeviceKind::cpu);
}

// The memory of knn_graph() beside its rows, as it counts it itself.
int64_t counted_graph_bytes(const PlanQuestion& question, GraphMethod method, int64_t rows) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = question.threads;
  const Resources resources(std::move(options));
  const RowsInfo info(rows, question.cols, question.dtype);
  const KnnGraphParams params{
      .k = std::min(question.k, rows - 1), .metric = question.metric, .method = method, .recall = question.recall};
  const auto call = [&](const Resources& used) { (void)knn_graph(info.counted_view(), params, used); };
  return footprint_of_call(resources, call).host;
}

// The same for any number of rows: extrapolated from one that can be counted on every machine.
int64_t graph_bytes(const PlanQuestion& question, GraphMethod method) {
  constexpr int64_t kCounted = 20'000;
  if (question.rows <= 2 * kCounted) return data_bytes(question) + counted_graph_bytes(question, method, question.rows);
  const int64_t least = std::max(kCounted, 2 * question.k);
  const int64_t few = counted_graph_bytes(question, method, least);
  const int64_t many = counted_graph_bytes(question, method, 2 * least);
  const double each = static_cast<double>(std::max<int64_t>(many - few, 0)) / static_cast<double>(least);
  return data_bytes(question) + many + static_cast<int64_t>(each * static_cast<double>(question.rows - 2 * least));
}

// Rows, operands, lists, ranks and offers of a graph on a GPU.
int64_t graph_device_bytes(const PlanQuestion& question) {
  constexpr int64_t kRanksAndOffers = 32 * 4 + 16 * 8 + 20;
  return data_bytes(question) + question.rows * (8 * question.k + kRanksAndOffers + 2 * question.cols);
}

Counts graph_counts(const PlanQuestion& question, GraphMethod method) {
  const GraphProblem problem = graph_problem(question);
  const CellsWork work = question.probes > 0 ? balanced_work(problem, question.probes) : likely_work(problem);
  const auto cols = static_cast<double>(question.cols);
  if (!question.gpu) {  // costs there are products of one column
    const GraphCosts costs = predict_graph_costs(problem, work, DeviceKind::cpu);
    const double cost = method == GraphMethod::exact   ? costs.exact
                        : method == GraphMethod::cells ? costs.cells
                                                       : costs.nn_descent;
    const double factor = method == GraphMethod::exact ? exact_factor(question.dtype) : pair_factor(question.dtype);
    return {{CostUnit::graph_product, factor * kProduct * cost}};
  }
  if (method == GraphMethod::exact) return {{CostUnit::graph_product, kProduct * problem.pairs() * cols}};
  const auto rows = static_cast<double>(question.rows);
  if (method == GraphMethod::nn_descent) return {{CostUnit::graph_descent_row, rows}};
  const auto cells = static_cast<double>(default_cells(question.rows, question.k));
  return {{CostUnit::graph_cells_start, 1},
          {CostUnit::graph_product, kProduct * cols * (rows * cells + 1.4 * work.pairs)},
          {CostUnit::graph_cells_row, rows},
          {CostUnit::graph_probe_row, rows * work.probes}};
}

WorkPlan plan_graph(const PlanQuestion& question) {
  WorkPlan plan;
  const GraphMethod method = method_of(question);
  plan.method = name_of(method);
  plan.result_bytes = graph_result_bytes(question);
  const int64_t data = data_bytes(question);
  const int64_t in_memory = graph_bytes(question, method);
  plan.from_disk = in_memory > question.host_memory_limit ||
                   (question.gpu && graph_device_bytes(question) > question.device_memory_limit);
  const auto add = [&](PlanPhase phase, const Counts& counts) {
    time_phase(phase, counts, question);
    plan.phases.push_back(std::move(phase));
  };
  if (!plan.from_disk) {
    add({.name = "read", .read_bytes = data, .host_bytes = data}, {});
    add({.name = "build", .host_bytes = in_memory, .device_bytes = question.gpu ? graph_device_bytes(question) : 0},
        graph_counts(question, method));
    add({.name = "write", .written_bytes = plan.result_bytes, .host_bytes = in_memory, .disk_bytes = plan.result_bytes},
        {});
    return plan;
  }
  if (method != GraphMethod::cells) {  // all rows pass every block of queries
    const int64_t blocks = divide_up(2 * (data + question.rows * question.k * 8), question.host_memory_limit);
    add({.name = "search",
         .read_bytes = saturating_multiply(blocks + 1, data),
         .written_bytes = plan.result_bytes,
         .blocks = blocks,
         .host_bytes = question.host_memory_limit,
         .device_bytes = question.gpu ? graph_device_bytes(question) : 0,
         .disk_bytes = plan.result_bytes},
        graph_counts(question, GraphMethod::exact));
    plan.method = name_of(GraphMethod::exact);
    return plan;
  }
  plan.phases = plan_cells_on_disk(question, likely_cells_on_disk(question));
  return plan;
}

// --- indexes

struct IndexSize {
  int64_t lists = 1;
  int64_t row_bytes = 0;  // of codes, row numbers and vectors to refine with
  double codewords = 0;   // that a vector is compared with to be coded
  int64_t cols = 0;       // behind the transforms
  bool has_lists = false;
};

IndexSize size_of_index(const PlanQuestion& question) {
  const FactorySpec spec = parse_factory(without_spaces(question.factory));
  IndexSize size;
  size.has_lists = spec.has_lists;
  size.cols = transformed_cols(spec.transforms, question.cols);
  if (spec.has_lists) {
    size.lists =
        spec.lists > 0 ? spec.lists : std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(question.rows))));
  }
  const CodeRecipe code = spec.code.value_or(CodeRecipe{.dtype = question.dtype});
  const bool coded = spec.has_lists || spec.code.has_value();
  size.row_bytes = code.format_for(size.cols).bytes() + (coded && size.lists > 1 ? 4 : 0);
  if (spec.refines) {
    size.row_bytes += spec.refine.value_or(CodeRecipe{.dtype = question.dtype}).format_for(question.cols).bytes();
  }
  size.codewords = coded ? code.code->compared_codewords(code) : 0;
  return size;
}

WorkPlan plan_index(const PlanQuestion& question) {
  constexpr int64_t kSampleOfList = 256;
  constexpr int64_t kSampleOfCode = 1 << 16;
  constexpr double kIterations = 10;
  constexpr int64_t kWorking = int64_t{64} << 20;  // pieces, tables and buffers
  const IndexSize size = size_of_index(question);
  const auto rows = static_cast<double>(question.rows);
  const auto cols = static_cast<double>(size.cols);
  const auto lists = static_cast<double>(size.lists);
  const int64_t data = data_bytes(question);
  WorkPlan plan;
  plan.method = question.factory;
  plan.result_bytes = question.rows * size.row_bytes + (size.has_lists ? size.lists * (4 * size.cols + 8) : 0);
  // A share of the limit is in memory before codes go to the disk.
  plan.from_disk = question.host_memory_limit < kNoLimit && plan.result_bytes > question.host_memory_limit / 4;
  const auto add = [&](PlanPhase phase, const Counts& counts) {
    time_phase(phase, counts, question);
    plan.phases.push_back(std::move(phase));
  };
  const int64_t sample =
      std::min(question.rows, std::max(size.has_lists ? kSampleOfList * size.lists : 0, kSampleOfCode));
  const double centre_rows = size.has_lists ? std::min(rows, static_cast<double>(kSampleOfList) * lists) : 0;
  const double code_rows = std::min(rows, static_cast<double>(kSampleOfCode));
  if (size.has_lists || size.codewords > 1) {
    add({.name = "train",
         .read_bytes = std::min(data, 2 * sample * question.cols * size_of(question.dtype)),
         .host_bytes = std::min(question.host_memory_limit, sample * size.cols * 4 + kWorking)},
        {{CostUnit::grouped_product, kProduct * kIterations * centre_rows * lists * cols},
         {CostUnit::f32_training, kProduct * kIterations * code_rows * size.codewords * cols}});
  }
  const int64_t codes = question.rows * size.row_bytes;
  const int64_t runs = plan.from_disk ? divide_up(codes, std::max<int64_t>(question.host_memory_limit / 4, 1)) : 1;
  add({.name = "add",
       .read_bytes = data,
       .written_bytes = plan.from_disk ? codes : 0,
       .blocks = runs,
       .host_bytes = plan.from_disk ? question.host_memory_limit : 2 * codes + kWorking,
       .disk_bytes = plan.from_disk ? codes : 0},
      {{CostUnit::dense_product, kProduct * rows * (size.has_lists ? lists : 0) * cols},
       {CostUnit::f32_product, kProduct * rows * size.codewords * cols}});
  add({.name = plan.from_disk ? "join" : "save",
       .read_bytes = plan.from_disk ? codes : 0,
       .written_bytes = plan.result_bytes,
       .blocks = runs,
       .host_bytes = plan.from_disk ? std::min(question.host_memory_limit, kWorking) : codes,
       .disk_bytes = plan.result_bytes + (plan.from_disk ? codes : 0)},
      {});
  return plan;
}

WorkPlan plan_without_advice(const PlanQuestion& question) {
  return question.factory.empty() ? plan_graph(question) : plan_index(question);
}

std::string time_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.3g} min", seconds / 60);
  return fmt::format("{:.3g} h", seconds / 3600);
}

// Changes to the question that would clearly save time.
std::vector<std::string> advice_for(const PlanQuestion& question, double seconds) {
  constexpr double kClearly = 0.8;
  std::vector<std::pair<std::string, PlanQuestion>> others;
  const auto other = [&](std::string name, auto change) {
    PlanQuestion changed = question;
    change(changed);
    others.emplace_back(std::move(name), std::move(changed));
  };
  if (question.dtype == DType::f32) other("stored as f16", [](PlanQuestion& q) { q.dtype = DType::f16; });
  if (question.host_memory_limit < kNoLimit / 2) {
    other(fmt::format("with {} of memory", format_bytes(2 * question.host_memory_limit)),
          [](PlanQuestion& q) { q.host_memory_limit *= 2; });
  }
  if (!question.gpu) other("on a GPU (H200)", [](PlanQuestion& q) { q.gpu = true; });
  if (!question.gpu) other("with twice the threads", [](PlanQuestion& q) { q.threads *= 2; });
  other("with a disk twice as fast", [](PlanQuestion& q) {
    q.disk_read *= 2;
    q.disk_write *= 2;
  });
  std::vector<std::pair<double, std::string>> helps;
  for (const auto& [name, changed] : others) {
    const double then = plan_without_advice(changed).seconds();
    if (then >= kClearly * seconds) continue;
    helps.emplace_back(then, fmt::format("{}: {} instead of {}", name, time_text(then), time_text(seconds)));
  }
  std::sort(helps.begin(), helps.end());
  std::vector<std::string> advice;
  for (auto& [then, text] : helps) advice.push_back(std::move(text));
  return advice;
}

}  // namespace

void PlanQuestion::validate() const {
  constexpr int64_t kMostRows = int64_t{1} << 40;
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw InvalidArgument(what);
  };
  require(rows >= 2 && rows <= kMostRows, fmt::format("rows = {}; a plan is for 2 to 2^40 of them", rows));
  require(cols >= 1 && cols <= 1 << 20, fmt::format("cols = {}; a plan is for 1 to 2^20 of them", cols));
  require(k >= 1 && k < rows && k <= 1 << 20, fmt::format("k = {}; it must be from 1 to below the rows", k));
  constexpr int64_t kMostBytes = int64_t{1} << 58;
  require(4 * cols <= kMostBytes / rows && 12 * k <= kMostBytes / rows,
          fmt::format("rows = {}, cols = {}, k = {}: a plan is for up to 2^58 bytes of vectors, and of results", rows,
                      cols, k));
  require(recall > 0 && recall <= 1, fmt::format("recall = {}; it must be above 0 and at most 1", recall));
  require(threads >= 1, fmt::format("threads = {}; there must be one at least", threads));
  require(instruction_set.empty() || is_instruction_set(instruction_set),
          fmt::format("instruction_set = '{}'; give one as kith info tells them after 'kernels' (VNNI, AVX2, NEON), or none",
                      instruction_set));
  require(host_memory_limit > 0 && device_memory_limit > 0, "a memory limit must be above 0");
  require(probes >= 0, "probes are not below 0");
  constexpr double kLeastRate = 1e6;  // less was meant in other units
  require(disk_read >= kLeastRate && disk_write >= kLeastRate,
          "a disk's rates are bytes a second, from 1e6 (1 MB/s) on; 2e9 is 2 GB/s");
  if (!factory.empty() && rows > kMost) {
    throw InvalidArgument(fmt::format(
        "an index holds up to {} vectors: plan one of a part of the {}, and load the files together", kMost, rows));
  }
}

double WorkPlan::seconds() const {
  double sum = 0;
  for (const PlanPhase& phase : phases) sum += phase.seconds;
  return sum;
}

int64_t WorkPlan::host_bytes() const {
  int64_t most = 0;
  for (const PlanPhase& phase : phases) most = std::max(most, phase.host_bytes);
  return most;
}

int64_t WorkPlan::device_bytes() const {
  int64_t most = 0;
  for (const PlanPhase& phase : phases) most = std::max(most, phase.device_bytes);
  return most;
}

int64_t WorkPlan::disk_bytes() const {
  int64_t most = 0;
  for (const PlanPhase& phase : phases) most = std::max(most, phase.disk_bytes);
  return most;
}

WorkPlan plan_work(const PlanQuestion& question) {
  question.validate();
  WorkPlan plan = plan_without_advice(question);
  plan.advice = advice_for(question, plan.seconds());
  return plan;
}

}  // namespace kith
