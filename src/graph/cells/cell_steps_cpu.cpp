// Waves on the CPU: a task is a cell's rows, or a tile of them, and some of the rows that probe it.
//
// The own cell comes first and is compared from one side, which is both: lists of candidates with bounds
// (candidate_list.hpp) keep most keys from being computed. After that lists are full, few pairs pass, and their keys are
// computed and offered at once, a block of queries at a time.
#include "graph/cells/cell_steps.hpp"

#include "core/divide.hpp"
#include "graph/pairs/pair_keys.hpp"
#include "graph/pairs/pair_scan.hpp"
#include "kernels/select/candidate_list.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kTileRows = 1536;      // of a cell
constexpr int64_t kQueryBlock = 96;      // compared together
constexpr int64_t kTaskQueries = 4096;   // for which a tile of a cell is packed once
constexpr int64_t kMostWaiting = 4096;   // pairs whose keys are not computed yet
constexpr int64_t kAhead = 12;           // rows on their way while keys are computed

struct Waiting {
  int32_t query;  // places
  int32_t row;
  float lower;
  bool for_query;
  bool for_row;
};

// What one thread works with.
class CellWorker final : private PairHits {
 public:
  CellWorker(const PairRows& rows, WorkingLists& lists, const Resources& resources)
      : lists_(lists),
        scan_(make_pair_scan(rows, kQueryBlock, kTileRows, resources)),
        keys_(rows.view(), rows.kind()),
        candidate_memory_(kQueryBlock * CandidateList::bytes_for(lists.length()), "candidates", resources),
        scratch_memory_(CandidateScratch::bytes_for(lists.length()), "candidates", resources),
        scratch_(scratch_memory_.data(), lists.length()),
        waiting_(kMostWaiting, "candidates", resources) {
    std::byte* const candidates = candidate_memory_.data() + array_bytes<CandidateList>(kQueryBlock);
    const int64_t bytes = CandidateList::capacity_for(lists.length()) * CandidateList::kBytesPerCandidate;
    for (int64_t i = 0; i < kQueryBlock; ++i) {
      new (candidates_of(i)) CandidateList(candidates + i * bytes, lists.length());
    }
  }

  // Rows against queries that are compared with them for the first time and, where `own`, from the other side too.
  void run(const uint32_t* rows, int64_t row_count, const uint32_t* queries, int64_t query_count, bool own,
           ProgressMeter& meter) {
    own_ = own;
    rows_.assign(rows, rows + row_count);
    if (!own) put_similar_limits_together();
    scan_->set_rows(rows_.data(), row_count);
    for (int64_t i = 0; i < row_count && !own; ++i) scan_->limit_row(i, lists_.largest_key(rows_[static_cast<size_t>(i)]));
    for (int64_t first = 0; first < query_count; first += kQueryBlock) {
      block(queries + first, std::min(kQueryBlock, query_count - first));
      meter.checkpoint();
    }
  }

 private:
  // Largest first. Sorted by what the limits are now: others lower them meanwhile, and an order must not change in a sort.
  void put_similar_limits_together() {
    order_.clear();
    for (const uint32_t row : rows_) order_.push_back(uint64_t{~lists_.threshold(row)} << 32 | row);
    std::sort(order_.begin(), order_.end());
    std::transform(order_.begin(), order_.end(), rows_.begin(), [](uint64_t one) { return static_cast<uint32_t>(one); });
  }

  CandidateList* candidates_of(int64_t query) const { return candidate_memory_.as<CandidateList>() + query; }

  void block(const uint32_t* queries, int64_t count) {
    queries_ = queries;
    for (int64_t q = 0; q < count; ++q) lists_.prefetch_threshold(queries[q]);
    scan_->set_queries(queries, count);
    for (int64_t q = 0; q < count; ++q) {
      const float largest = lists_.largest_key(queries[q]);
      if (own_) candidates_of(q)->reset(largest);
      scan_->limit_query(q, largest);
    }
    scan_->run(*this);
    if (!own_) return settle();
    for (int64_t q = 0; q < count; ++q) {
      candidates_of(q)->tighten(scratch_);
      const int64_t found = candidates_of(q)->drain(0, scratch_, scorer(q));
      std::sort(scratch_.neighbors, scratch_.neighbors + found);  // the nearest first: fewer enter and leave again
      for (int64_t i = 0; i < found && lists_.offer(queries[q], scratch_.neighbors[i]); ++i) {
      }
    }
  }

  RowScorer scorer(int64_t query) {
    return [this, query](uint32_t* rows, int64_t count, float* keys) { keys_.of(queries_[query], rows, count, keys); };
  }

  void on_pair(const PairHit& hit) override {
    const uint32_t query = queries_[hit.query];
    const uint32_t row = rows_[static_cast<size_t>(hit.row)];
    if (query == row) return;
    if (!own_) {
      waiting_[waiting_count_++] = {static_cast<int32_t>(hit.query), static_cast<int32_t>(hit.row), hit.lower,
                                    hit.for_query, hit.for_row};
      if (waiting_count_ == kMostWaiting) settle();
      return;
    }
    CandidateList& list = *candidates_of(hit.query);
    if (scan_->exact()) {
      list.push_exact(hit.lower, row);
    } else {
      list.push(hit.lower, hit.upper, row);
    }
    if (list.has_room()) return;
    list.make_room(scratch_, scorer(hit.query));
    scan_->limit_query(hit.query, list.limit());
  }

  // Computes the keys of the pairs that wait and offers them.
  void settle() {
    Waiting* const first = waiting_.data();
    Waiting* const end = first + waiting_count_;
    waiting_count_ = 0;
    if (!scan_->exact()) {
      std::sort(first, end, [](const Waiting& a, const Waiting& b) {
        return a.query != b.query ? a.query < b.query : a.row < b.row;
      });
    }
    const bool needs_keys = !scan_->exact();
    Waiting* ahead = first;
    for (Waiting* at = first; at < end;) {
      Waiting* next = at;
      while (next < end && next->query == at->query) ++next;
      for (; needs_keys && ahead < end && ahead < next + kAhead; ++ahead) {
        keys_.prefetch(rows_[static_cast<size_t>(ahead->row)]);
      }
      offer(at, next);
      at = next;
    }
    for (const Waiting* pair = first; pair < end; ++pair) {
      if (pair->for_query) scan_->limit_query(pair->query, lists_.largest_key(queries_[pair->query]));
      if (pair->for_row) scan_->limit_row(pair->row, lists_.largest_key(rows_[static_cast<size_t>(pair->row)]));
    }
  }

  // Pairs of one query.
  void offer(const Waiting* first, const Waiting* end) {
    const uint32_t query = queries_[first->query];
    if (scan_->exact()) {
      for (; first < end; ++first) offer(*first, query, rows_[static_cast<size_t>(first->row)], first->lower);
      return;
    }
    const float largest = lists_.largest_key(query);
    others_.clear();
    pairs_.clear();
    for (; first < end; ++first) {
      const uint32_t row = rows_[static_cast<size_t>(first->row)];
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

  WorkingLists& lists_;
  std::unique_ptr<PairScan> scan_;
  PairKeys keys_;
  HostBuffer candidate_memory_;  // the lists, then their candidates
  HostBuffer scratch_memory_;
  CandidateScratch scratch_;
  HostArray<Waiting> waiting_;
  int64_t waiting_count_ = 0;
  bool own_ = false;
  const uint32_t* queries_ = nullptr;
  std::vector<uint32_t> rows_;
  std::vector<uint64_t> order_;  // of rows_, by limit
  std::vector<uint32_t> others_;
  std::vector<const Waiting*> pairs_;
  std::vector<float> found_;
};

// Some rows of a cell and some of the rows that probe it.
struct CellTask {
  uint32_t cell;
  int64_t first_row;
  int64_t first_query;
};

class CellStepsCpu final : public CellSteps {
 public:
  CellStepsCpu(const PairRows& rows, CellPartition& cells, WorkingLists& lists, const Resources& resources)
      : cells_(cells), lists_(lists), resources_(resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(std::make_unique<CellWorker>(rows, lists, resources));
    }
  }

  int64_t probes() const override { return cells_.probes(); }
  void expect(int64_t probes) override { expected_ = probes; }

  int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) override {
    const bool own = first == 0;
    if (end > cells_.ranked()) cells_.rank(expected_ >= end ? expected_ + expected_ / 8 : 2 * end);
    if (!own) collect_queries(first, end);
    std::vector<CellTask> tasks;
    int64_t pairs = 0;
    for (int64_t cell = 0; cell < cells_.cells(); ++cell) {
      const int64_t queries = own ? cells_.size(cell) : offsets_[static_cast<size_t>(cell) + 1] - offsets_[static_cast<size_t>(cell)];
      pairs += queries * cells_.size(cell);
      for (int64_t query = 0; query < queries; query += kTaskQueries) {
        for (int64_t row = 0; row < cells_.size(cell); row += kTileRows) {
          tasks.push_back({static_cast<uint32_t>(cell), row, query});
        }
      }
    }
    parallel_for(static_cast<int64_t>(tasks.size()), meter, resources_, [&](int64_t number, int slot) {
      const CellTask& task = tasks[static_cast<size_t>(number)];
      const uint32_t* const queries =
          own ? cells_.members(task.cell) : queries_.data() + offsets_[task.cell];
      const int64_t all = own ? cells_.size(task.cell) : offsets_[task.cell + 1] - offsets_[task.cell];
      const int64_t rows = std::min(kTileRows, cells_.size(task.cell) - task.first_row);
      const int64_t count = std::min(kTaskQueries, all - task.first_query);
      workers_[static_cast<size_t>(slot)]->run(cells_.members(task.cell) + task.first_row, rows,
                                               queries + task.first_query, count, own, meter);
      if (task.first_row == 0) meter.add(count);
    });
    return pairs;
  }

 private:
  // For every cell the rows that probe it in this wave, ascending.
  void collect_queries(int64_t first, int64_t end) {
    const int64_t count = lists_.rows() * (end - first);
    if (queries_.size() < count) {
      queries_ = HostArray<uint32_t>();  // the old one goes before the new one comes
      queries_ = HostArray<uint32_t>(count, "the rows that probe a cell", resources_);
    }
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
        for (int64_t row = begin; row < stop; ++row) {
          for (int64_t p = first; p < end; ++p) body(static_cast<uint32_t>(row), mine[cells_.ranks(row)[p]]);
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
    each_probe([&](uint32_t row, int64_t& place) { queries_[place++] = row; });
  }

  CellPartition& cells_;
  int64_t expected_ = 0;  // probes
  WorkingLists& lists_;
  const Resources resources_;
  std::vector<std::unique_ptr<CellWorker>> workers_;
  HostArray<uint32_t> queries_;
  std::vector<int64_t> offsets_;
};

}  // namespace

std::unique_ptr<CellSteps> make_cell_steps_cpu(const PairRows& rows, CellPartition& cells, WorkingLists& lists,
                                               const Resources& resources) {
  return std::make_unique<CellStepsCpu>(rows, cells, lists, resources);
}

int64_t cell_steps_bytes_cpu(int64_t rows, int64_t cols, PanelFormat format, int64_t list_length, int64_t wave,
                             int64_t cells, int threads) {
  const int64_t worker = pair_scan_bytes(format, cols, kQueryBlock, kTileRows) +
                         kQueryBlock * CandidateList::bytes_for(list_length) + CandidateScratch::bytes_for(list_length) +
                         array_bytes<Waiting>(kMostWaiting);
  return rows * 4 * wave + (16 + 8 * threads) * cells + threads * worker;
}

}  // namespace kith
