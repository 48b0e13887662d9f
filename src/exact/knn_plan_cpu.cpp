#include "exact/knn_plan_cpu.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_block_cpu.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "kernels/panels/panel_ring.hpp"
#include "kernels/panels/screen.hpp"
#include "kernels/select/candidate_list.hpp"

#include <algorithm>

namespace kith {
namespace {

// From this many queries on a matrix product is faster than a pass over the rows for each query: for bytes, whose
// packing is cheap, and for rows that are packed already or will be for later searches.
constexpr int64_t kProductFrom = 6;
constexpr int64_t kPreparedProductFrom = 4;
// The same where a base has a screen of bytes and its processor multiplies f32 as fast: rows that the screen leaves are
// looked at one by one.
constexpr int64_t kProductBesideScreenFrom = 24;
// From this many queries on, tiles are made of an index's rows if a screen would exclude little.
constexpr int64_t kMadeTilesFrom = 256;
// For fewer queries than this, differing bits are counted in place, if the processor has such an instruction and rows
// fill a vector; otherwise only if the rows would have to be packed first.
constexpr int64_t kFewestCountedColumns = 64;
constexpr int64_t kCountedUpTo = 64;
constexpr int64_t kCountedUnpackedUpTo = 12;
// From these numbers of queries, values of all queries and rows on, rounding the rows to bytes first pays off.
constexpr int64_t kScreenFrom = 48;
constexpr int64_t kScreenFromValues = 6144;
constexpr int64_t kScreenFromRows = 2048;
// For each neighbour: with fewer rows every third panel holds one, which a screen lets pass.
constexpr int64_t kScreenFromRowsEach = 36;
// Queries of a task: a multiple of every panel width. Their panels stay in the first-level cache.
constexpr int64_t kQueryBlock = 48;
constexpr int64_t kSmallestBlock = 24;
constexpr int64_t kBlockBytes = 48 << 10;
// Faster products need more work for each row that is read; their queries may come from the second-level cache.
constexpr int64_t kFastQueryBlock = 256;
constexpr int64_t kFastBlockBytes = 128 << 10;
// Enough tasks that threads do not idle for long while the last one runs.
constexpr int64_t kTasksPerThread = 16;
// Tasks per thread for fast products. Each split fills and finishes its own lists, which is relatively more expensive.
constexpr int64_t kFastTasksPerThread = 4;
constexpr int64_t kRowsPerSplit = 4096;
constexpr int64_t kColumnsPerSplit = 1 << 19;  // of all its queries and rows: less is done before a thread wakes up
constexpr int64_t kPackedBytes = 16 << 20;     // packed at a time: within the last-level cache
constexpr int64_t kRingBytes = 1 << 20;        // the same by each thread: within the second-level cache or near it
constexpr int64_t kListBytes = 128 << 20;      // for the candidates of a batch
constexpr int64_t kReadBytes = 32 << 20;       // read at a time
constexpr int64_t kRangeList = 256;  // candidates of a query and a thread that a range search looks at together

PanelFormat best_format(const SearchTask& task, const CpuExtensions& cpu) {
  return choose_panel_format(key_kind(task.shape.metric), task.shape.query_dtype, task.shape.base_dtype,
                             task.shape.cols, cpu);
}

// Whether there are many rows for each neighbour.
bool suits_screen(const SearchTask& task) {
  const bool few = task.within() || task.k <= task.rows / kScreenFromRowsEach;
  return task.rows >= kScreenFromRows && few;
}

// Whether an index keeps the rows without panels. Segments of few rows have panels anyway.
bool keeps_no_panels(const SearchTask& task, const CpuExtensions& cpu) {
  if (!task.prepared) return false;
  return lacks_panels(kept_format(best_format(task, cpu), task.shape.rows, task.shape.cols, cpu));
}

// Whether making tiles for one search pays off: it does if a screen would exclude little.
bool pays_to_make_tiles(const SearchTask& task) { return task.shape.queries >= kMadeTilesFrom && !suits_screen(task); }

// The format that a base is packed in: screened where that excludes much, if queries are many or the base is prepared.
PanelFormat packed_format(const SearchTask& task, const CpuExtensions& cpu) {
  PanelFormat format = best_format(task, cpu);
  if (format == PanelFormat::bf16 && keeps_no_panels(task, cpu) && !pays_to_make_tiles(task)) {
    format = prepares_screen(format, task.shape.cols, cpu) ? PanelFormat::screened : PanelFormat::f32;
  }
  const bool many = task.shape.queries >= kScreenFrom && task.shape.queries * task.shape.cols >= kScreenFromValues;
  const bool screens = (task.prepared || many) && suits_screen(task);
  return format == PanelFormat::screened && !screens ? PanelFormat::f32 : format;
}

// Without kept panels: whether each thread makes f32 panels as it needs them (PanelRing),
bool makes_panels(const SearchTask& task, PanelFormat format, const CpuExtensions& cpu) {
  return keeps_no_panels(task, cpu) && format != PanelFormat::bf16;
}
// whether tiles are packed as for rows that are not prepared,
bool packs_rows(const SearchTask& task, PanelFormat format, const CpuExtensions& cpu) {
  return !task.prepared || (keeps_no_panels(task, cpu) && format == PanelFormat::bf16);
}
// and how many rows are packed again because their segment has another format.
int64_t packed_anew(const SearchTask& task, const KnnCpuPlan& plan, const CpuExtensions& cpu) {
  const bool others = makes_panels(task, plan.format, cpu) && best_format(task, cpu) == PanelFormat::bf16;
  return others ? std::min(plan.panel_rows, kFewestKeptRows) : 0;
}

// Whether searches of few queries use a prepared base's screen.
bool looks_at_screen(const SearchTask& task, const CpuExtensions& cpu) {
  return task.prepared && few_want_prepared_cpu(task, cpu);
}

// Whether a scan of rows as they are stored multiplies bytes, sixteen at a time (tile_scan).
bool dots_bytes(const SearchShape& shape, const CpuExtensions& cpu) {
  const bool bytes = shape.base_dtype == DType::u8 || shape.base_dtype == DType::i8;
  return (cpu.dotprod || cpu.vnni) && bytes && shape.query_dtype == shape.base_dtype && is_product(key_kind(shape.metric)) && shape.cols >= kFewestDotColumns &&
         shape.cols <= kMostDotColumns;
}

// Measured nanoseconds for each row: floats are packed for a single search only if their product saves at least that
// time.
struct RowCosts {
  double pack;
  double direct;   // for each query
  double product;  // likewise

  RowCosts(int64_t columns, bool dots_bytes) {
    const auto cols = static_cast<double>(columns);
    pack = 60 + 1.15 * cols;
    direct = columns <= kMostColumnsSideBySide ? 0.5 + 0.08 * cols : 1 + 0.1 * cols;
    if (dots_bytes) direct = 2.5 + 0.02 * cols;
    product = 0.2 + 0.012 * cols;
  }
  bool packing_pays(int64_t queries) const { return static_cast<double>(queries) * (direct - product) > pack; }
};

// Bytes of a packed vector, its screen included.
int64_t vector_bytes(PanelFormat format, int64_t cols) {
  return packed_bytes(format, cols) + screen_bytes(format, cols);
}

// The most queries of a task.
int64_t largest_block(const SearchTask& task, const KnnCpuPlan& plan, const CpuExtensions& cpu) {
  const int64_t row_bytes = plan.format == PanelFormat::screened ? screen_bytes(plan.format, task.shape.cols)
                                                                 : packed_bytes(plan.format, task.shape.cols);
  if (plan.format == PanelFormat::f32) return kBlockBytes / row_bytes >= kQueryBlock ? kQueryBlock : kSmallestBlock;
  // AVX2's panels of six queries divide 48, those of faster products divide kMostQueriesPerPanel.
  const bool six = plan.format == PanelFormat::screened && !has_fast_rounded_product(cpu);
  const int64_t width = six ? kQueryBlock : kMostQueriesPerPanel;
  return std::clamp<int64_t>(kFastBlockBytes / row_bytes / width * width, width, kFastQueryBlock / width * width);
}

int64_t cpu_bytes(const SearchTask& task, const KnnCpuPlan& plan, const PlanBudget& budget) {
  const bool product = plan.engine == CpuEngine::panels;
  const int64_t batch = plan.query_batch;
  int64_t bytes = array_bytes<float>(batch * task.shape.cols) + array_bytes<double>(2 * batch);  // queries, their norms
  if (const auto format = plan.packed_queries()) {
    bytes += PackedQueries::bytes_for(*format, batch, task.shape.cols) +
             budget.threads * PackedQueries::scratch_bytes(*format, task.shape.cols);
  }
  bytes += batch * plan.row_splits * CandidateList::bytes_for(plan.list_length);
  bytes += array_bytes<uint64_t>(2 * batch * task.k);  // the nearest so far, and their copy
  bytes += budget.threads * CandidateScratch::bytes_for(plan.list_length);
  if (product && packs_rows(task, plan.format, budget.cpu)) {
    bytes += PackedRows::bytes_for(plan.format, plan.panel_rows, task.shape.cols, budget.threads);
  }
  if (const int64_t rows = packed_anew(task, plan, budget.cpu); product && rows > 0) {
    bytes += PackedRows::bytes_for(plan.format, rows, task.shape.cols, budget.threads);
  }
  if (product && makes_panels(task, plan.format, budget.cpu)) {
    bytes += budget.threads * PanelRing::bytes_for(plan.panel_rows, task.shape.cols);
  }
  if (plan.dense) bytes += budget.threads * dense_block_bytes(task.shape.cols);
  if (!product) bytes += array_bytes<float>(batch * task.shape.cols);  // normalised, for cosine
  if (!task.request.results_in_memory)
    bytes += array_bytes<int64_t>(batch * task.request.k) + batch * task.request.k * 4;
  return bytes + task.read_bytes(batch, plan.base_chunk);
}

// Divides the work into enough tasks, also by rows, into at most `most_splits` parts, if there are too few queries.
void choose_tasks(const SearchTask& task, const PlanBudget& budget, int64_t most_splits, KnnCpuPlan* plan) {
  const int64_t rows = std::min(plan->base_chunk, task.rows);
  const int64_t work = plan->query_batch * std::max<int64_t>(1, rows * task.shape.cols / kColumnsPerSplit);
  const int64_t most = std::clamp<int64_t>(std::min(rows / kRowsPerSplit, work), 1, most_splits);
  if (plan->engine == CpuEngine::direct) {
    plan->query_block = plan->query_batch;
    plan->row_splits = std::min<int64_t>(most, 4 * budget.threads);
    return;
  }
  plan->query_block = largest_block(task, *plan, budget.cpu);
  const int64_t blocks = divide_up(plan->query_batch, plan->query_block);
  const int64_t tasks = plan->format == PanelFormat::f32 ? kTasksPerThread : kFastTasksPerThread;
  const int64_t wanted = budget.threads == 1 ? 1 : divide_up(tasks * budget.threads, blocks);
  plan->row_splits = std::clamp<int64_t>(wanted, 1, most);
  if (!makes_panels(task, plan->format, budget.cpu)) return;
  plan->blocks_together =
      budget.threads == 1 ? blocks : std::max<int64_t>(1, blocks * plan->row_splits / (tasks * budget.threads));
}

// Halves the largest buffer that can be smaller; false if none can.
bool shrink(const SearchTask& task, const PlanBudget& budget, KnnCpuPlan* plan, int64_t* most_splits) {
  if (plan->dense) {  // what only some data needs goes first
    plan->dense = false;
    return true;
  }
  const int64_t smallest_batch = std::min<int64_t>(task.shape.queries, 8);
  const int64_t smallest_rows = std::min<int64_t>(task.rows, 256);
  const int64_t list_bytes = plan->query_batch * CandidateList::bytes_for(plan->list_length);
  const int64_t split_bytes = (plan->row_splits - 1) * list_bytes;
  const int64_t batch_bytes =
      plan->query_batch > smallest_batch
          ? plan->query_batch * (task.shape.cols * 4 + vector_bytes(plan->format, task.shape.cols) + task.k * 16 +
                                 task.request.k * 12) +
                list_bytes
          : 0;
  const bool ring = makes_panels(task, plan->format, budget.cpu);
  const int64_t smallest_panels = ring ? std::min(smallest_rows, kMostRowsPerPanel) : smallest_rows;
  const bool packs = plan->engine == CpuEngine::panels && (ring || packs_rows(task, plan->format, budget.cpu));
  const int64_t panel_bytes = packs && plan->panel_rows > smallest_panels
                                  ? (ring ? budget.threads : 1) * plan->panel_rows *
                                        vector_bytes(ring ? PanelFormat::f32 : plan->format, task.shape.cols)
                                  : 0;
  const int64_t chunk_bytes = plan->base_chunk > smallest_rows ? task.read_bytes(0, plan->base_chunk) : 0;
  const int64_t largest = std::max({split_bytes, batch_bytes, panel_bytes, chunk_bytes});
  if (largest == 0) return false;
  if (largest == split_bytes) {
    *most_splits = plan->row_splits / 2;
  } else if (largest == batch_bytes) {
    plan->query_batch = std::max(smallest_batch, plan->query_batch / 2);
  } else if (largest == panel_bytes) {
    plan->panel_rows = std::max(smallest_panels, plan->panel_rows / 2);
  } else {
    plan->base_chunk = std::max(smallest_rows, plan->base_chunk / 2);
    plan->panel_rows = std::min(plan->panel_rows, plan->base_chunk);
  }
  return true;
}

// The largest plan of one engine that fits, or its smallest if none does.
KnnCpuPlan fit_plan(const SearchTask& task, const PlanBudget& budget, CpuEngine engine, PanelFormat format) {
  const int64_t row_bytes = task.shape.cols * size_of(task.shape.base_dtype);
  KnnCpuPlan plan;
  plan.device = Device::cpu();
  plan.engine = engine;
  plan.format = format;
  plan.screens = engine == CpuEngine::direct && format != PanelFormat::f32 && looks_at_screen(task, budget.cpu);
  plan.dense = engine == CpuEngine::panels && !holds_bytes(format);
  plan.list_length = task.within() ? kRangeList : task.k;
  plan.query_batch = std::clamp<int64_t>(kListBytes / CandidateList::bytes_for(plan.list_length), kQueryBlock, 1 << 14);
  plan.query_batch = std::min(plan.query_batch, task.shape.queries);
  plan.base_chunk = task.base_in_memory() ? task.rows : std::clamp<int64_t>(kReadBytes / row_bytes, 1, task.rows);
  plan.panel_rows = makes_panels(task, format, budget.cpu) ? kRingBytes / array_bytes<float>(task.shape.cols)
                                                           : kPackedBytes / vector_bytes(plan.format, task.shape.cols);
  plan.panel_rows = std::clamp<int64_t>(plan.panel_rows, 1, plan.base_chunk);
  int64_t most_splits = INT64_MAX;
  do {
    choose_tasks(task, budget, most_splits, &plan);
    plan.host_bytes = cpu_bytes(task, plan, budget);
  } while (plan.host_bytes > budget.host && shrink(task, budget, &plan, &most_splits));
  return plan;
}

}  // namespace

bool few_want_prepared_cpu(const SearchTask& task, const CpuExtensions& cpu) {
  return suits_screen(task) && prepares_screen(best_format(task, cpu), task.shape.cols, cpu);
}

bool pays_to_prepare_cpu(const SearchTask& task) { return task.shape.queries >= kProductFrom; }

CpuEngine cpu_engine(const SearchTask& task, const CpuExtensions& cpu) {
  const PanelFormat format = packed_format(task, cpu);
  const bool counts_words = format == PanelFormat::bits && cpu.vpopcnt && task.shape.cols >= kFewestCountedColumns;
  if (counts_words && task.shape.queries < kCountedUpTo) return CpuEngine::direct;
  if (!task.prepared) {
    const bool counts = format == PanelFormat::bits && task.shape.cols >= kFewestCountedColumns;
    const bool pays = holds_bytes(format)
                          ? task.shape.queries >= (counts ? kCountedUnpackedUpTo : kProductFrom)
                          : RowCosts(task.shape.cols, dots_bytes(task.shape, cpu)).packing_pays(task.shape.queries);
    return pays ? CpuEngine::panels : CpuEngine::direct;
  }
  if (format == PanelFormat::bits) return CpuEngine::panels;  // fewer operations, also for one query
  const bool screens = looks_at_screen(task, cpu);
  const bool slow_bytes = screens && cpu.avx2 && !cpu.vnni && !ScreenedProduct::pays();
  if (task.shape.queries >= (slow_bytes ? kProductBesideScreenFrom : kProductFrom)) return CpuEngine::panels;
  if (screens) return CpuEngine::direct;
  return task.shape.queries >= kPreparedProductFrom ? CpuEngine::panels : CpuEngine::direct;
}

KnnCpuPlan plan_knn_cpu(const SearchTask& task, const PlanBudget& budget) {
  const PanelFormat format = packed_format(task, budget.cpu);
  const CpuEngine engine = cpu_engine(task, budget.cpu);
  KnnCpuPlan plan = fit_plan(task, budget, engine, format);
  if (plan.host_bytes <= budget.host) return plan;
  if (engine == CpuEngine::panels && format == PanelFormat::screened) {
    plan = fit_plan(task, budget, engine, PanelFormat::f32);
    if (plan.host_bytes <= budget.host) return plan;
  }
  plan = fit_plan(task, budget, CpuEngine::direct, format);  // slower for many queries, but packs no rows
  if (plan.host_bytes <= budget.host || !plan.screens) return plan;
  return fit_plan(task, budget, CpuEngine::direct, PanelFormat::f32);  // nor queries for a screen
}

Counts work_of(const SearchShape& shape) {
  const double values = static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  const bool products = is_product(key_kind(shape.metric));
  return {
      {CostUnit::copied_byte, values * static_cast<double>(size_of(shape.base_dtype))},
      {products ? CostUnit::ranked_product : CostUnit::f64_step, 2.0 * static_cast<double>(shape.queries) * values}};
}

}  // namespace kith
