#include "graph/build/descent_on_disk/descent_start.hpp"

#include "core/random.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/descent_on_disk/gathered_rows.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/start_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace kith {
namespace {

using ListRows = std::function<void(int64_t i, std::vector<uint32_t>& rows)>;

// What a thread compares rows with.
struct StartComparison {
  PairKeys keys;
  std::vector<uint32_t> rows;
  std::vector<float> found;
};

// Offers to row i of a block what list_rows(i, rows) appends to `rows`; at most `most` of them. Each row is asked for
// twice.
void offer_rows(const DescentBlocks& blocks, int64_t block, int64_t most, const ListRows& list_rows,
                WorkingLists& lists) {
  const VectorFile& x = blocks.task().x;
  const Resources& resources = blocks.resources();
  const int64_t begin = blocks.first_of(block);
  const auto needed = [&](int64_t rows) {
    return counted(resources, [&](const Resources& counting) { (void)GatheredRows(x, rows, counting); });
  };
  const int64_t room =
      rows_that_fit(std::min(most + 1, x.rows()), std::min(x.rows(), kMostGathered), resources, needed);
  GatheredRows gathered(x, room, resources);
  std::vector<uint32_t> listed;
  for (int64_t first = 0; first < blocks.rows_of(block);) {
    gathered.clear();
    int64_t end = first;
    for (; end < blocks.rows_of(block); ++end) {
      listed.assign(1, static_cast<uint32_t>(begin + end));
      list_rows(end, listed);
      if (!gathered.add(listed.data(), static_cast<int64_t>(listed.size()))) break;
    }
    gathered.load();
    std::vector<StartComparison> workers(
        static_cast<size_t>(resources.threads()),
        {PairKeys(gathered.view(), key_kind(blocks.task().params.metric)), {}, {}});
    const auto offer = [&](int64_t from, int64_t to, int slot) {
      StartComparison& mine = workers[static_cast<size_t>(slot)];
      for (int64_t i = first + from; i < first + to; ++i) {
        mine.rows.clear();
        list_rows(i, mine.rows);
        if (mine.rows.empty()) continue;
        for (uint32_t& row : mine.rows) row = gathered.place_of(row);
        mine.found.resize(mine.rows.size());
        const uint32_t place = gathered.place_of(static_cast<uint32_t>(begin + i));
        mine.keys.of(place, mine.rows.data(), static_cast<int64_t>(mine.rows.size()), mine.found.data());
        for (size_t j = 0; j < mine.rows.size(); ++j) {
          lists.offer_alone(i, pack_neighbor(ordered_key(mine.found[j]), gathered.row_at(mine.rows[j])));
        }
      }
    };
    for_row_blocks("start", end - first, resources, offer, kDescentRowsPerTask);
    first = end;
  }
}

}  // namespace

void offer_graphs(const DescentBlocks& blocks, int64_t block, int64_t most, WorkingLists& lists) {
  const int64_t k = blocks.task().params.k;
  const HostArray<int64_t> ids(blocks.rows_of(block) * k, "the graphs' neighbours", blocks.resources());
  blocks.task().graphs(blocks.first_of(block), blocks.rows_of(block), ids.data());
  const auto list_rows = [&](int64_t i, std::vector<uint32_t>& named) {
    const int64_t* const of_row = ids.data() + i * k;
    for (int64_t j = 0; j < std::min(most, k) && of_row[j] >= 0; ++j) named.push_back(static_cast<uint32_t>(of_row[j]));
  };
  offer_rows(blocks, block, std::min(most, k), list_rows, lists);
}

void offer_random(const DescentBlocks& blocks, int64_t block, WorkingLists& lists) {
  const DescentRules& rules = blocks.task().params.rules;
  const int64_t length = blocks.task().length;
  const CounterRng rng(rules.seed, kStartStream);
  // Room as it was before any of them came: each row is asked for twice.
  const HostArray<int32_t> room(blocks.rows_of(block), "random rows", blocks.resources());
  blocks.for_rows(block, [&](int64_t i, int) {
    const uint64_t* const list = lists.list(i);
    room[i] = static_cast<int32_t>(std::count(list, list + length, kPadding));
  });
  const auto list_rows = [&](int64_t i, std::vector<uint32_t>& drawn) {
    std::vector<uint32_t> of_row;
    draw_start_rows(rng, blocks.first_of(block) + i, {blocks.rows(), rules.boundary}, room[i], of_row);
    drawn.insert(drawn.end(), of_row.begin(), of_row.end());
  };
  offer_rows(blocks, block, length, list_rows, lists);
}

void count_start(const DescentBlocks& blocks) {
  const Resources& resources = blocks.resources();
  const DescentTask& task = blocks.task();
  const WorkingLists lists = blocks.empty_lists();
  const HostArray<int64_t> ids(blocks.block_rows() * task.params.k, "the graphs' neighbours", resources);
  const GatheredRows gathered(task.x, std::min(task.length + 1, blocks.rows()), resources);
}

}  // namespace kith
