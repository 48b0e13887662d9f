// Waves on the CPU: a task is a cell's rows, or a tile of them, and some of the rows that probe it.
//
// A row's own cell comes first, and each of its pairs is compared once for both rows: the smallest values of each row
// become its list. From then on lists are full and few pairs pass; their keys are computed and offered at once, for a
// block of queries at a time.
//
// Rows are compared in a copy ordered by cell (PairRows). Below, rows are places in this copy, except that lists use
// row numbers.
#include "graph/build/cells/cells.hpp"

#include "core/divide.hpp"
#include "graph/build/cells/cell_partition.hpp"
#include "graph/build/cells/cell_worker.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kAhead = 12;  // ranks on their way

// Some rows of a cell and some of the rows that probe it.
struct CellTask {
  uint32_t cell;
  int64_t first_row;
  int64_t first_query;
};

class CellStepsCpu final : public CellSteps {
 public:
  CellStepsCpu(const PairRows& rows, const CellsParams& params, const ControlRows* control, WorkingLists& lists,
               const Resources& resources)
      : cells_(rows.view(), params, control, resources),
        rows_(rows, cells_.order().data(), resources),
        lists_(lists),
        share_(params.share),
        resources_(resources),
        joined_(params.joined_room, "the ranks' lists", resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(std::make_unique<CellWorker>(rows_, nullptr, lists, resources));
    }
  }

  const CellPartition& cells() const { return cells_; }
  int64_t probes() const override { return cells_.probes(); }
  const ProbeForecast& forecast() const override { return cells_.forecast(); }
  int64_t pairs(int64_t probes) const override { return cells_.pairs(probes); }

  void count_waves(int64_t widest) override {
    const RankWindow window = last_rank_window(cells_.probes(), lists_.rows());
    make_room(std::min(widest, window.count));
    cells_.rank(window);  // while a wave's rows are kept
  }

  int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) override {
    int64_t pairs = 0;
    for (int64_t at = first; at < end;) {
      if (!cells_.ranked().holds(at)) cells_.rank(cells_.window_from(at, end));
      const int64_t next = std::min(cells_.ranked().end(), end);
      pairs += part(at, next, meter);
      at = next;
    }
    return pairs;
  }

 private:
  // Probes that are ranked.
  int64_t part(int64_t first, int64_t end, ProgressMeter& meter) {
    const bool own = first == 0;
    if (!own) collect_queries(first, end);
    const int64_t pairs = compare(own, meter);
    if (share_ == nullptr) return pairs;
    share_->join(lists_, own, joined_, resources_);
    return share_->sum(pairs);
  }

  // The collected queries, or each cell's own rows, with the rows of their cells.
  int64_t compare(bool own, ProgressMeter& meter) {
    std::vector<CellTask> tasks;
    int64_t pairs = 0;
    for (int64_t cell = 0; cell < cells_.cells(); ++cell) {
      const int64_t queries = queries_of(cell, own);
      pairs += queries * cells_.size(cell);
      for (int64_t query = 0; query < queries; query += kCellTaskQueries) {
        for (int64_t row = 0; row < cells_.size(cell); row += kCellTileRows) {
          tasks.push_back({static_cast<uint32_t>(cell), row, query});
        }
      }
    }
    parallel_for(static_cast<int64_t>(tasks.size()), meter, resources_, [&](int64_t number, int slot) {
      const CellTask& task = tasks[static_cast<size_t>(number)];
      CellWorker& worker = *workers_[static_cast<size_t>(slot)];
      const uint32_t first_place = place_of_cell(task.cell);
      const auto first_row = static_cast<uint32_t>(first_place + task.first_row);
      const int64_t rows = std::min(kCellTileRows, cells_.size(task.cell) - task.first_row);
      const int64_t count = std::min(kCellTaskQueries, queries_of(task.cell, own) - task.first_query);
      if (own) {
        const uint32_t first_query = first_place + first_ranked(task.cell) + static_cast<uint32_t>(task.first_query);
        worker.run_own(first_row, rows, first_query, count, meter);
      } else {
        worker.run(first_row, rows, queries_.data() + offsets_[task.cell] + task.first_query, count, meter);
      }
      if (task.first_row == 0) meter.add(count);
    });
    return pairs;
  }

  void make_room(int64_t probes) {
    const int64_t count = cells_.ranked_rows().count * probes;
    if (queries_.size() >= count) return;
    queries_ = HostArray<uint32_t>();  // the old one goes before the new one comes
    queries_ = HostArray<uint32_t>(count, "the rows that probe a cell", resources_);
  }
  int64_t queries_of(int64_t cell, bool own) const {
    if (own) return std::ssize(cells_.ranked_in(cell));
    return offsets_[static_cast<size_t>(cell) + 1] - offsets_[static_cast<size_t>(cell)];
  }
  // Where the rows of this rank begin among those of a cell.
  uint32_t first_ranked(int64_t cell) const {
    return static_cast<uint32_t>(cells_.ranked_in(cell).data() - cells_.members(cell));
  }
  // Place of the cell's first row.
  uint32_t place_of_cell(int64_t cell) const {
    return static_cast<uint32_t>(cells_.members(cell) - cells_.order().data());
  }

  bool is_ranked(uint32_t row) const {
    return row >= cells_.ranked_rows().first && row < cells_.ranked_rows().end();
  }

  // For every cell the places of the rows that probe it in this wave, ascending.
  void collect_queries(int64_t first, int64_t end) {
    make_room(end - first);
    // Every thread has a share of the rows: it counts, learns where its rows of a cell begin, and puts them there.
    const auto cells = static_cast<size_t>(cells_.cells());
    const auto shares = static_cast<size_t>(resources_.threads());
    const Resources quiet = resources_.with_progress({});
    ProgressMeter meter("probes", lists_.rows(), quiet);
    std::vector<int64_t> next(shares * cells, 0);
    const auto each_probe = [&](const auto& body) {
      parallel_for(static_cast<int64_t>(shares), meter, quiet, [&](int64_t share, int) {
        const int64_t begin = share * lists_.rows() / static_cast<int64_t>(shares);
        const int64_t stop = (share + 1) * lists_.rows() / static_cast<int64_t>(shares);
        int64_t* const mine = next.data() + static_cast<size_t>(share) * cells;
        const uint32_t* const rows = cells_.order().data();
        for (int64_t place = begin; place < stop; ++place) {
          if (!is_ranked(rows[place])) continue;
          if (place + kAhead < stop && is_ranked(rows[place + kAhead])) {
            __builtin_prefetch(cells_.ranks(rows[place + kAhead], first));
          }
          const uint32_t* const ranks = cells_.ranks(rows[place], first);
          for (int64_t p = 0; p < end - first; ++p) body(static_cast<uint32_t>(place), mine[ranks[p]]);
        }
      });
    };
    each_probe([](uint32_t, int64_t& counted) { ++counted; });
    offsets_.assign(cells + 1, 0);
    int64_t at = 0;
    for (size_t cell = 0; cell < cells; ++cell) {
      offsets_[cell] = at;
      for (size_t share = 0; share < shares; ++share) at += std::exchange(next[share * cells + cell], at);
    }
    offsets_[cells] = at;
    each_probe([&](uint32_t place, int64_t& next_query) { queries_[next_query++] = place; });
  }

  CellPartition cells_;
  const PairRows rows_;  // in the order of the cells
  WorkingLists& lists_;
  const GraphShare* const share_;
  const Resources resources_;
  const HostArray<uint64_t> joined_;
  std::vector<std::unique_ptr<CellWorker>> workers_;
  HostArray<uint32_t> queries_;
  std::vector<int64_t> offsets_;
};

}  // namespace

std::unique_ptr<CellSteps> make_cell_steps_cpu(GraphListsCpu& lists, const CellsParams& params) {
  if (params.keeps_order) lists.order = HostArray<uint32_t>(lists.rows(), "the order of rows", lists.resources());
  auto steps = std::make_unique<CellStepsCpu>(lists.pairs(), params, lists.control(), lists.lists(), lists.resources());
  const HostArray<uint32_t>& order = steps->cells().order();
  if (params.keeps_order) std::copy(order.begin(), order.end(), lists.order.begin());
  return steps;
}

}  // namespace kith
