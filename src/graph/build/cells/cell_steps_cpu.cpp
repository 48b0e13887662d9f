// Waves on the CPU: a task is a cell's rows, or a tile of them, and some of the rows that probe it.
//
// The own cell comes first and is compared from one side, which is both: of all its values a row's smallest are picked,
// and become its list. After that lists are full, few pairs pass, and their keys are computed and offered at once, a
// block of queries at a time.
//
// Rows are compared in the order of the cells, as a copy that lies so (PairRows): below they are called by their places
// in it, and where lists are meant by their numbers.
#include "graph/build/cells/cells.hpp"

#include "core/divide.hpp"
#include "graph/build/cells/cell_partition.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/pairs/pair_scan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kTileRows = 1536;      // of a cell
constexpr int64_t kQueryBlock = 192;     // compared together
constexpr int64_t kTaskQueries = 4096;   // for which a tile of a cell is packed once
constexpr int64_t kMostWaiting = 4096;   // pairs whose keys are not computed yet
constexpr int64_t kAhead = 12;           // rows, or ranks, on their way

struct Waiting {
  int32_t query;  // places
  int32_t row;
  float lower;
  bool for_query;
  bool for_row;
};

// What one thread works with.
class CellWorker final : private PairHits, private PairFirsts {
 public:
  CellWorker(const PairRows& rows, WorkingLists& lists, const Resources& resources)
      : all_(rows),
        lists_(lists),
        scan_(make_pair_scan(rows, kQueryBlock, kTileRows, resources)),
        keys_(rows.view(), rows.kind()),
        waiting_(kMostWaiting, "candidates", resources),
        together_(kMostWaiting, "candidates", resources) {
    scan_->make_room_for_first(lists.length() + 1);
  }

  // Rows against queries of the same cell, which meet them from the other side too.
  void run_own(uint32_t first_row, int64_t row_count, uint32_t first_query, int64_t query_count, ProgressMeter& meter) {
    put_places(first_row, row_count, rows_);
    put_places(first_query, query_count, own_queries_);
    scan_->set_rows(rows_.data(), row_count);
    for_blocks(own_queries_.data(), query_count, meter, [&](int64_t count) {
      scan_->set_queries(queries_, count);
      scan_->run_first(lists_.length() + 1, *this);  // itself may be one of them
    });
  }

  // Rows against queries that are compared with them for the first time.
  void run(uint32_t first_row, int64_t row_count, const uint32_t* queries, int64_t query_count, ProgressMeter& meter) {
    put_places(first_row, row_count, rows_);
    put_similar_limits_together();
    scan_->set_rows(rows_.data(), row_count);
    for (int64_t i = 0; i < row_count; ++i) scan_->limit_row(i, lists_.largest_key(row_of_place(i)));
    for_blocks(queries, query_count, meter, [&](int64_t count) {
      for (int64_t q = 0; q < count; ++q) lists_.prefetch_threshold(row_of_query(q));
      scan_->set_queries(queries_, count);
      for (int64_t q = 0; q < count; ++q) scan_->limit_query(q, lists_.largest_key(row_of_query(q)));
      scan_->run(*this);
      settle();
    });
  }

 private:
  static void put_places(uint32_t first, int64_t count, std::vector<uint32_t>& places) {
    places.resize(static_cast<size_t>(count));
    std::iota(places.begin(), places.end(), first);
  }

  template <typename Body>
  void for_blocks(const uint32_t* queries, int64_t all, ProgressMeter& meter, const Body& body) {
    for (int64_t first = 0; first < all; first += kQueryBlock) {
      queries_ = queries + first;
      body(std::min(kQueryBlock, all - first));
      meter.checkpoint();
    }
  }

  // Largest first, in so many classes: which of two that differ little comes first does not matter.
  void put_similar_limits_together() {
    constexpr int kClassBits = 8;
    limits_.clear();
    for (const uint32_t row : rows_) limits_.push_back(lists_.threshold(all_.row_at(row)));  // others lower them meanwhile
    const auto [least, most] = std::minmax_element(limits_.begin(), limits_.end());
    const int shift = std::max(0, static_cast<int>(std::bit_width(*most - *least)) - kClassBits);
    const uint32_t largest = *most;
    for (uint32_t& limit : limits_) limit = (largest - limit) >> shift;
    std::array<uint32_t, (1 << kClassBits) + 1> next{};
    for (const uint32_t limit : limits_) ++next[limit + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    ordered_.resize(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i) ordered_[next[limits_[i]]++] = rows_[i];
    rows_.swap(ordered_);
  }

  // Of the rows and queries that are compared.
  uint32_t row_of_place(int64_t i) const { return all_.row_at(rows_[static_cast<size_t>(i)]); }
  uint32_t row_of_query(int64_t i) const { return all_.row_at(queries_[i]); }

  void on_first(int64_t query, const uint32_t* places, const float* keys, int64_t count) override {
    const uint32_t row = row_of_query(query);
    others_.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < others_.size(); ++i) others_[i] = row_of_place(places[i]);
    if (keys == nullptr) {
      found_.resize(others_.size());
      keys_.of(row, others_.data(), count, found_.data());
      keys = found_.data();
    }
    first_.clear();
    for (size_t i = 0; i < others_.size(); ++i) {
      if (others_[i] != row) first_.push_back(pack_neighbor(ordered_key(keys[i]), others_[i]));
    }
    const auto length = static_cast<size_t>(lists_.length());
    if (first_.size() > length) {
      std::nth_element(first_.begin(), first_.begin() + lists_.length(), first_.end());
      first_.resize(length);
    }
    std::sort(first_.begin(), first_.end());
    lists_.offer_sorted(row, first_.data(), static_cast<int64_t>(first_.size()));
  }

  void on_pair(const PairHit& hit) override {
    if (queries_[hit.query] == rows_[static_cast<size_t>(hit.row)]) return;
    if (hit.for_query) lists_.prefetch_list(row_of_query(hit.query));
    waiting_[waiting_count_++] = {static_cast<int32_t>(hit.query), static_cast<int32_t>(hit.row), hit.lower,
                                  hit.for_query, hit.for_row};
    if (waiting_count_ == kMostWaiting) settle();
  }

  // Computes the keys of the pairs that wait and offers them.
  void settle() {
    const int64_t count = std::exchange(waiting_count_, 0);
    const bool needs_keys = !scan_->exact();
    if (needs_keys) put_queries_together(count);
    const Waiting* const first = waiting_.data();
    const Waiting* const end = first + count;
    const Waiting* ahead = first;
    for (const Waiting* at = first; at < end;) {
      const Waiting* next = at;
      while (next < end && next->query == at->query) ++next;
      for (; needs_keys && ahead < end && ahead < next + kAhead; ++ahead) {
        keys_.prefetch(row_of_place(ahead->row));
      }
      offer(at, next);
      at = next;
    }
    for (const Waiting* pair = first; pair < end; ++pair) {
      if (pair->for_query) scan_->limit_query(pair->query, lists_.largest_key(row_of_query(pair->query)));
      if (pair->for_row) scan_->limit_row(pair->row, lists_.largest_key(row_of_place(pair->row)));
    }
  }

  // The pairs of a query come panel by panel, so that they stay in the order of their rows.
  void put_queries_together(int64_t count) {
    std::array<int64_t, kQueryBlock + 1> next{};
    for (int64_t i = 0; i < count; ++i) ++next[static_cast<size_t>(waiting_[i].query) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (int64_t i = 0; i < count; ++i) together_[next[static_cast<size_t>(waiting_[i].query)]++] = waiting_[i];
    std::swap(waiting_, together_);
  }

  // Pairs of one query.
  void offer(const Waiting* first, const Waiting* end) {
    const uint32_t query = row_of_query(first->query);
    if (scan_->exact()) {
      for (; first < end; ++first) offer(*first, query, row_of_place(first->row), first->lower);
      return;
    }
    const float largest = lists_.largest_key(query);
    others_.clear();
    pairs_.clear();
    for (; first < end; ++first) {
      const uint32_t row = row_of_place(first->row);
      const bool still = (first->for_query && first->lower <= largest) ||
                         (first->for_row && first->lower <= lists_.largest_key(row));
      if (!still) continue;
      others_.push_back(row);
      pairs_.push_back(first);
    }
    if (others_.empty()) return;
    found_.resize(others_.size());
    keys_.of(query, others_.data(), static_cast<int64_t>(others_.size()), found_.data());
    for (size_t i = 0; i < others_.size(); ++i) offer(*pairs_[i], query, others_[i], found_[i]);
  }

  void offer(const Waiting& pair, uint32_t query, uint32_t row, float key) {
    if (pair.for_query) lists_.offer(query, pack_neighbor(ordered_key(key), row));
    if (pair.for_row) lists_.offer(row, pack_neighbor(ordered_key(key), query));
  }

  const PairRows& all_;
  WorkingLists& lists_;
  std::unique_ptr<PairScan> scan_;
  PairKeys keys_;
  HostArray<Waiting> waiting_;
  HostArray<Waiting> together_;  // the same by query
  int64_t waiting_count_ = 0;
  const uint32_t* queries_ = nullptr;  // places
  std::vector<uint32_t> rows_;         // places
  std::vector<uint32_t> own_queries_;  // places, of run_own
  std::vector<uint32_t> limits_;       // of rows_
  std::vector<uint32_t> ordered_;      // rows_, by limit
  std::vector<uint32_t> others_;
  std::vector<const Waiting*> pairs_;
  std::vector<float> found_;
  std::vector<uint64_t> first_;
};

// Some rows of a cell and some of the rows that probe it.
struct CellTask {
  uint32_t cell;
  int64_t first_row;
  int64_t first_query;
};

class CellStepsCpu final : public CellSteps {
 public:
  CellStepsCpu(const PairRows& rows, const CellsWish& wish, const ControlRows* control, WorkingLists& lists,
               const Resources& resources)
      : cells_(rows.view(), wish, control, resources),
        rows_(rows, cells_.order().data(), resources),
        lists_(lists),
        resources_(resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(std::make_unique<CellWorker>(rows_, lists, resources));
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
    std::vector<CellTask> tasks;
    int64_t pairs = 0;
    for (int64_t cell = 0; cell < cells_.cells(); ++cell) {
      const int64_t queries = queries_of(cell, own);
      pairs += queries * cells_.size(cell);
      for (int64_t query = 0; query < queries; query += kTaskQueries) {
        for (int64_t row = 0; row < cells_.size(cell); row += kTileRows) {
          tasks.push_back({static_cast<uint32_t>(cell), row, query});
        }
      }
    }
    parallel_for(static_cast<int64_t>(tasks.size()), meter, resources_, [&](int64_t number, int slot) {
      const CellTask& task = tasks[static_cast<size_t>(number)];
      CellWorker& worker = *workers_[static_cast<size_t>(slot)];
      const uint32_t first_place = place_of_cell(task.cell);
      const auto first_row = static_cast<uint32_t>(first_place + task.first_row);
      const int64_t rows = std::min(kTileRows, cells_.size(task.cell) - task.first_row);
      const int64_t count = std::min(kTaskQueries, queries_of(task.cell, own) - task.first_query);
      if (own) {
        worker.run_own(first_row, rows, static_cast<uint32_t>(first_place + task.first_query), count, meter);
      } else {
        worker.run(first_row, rows, queries_.data() + offsets_[task.cell] + task.first_query, count, meter);
      }
      if (task.first_row == 0) meter.add(count);
    });
    return pairs;
  }

  void make_room(int64_t probes) {
    const int64_t count = lists_.rows() * probes;
    if (queries_.size() >= count) return;
    queries_ = HostArray<uint32_t>();  // the old one goes before the new one comes
    queries_ = HostArray<uint32_t>(count, "the rows that probe a cell", resources_);
  }
  int64_t queries_of(int64_t cell, bool own) const {
    return own ? cells_.size(cell) : offsets_[static_cast<size_t>(cell) + 1] - offsets_[static_cast<size_t>(cell)];
  }
  // Of the cell's first row.
  uint32_t place_of_cell(int64_t cell) const {
    return static_cast<uint32_t>(cells_.members(cell) - cells_.order().data());
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
          if (place + kAhead < stop) __builtin_prefetch(cells_.ranks(rows[place + kAhead], first));
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
  const Resources resources_;
  std::vector<std::unique_ptr<CellWorker>> workers_;
  HostArray<uint32_t> queries_;
  std::vector<int64_t> offsets_;
};

}  // namespace

std::unique_ptr<CellSteps> make_cell_steps_cpu(GraphListsCpu& lists, const CellsWish& wish) {
  if (wish.keeps_order) lists.order = HostArray<uint32_t>(lists.rows(), "the order of rows", lists.resources());
  auto steps = std::make_unique<CellStepsCpu>(lists.pairs(), wish, lists.control(), lists.lists(), lists.resources());
  const HostArray<uint32_t>& order = steps->cells().order();
  if (wish.keeps_order) std::copy(order.begin(), order.end(), lists.order.begin());
  return steps;
}

}  // namespace kith
