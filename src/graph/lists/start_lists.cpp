#include "graph/lists/start_lists.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/start_rules.hpp"

#include <algorithm>
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
  std::vector<StartWorker> workers(static_cast<size_t>(resources.threads()),
                                   {PairKeys(rows), {}, {}});
  ProgressMeter meter("start", count, resources);
  parallel_for(divide_up(count, kStartedRowsPerTask), meter, resources, [&](int64_t task, int slot) {
    const int64_t end = std::min((task + 1) * kStartedRowsPerTask, count);
    for (int64_t i = task * kStartedRowsPerTask; i < end; ++i) body(first + i, workers[static_cast<size_t>(slot)]);
    meter.add(end - task * kStartedRowsPerTask);
  });
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

}  // namespace

void add_random_rows(const PairRows& rows, int64_t boundary, uint64_t seed, WorkingLists& lists,
                     const Resources& resources) {
  const int64_t all = lists.rows();
  const CounterRng rng(seed, kStartStream);
  for_lists(rows, 0, all, resources, [&](int64_t row, StartWorker& worker) {
    const auto number = static_cast<uint32_t>(row);
    const bool before = row < boundary;
    const int64_t others = boundary == 0 ? all - 1 : before ? all - boundary : boundary;
    const uint64_t* const list = lists.list(row);
    const int64_t room = std::count(list, list + lists.length(), kPadding);
    draw_distinct(rng, number, std::min(room, others), others, worker.rows);
    for (uint32_t& drawn : worker.rows) {
      if (boundary == 0) {
        drawn = other_row(number, drawn);
      } else if (before) {
        drawn += static_cast<uint32_t>(boundary);
      }
    }
    worker.offer(lists, row);
  });
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

}  // namespace kith
