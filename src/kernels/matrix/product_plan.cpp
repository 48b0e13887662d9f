#include "kernels/matrix/product_plan.hpp"

#include <kith/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace kith {
namespace {

constexpr int64_t kMostTilesPerItem = 512;  // 64 Ki rows: 16 MiB of halves with 128 columns
constexpr int64_t kWaves = 12;              // items a block gets, where there is enough to do
constexpr int64_t kResidentChunks = 4;      // of queries that a block keeps in shared memory
constexpr int64_t kPanelBytes = int64_t{24} << 20;  // of the L2 cache, half of which is near to a multiprocessor
constexpr int64_t kOtherShared = 1024;      // bytes that a re-ranking block has beside its lists

}  // namespace

int64_t panel_of(int64_t all, int64_t chunks) {
  const int64_t most = std::max<int64_t>(kPanelBytes / (2 * kTileChunkBytes * chunks), 1);
  if (chunks <= kResidentChunks || all <= most) return all;
  return divide_up(all, divide_up(all, most));
}

ProductSchedule schedule_product(int64_t queries, int64_t rows, int multiprocessors, int64_t chunks) {
  ProductSchedule schedule;
  schedule.query_tiles = static_cast<int>(operand_tiles(queries) / 2);
  schedule.base_tiles = static_cast<int>(operand_tiles(rows));
  const int64_t work = static_cast<int64_t>(schedule.query_tiles) * schedule.base_tiles;
  // Among the lengths that give a block some ten items, the one that leaves the fewest blocks idle at the end.
  int64_t best_cost = INT64_MAX;
  for (int64_t waves = 1; waves <= 2 * kWaves; ++waves) {
    const int64_t wanted = divide_up(work, waves * multiprocessors);
    const int64_t length = std::clamp<int64_t>(divide_up(wanted, 2) * 2, 2, kMostTilesPerItem);
    const int64_t items = divide_up(schedule.base_tiles, length) * schedule.query_tiles;
    constexpr int64_t kItemCost = 2;  // of new queries, in tiles
    const int64_t cost = divide_up(items, multiprocessors) * (length + kItemCost);
    if (cost >= best_cost) continue;
    best_cost = cost;
    schedule.tiles_per_item = static_cast<int>(length);
    schedule.items = static_cast<int>(items);
  }
  const int64_t panel = panel_of(schedule.query_tiles, chunks);
  if (panel < schedule.query_tiles) schedule.panel_tiles = static_cast<int>(panel);
  return schedule;
}

ProductSchedule schedule_runs(int64_t queries, int64_t rows, int multiprocessors, int64_t chunks) {
  ProductSchedule schedule;
  schedule.query_tiles = static_cast<int>(operand_tiles(queries) / 2);
  schedule.base_tiles = static_cast<int>(operand_tiles(rows));
  const int64_t pairs = schedule.base_tiles / 2;
  const int64_t all = schedule.query_tiles * pairs;
  if (divide_up(all, multiprocessors) > pairs) return schedule_product(queries, rows, multiprocessors, chunks);
  schedule.runs = static_cast<int>(std::min<int64_t>(all, multiprocessors));
  schedule.run_pairs = static_cast<int>(all / schedule.runs);
  schedule.longer_runs = static_cast<int>(all % schedule.runs);
  schedule.items = 2 * schedule.runs;
  return schedule;
}

ProductSchedule schedule_items(const ProductItem* list, int items, const int32_t* count) {
  ProductSchedule schedule;
  schedule.items = items;
  schedule.list = list;
  schedule.list_count = count;
  return schedule;
}

int64_t most_shared_bytes(int compute_capability) {
  constexpr int64_t kKiB = 1024;
  switch (compute_capability) {
    case 80:
    case 87: return 163 * kKiB;
    case 90:
    case 100:
    case 103: return 227 * kKiB;
    default: return 99 * kKiB;
  }
}

int64_t half_shared_bytes(int64_t most_shared_bytes) {
  constexpr int64_t kOfEveryBlock = 1024;  // which the system takes, of the most that all have together
  return (most_shared_bytes + kOfEveryBlock) / 2 - kOfEveryBlock;
}

int64_t rerank_room(int64_t cols, int64_t shared_bytes) {
  return std::max<int64_t>(shared_bytes - kOtherShared - rerank_bytes(0, cols), 0) / 16 * 2;
}

double rows_below_kth(int64_t k, int64_t groups) {
  if (k >= groups) return std::numeric_limits<double>::infinity();
  return -static_cast<double>(groups) * std::log1p(-static_cast<double>(k) / static_cast<double>(groups));
}

ProductEngine product_engine(int compute_capability, ProductEngine asked) {
// A build for other GPUs has no such kernels (products_without_hopper.cpp); one without CUDA plans as if it had.
#ifdef KITH_WITHOUT_HOPPER
  const bool hopper = false;
#else
  const bool hopper = compute_capability == 90;
#endif
  if (asked == ProductEngine::wgmma && !hopper) {
    throw Unsupported("products of warpgroups need compute capability 9.0 and a build for it, and the device has " +
                      std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10));
  }
  if (asked != ProductEngine::automatic) return asked;
  return hopper ? ProductEngine::wgmma : ProductEngine::mma;
}

}  // namespace kith
