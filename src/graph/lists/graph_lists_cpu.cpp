#include "graph/lists/graph_lists_cpu.hpp"

#include <kith/knn.hpp>

#include "core/within_limits.hpp"
#include "graph/lists/graph_share.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/start_rules.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kStartedRowsPerTask = 256;

// What a thread needs to offer rows to a list.
struct StartWorker {
  PairKeys keys;
  std::vector<uint32_t> rows;
  std::vector<float> found;

  void offer(WorkingLists& lists, int64_t row) {
    found.resize(rows.size());
    if (rows.empty()) return;
    keys.of(static_cast<uint32_t>(row), rows.data(), static_cast<int64_t>(rows.size()), found.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      lists.offer_alone(row, pack_neighbor(ordered_key(found[i]), rows[i]));
    }
  }
};

template <typename Body>
void for_lists(const PairRows& rows, int64_t first, int64_t count, const Resources& resources, const Body& body) {
  std::vector<StartWorker> workers(static_cast<size_t>(resources.threads()), {PairKeys(rows), {}, {}});
  const auto offer = [&](int64_t begin, int64_t end, int slot) {
    for (int64_t i = begin; i < end; ++i) body(first + i, workers[static_cast<size_t>(slot)]);
  };
  for_row_blocks("start", count, resources, offer, kStartedRowsPerTask);
}

// `count` distinct numbers below `bound`, by Floyd's algorithm: the draw that was there already becomes the largest.
void draw_distinct(const CounterRng& rng, uint32_t row, int64_t count, int64_t bound, std::vector<uint32_t>& out) {
  out.clear();
  for (int64_t draw = 0; draw < count; ++draw) {
    const int64_t largest = bound - count + draw;
    uint32_t number = start_draw(rng, row, draw, static_cast<uint32_t>(largest + 1));
    const auto at = std::lower_bound(out.begin(), out.end(), number);
    if (at != out.end() && *at == number) {
      out.push_back(static_cast<uint32_t>(largest));  // above all that were drawn
    } else {
      out.insert(at, number);
    }
  }
}

// Which random rows are added, and to the lists of which rows.
struct RandomRows {
  int64_t boundary = 0;
  uint64_t seed = 0;
  RankPart to;
};

void add_random(const PairRows& rows, const RandomRows& added, WorkingLists& lists, const Resources& resources) {
  const CounterRng rng(added.seed, kStartStream);
  for_lists(rows, added.to.first, added.to.count, resources, [&](int64_t row, StartWorker& worker) {
    const uint64_t* const list = lists.list(row);
    const int64_t room = std::count(list, list + lists.length(), kPadding);
    draw_start_rows(rng, row, {lists.rows(), added.boundary}, room, worker.rows);
    worker.offer(lists, row);
  });
}

// Those for the lists of some rows.
NamedRows within(const NamedRows& named, const RankPart& rows) {
  NamedRows some = named;
  some.first = std::max(named.first, rows.first);
  some.count = std::max<int64_t>(std::min(named.first + named.count, rows.end()) - some.first, 0);
  some.ids = named.ids + (some.first - named.first) * named.k;
  return some;
}

}  // namespace

void draw_start_rows(const CounterRng& rng, int64_t row, const StartSets& sets, int64_t most,
                     std::vector<uint32_t>& out) {
  const auto number = static_cast<uint32_t>(row);
  const bool before = row < sets.boundary;
  const int64_t others = sets.boundary == 0 ? sets.rows - 1 : before ? sets.rows - sets.boundary : sets.boundary;
  draw_distinct(rng, number, std::min(most, others), others, out);
  for (uint32_t& drawn : out) {
    if (sets.boundary == 0) {
      drawn = other_row(number, drawn);
    } else if (before) {
      drawn += static_cast<uint32_t>(sets.boundary);
    }
  }
}

void add_random_rows(const PairRows& rows, int64_t boundary, uint64_t seed, WorkingLists& lists,
                     const Resources& resources) {
  add_random(rows, {boundary, seed, {0, lists.rows()}}, lists, resources);
}

void add_named_rows(const PairRows& rows, const NamedRows& named, WorkingLists& lists, const Resources& resources) {
  for_lists(rows, named.first, named.count, resources, [&](int64_t row, StartWorker& worker) {
    worker.rows.clear();
    const int64_t* const ids = named.ids + (row - named.first) * named.k;
    for (int64_t j = 0; j < named.most && ids[j] >= 0; ++j) {
      worker.rows.push_back(static_cast<uint32_t>(named.first_id + ids[j]));
    }
    worker.offer(lists, row);
  });
}

void GraphListsCpu::begin(int64_t length) {
  lists_ = WorkingLists(0, length, resources_);  // the old ones go before the new ones come
  lists_ = WorkingLists(rows(), length, resources_);
}

void GraphListsCpu::resize(int64_t length) {
  WorkingLists resized(rows(), length, resources_);
  for_row_blocks("resize", rows(), resources_.with_progress({}), [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      std::copy_n(lists_.list(row), std::min(length, lists_.length()), resized.list(row));
      resized.refresh_threshold(row);
    }
  });
  lists_ = std::move(resized);
}

void GraphListsCpu::add_random_rows(uint64_t seed, int64_t boundary) {
  const RankPart own = share_ == nullptr ? RankPart{0, rows()} : share_->rows();
  add_random(pairs_, {boundary, seed, own}, lists_, resources_);
  give_lists();
  has_random_rows_ = true;
}

void GraphListsCpu::add_rows(const NamedRows& rows) {
  add_named_rows(pairs_, share_ == nullptr ? rows : within(rows, share_->rows()), lists_, resources_);
  give_lists();
}

void GraphListsCpu::give_lists() {
  if (share_ != nullptr) share_->give_lists(lists_, resources_);
}

ListSurvey GraphListsCpu::survey(int64_t k, Flags flags) { return survey_lists(lists_, k, metric_, flags, resources_); }

void GraphListsCpu::write(const NeighborsView& out, const RankPart& rows) {
  write_lists(lists_, metric_, rows, out, resources_);
}

std::optional<RecallEstimate> GraphListsCpu::measure() {
  if (control_ == nullptr || counts_only(resources_)) return std::nullopt;
  return control_->measure(lists_);
}

int64_t GraphListsCpu::control_rows() const {
  return control_ == nullptr ? 0 : static_cast<int64_t>(control_->rows().size());
}

void with_graph_lists(const MatrixView& x, const GraphRowsParams& rows, const Resources& resources,
                      const std::function<void(GraphLists&)>& use) {
  const auto on_cpu = [&] {
    const Resources quiet = resources.with_progress({});
    if (rows.check_finite) refuse_not_finite("base", x, {}, quiet);
    if (rows.metric == Metric::chi_square) refuse_negative("base", x, {}, quiet);
    const PairRows pairs(x, key_kind(rows.metric), resources);
    const auto search = [&](const MatrixView& queries, int64_t most, const Resources& used) {
      if (rows.share != nullptr) return rows.share->search(queries, x, rows.metric, most, used);
      return knn(queries, x, {.k = most, .metric = rows.metric, .check_finite = false}, used);
    };
    const ControlRows control(x, rows.metric, rows.k, rows.seed, resources, search);
    WorkingLists working(0, rows.k, resources);
    GraphListsCpu lists(pairs, rows.metric, &control, working, resources, rows.share);
    use(lists);
  };
  dispatch(resources.device(), on_cpu,
           [&](int device) { use(*make_graph_lists_cuda(device, x, rows, nullptr, resources)); });
}

}  // namespace kith
