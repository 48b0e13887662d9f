// Exact search by a user's metric: all distances, panel by panel, and the k best of every query and range of rows.
//
// A task is a block of queries and a range of rows. It widens and packs sixteen rows at a time, lets the metric compute
// their distances to each of its queries, and keeps those below the query's k-th. The lists of a query's ranges are
// merged at the end. The result does not depend on the assignment to threads.
#include <kith/custom_metric.hpp>

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/scratch_layout.hpp"
#include "core/within_limits.hpp"
#include "exact/search_checks.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/select/candidate_list.hpp"
#include "rows/finite_check.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kith::custom {
namespace {

constexpr int64_t kCustomQueryBlock = 64;
constexpr int64_t kCustomRowsPerSplit = 8192;
constexpr int64_t kFresh = 256;  // neighbours that are collected before they are merged

// The k best of one query among the rows of one task.
class BestList {
 public:
  static int64_t words(int64_t k) { return 2 * k + kFresh + kPanelRows; }
  BestList(uint64_t* memory, int64_t k) : best_(memory), scratch_(memory + k), fresh_(memory + 2 * k), k_(k) {}

  void clear() { std::fill_n(best_, k_, kPadding); }
  void offer(uint64_t neighbor) {
    if (neighbor < best_[k_ - 1]) fresh_[count_++] = neighbor;
    if (count_ >= kFresh) merge();
  }
  void merge() {
    merge_neighbors(best_, k_, fresh_, count_, scratch_);
    count_ = 0;
  }

 private:
  uint64_t* best_;
  uint64_t* scratch_;
  uint64_t* fresh_;
  int64_t k_;
  int64_t count_ = 0;
};

struct Problem {
  const PanelMetric& metric;
  const MatrixView& queries;
  const MatrixView& base;
  const uint32_t* list;  // the rows that count
  int64_t rows;
  int64_t k;
  int64_t splits;
};

// Memory of one thread.
struct CustomLayout : ScratchLayout {
  Slot<uint64_t> lists;    // kCustomQueryBlock
  Slot<float> query_rows;  // kCustomQueryBlock, widened
  Slot<float> rows;        // kPanelRows, widened
  Slot<float> panel;

  CustomLayout(int64_t cols, int64_t k)
      : lists(take<uint64_t>(kCustomQueryBlock * BestList::words(k))),
        query_rows(take<float>(kCustomQueryBlock * cols)),
        rows(take<float>(kPanelRows * cols)),
        panel(take<float>(kPanelRows * cols)) {}
};
// What a search in so many rows holds beside its results and its filter.
struct SearchMemory {
  int64_t k;
  int64_t splits;  // ranges of rows
  CustomLayout layout;
  int64_t scratch_bytes;  // of a thread
  HostArray<uint64_t> best;
  HostBuffer scratch;

  SearchMemory(int64_t queries, int64_t rows, int64_t cols, int64_t most, const Resources& resources)
      : k(std::min(most, rows)),
        splits(std::clamp<int64_t>(4 * resources.threads() / divide_up(queries, kCustomQueryBlock), 1,
                                   std::max<int64_t>(1, rows / std::max(kCustomRowsPerSplit, 4 * k)))),
        layout(cols, k),
        scratch_bytes(round_up(layout.bytes, 64)),
        best(queries * splits * k, "the nearest of every task", resources),
        scratch(resources.threads() * scratch_bytes, "a search by a custom metric", resources) {}
};

void scan(const Problem& problem, int64_t first_query, int64_t query_count, int64_t split, const CustomLayout& layout,
          std::byte* scratch, uint64_t* best) {
  const int64_t cols = problem.base.cols();
  float* const queries = layout.query_rows.in(scratch);
  float* const rows = layout.rows.in(scratch);
  float* const panel = layout.panel.in(scratch);
  const auto list_of = [&](int64_t q) { return layout.lists.in(scratch) + q * BestList::words(problem.k); };
  std::vector<BestList> lists;
  for (int64_t q = 0; q < query_count; ++q) {
    widen_row(problem.queries, first_query + q, queries + q * cols);
    lists.emplace_back(list_of(q), problem.k).clear();
  }
  const int64_t end = problem.rows * (split + 1) / problem.splits;
  for (int64_t first = problem.rows * split / problem.splits; first < end; first += kPanelRows) {
    const int64_t count = std::min(kPanelRows, end - first);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = problem.list == nullptr ? first + i : problem.list[first + i];
      widen_row(problem.base, row, rows + i * cols);
    }
    pack_units(rows, cols, count, cols, kPanelRows, panel);
    for (int64_t q = 0; q < query_count; ++q) {
      float distances[kPanelRows];
      problem.metric.distances(problem.metric.metric, queries + q * cols, panel, cols, distances);
      for (int64_t i = 0; i < count; ++i) {
        const auto row = static_cast<uint32_t>(problem.list == nullptr ? first + i : problem.list[first + i]);
        lists[static_cast<size_t>(q)].offer(pack_neighbor(ordered_key(distances[i]), row));
      }
    }
  }
  for (int64_t q = 0; q < query_count; ++q) {
    lists[static_cast<size_t>(q)].merge();
    std::copy_n(list_of(q), problem.k, best + ((first_query + q) * problem.splits + split) * problem.k);
  }
}

void write(const Problem& problem, uint64_t* best, const NeighborsView& out) {
  for (int64_t q = 0; q < out.queries; ++q) {
    uint64_t* const all = best + q * problem.splits * problem.k;
    std::sort(all, all + problem.splits * problem.k);
    for (int64_t i = 0; i < out.k; ++i) {
      const uint64_t neighbor = i < problem.k ? all[i] : kPadding;
      const bool real = neighbor != kPadding;
      out.ids[q * out.k + i] = real ? static_cast<int64_t>(row_of(neighbor)) : -1;
      out.distances[q * out.k + i] =
          real ? key_of_ordered(ordered_of(neighbor)) : std::numeric_limits<float>::infinity();
    }
  }
}

Neighbors search(const PanelMetric& metric, const MatrixView& queries, const MatrixView& base,
                 const CustomKnnParams& params, const Resources& resources) {
  Neighbors result(queries.rows(), params.k, resources);
  KeptRows kept(params.filter, base.rows(), resources);
  if (queries.rows() == 0 || kept.count() == 0) {
    write_nothing(Metric::l2, result.view());
    return result;
  }
  const DefaultFloatMode mode;
  const Resources quiet = resources.with_progress({});
  if (params.check_finite) {
    refuse_not_finite("query", queries, {0}, quiet);
    refuse_not_finite("base", base, {0, nullptr, kept.leaves_some_out() ? kept.bits(resources) : nullptr}, quiet);
  }
  const SearchMemory memory(queries.rows(), kept.count(), base.cols(), params.k, resources);
  const Problem problem{metric,       queries,  base,         kept.leaves_some_out() ? kept.list(resources) : nullptr,
                        kept.count(), memory.k, memory.splits};
  const int64_t blocks = divide_up(queries.rows(), kCustomQueryBlock);
  ProgressMeter meter("search", queries.rows() * kept.count(), resources);
  parallel_for(blocks * memory.splits, meter, resources, [&](int64_t task, int slot) {
    const int64_t first_query = task % blocks * kCustomQueryBlock;
    const int64_t count = std::min(kCustomQueryBlock, queries.rows() - first_query);
    scan(problem, first_query, count, task / blocks, memory.layout, memory.scratch.data() + slot * memory.scratch_bytes,
         memory.best.data());
    meter.add(count * kept.count() / memory.splits);
    meter.checkpoint();
  });
  write(problem, memory.best.data(), result.view());
  meter.finish();
  return result;
}

}  // namespace

Neighbors knn(const PanelMetric& metric, const MatrixView& queries, const MatrixView& base,
              const CustomKnnParams& params, const Resources& resources) {
  check_knn(RowsInfo(queries), RowsInfo(base), {params.k, Metric::l2, params.check_finite});
  refuse_f64("queries", queries.dtype());
  refuse_f64("base vectors", base.dtype());
  check_host_readable("queries", queries);
  check_host_readable("base", base);
  if (resources.device().kind == DeviceKind::cuda) {
    throw Unsupported(
        "a metric from custom_metric.hpp runs on the CPU only; use device cpu or auto, or knn_by_cuda of "
        "custom_metric.cuh");
  }
  const auto least = [&] {
    const Footprint results = footprint_of<Neighbors>(resources, queries.rows(), params.k)
                                  .beside(KeptRows::footprint(params.filter, base.rows()));
    if (queries.rows() == 0 || base.rows() == 0) return results;
    return results.beside(footprint_of<SearchMemory>(resources, queries.rows(), base.rows(), base.cols(), params.k));
  };
  return within_limits("the search", resources, least,
                       [&] { return search(metric, queries, base, params, resources); });
}

}  // namespace kith::custom
