// Products of a list of items: what they cover is as in the product of all queries with all rows, the rest stays as it
// was, for every epilogue.
#include "cuda/operands.hpp"
#include "cuda/parity.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace kith {
namespace {

class CudaProductItemsSmall : public OnCuda {};

constexpr int64_t kItemQueries = 700;
constexpr int64_t kItemRows = 3000;
constexpr int kTiles = 24;     // of rows
constexpr int kPartTiles = 4;  // of the part of the base that an item of the nearest rows has
constexpr unsigned char kUntouched = 0xA5;

// Runs that do not overlap, of each tile of queries another choice, in no order: of the length given, or of any even
// one.
constexpr int kAnyLength = 0;
std::vector<ProductItem> random_items(uint32_t seed, int given_length) {
  std::mt19937 random(seed);
  std::vector<ProductItem> items;
  for (int query_tile = 0; query_tile < 3; ++query_tile) {
    for (int tile = 0; tile < kTiles;) {
      const auto longest = static_cast<uint32_t>(std::min(10, kTiles - tile));
      const int length = given_length > 0 ? given_length : 2 * (1 + static_cast<int>(random() % (longest / 2)));
      if (random() % 2 == 0) items.push_back({query_tile, tile, tile + length});
      tile += length;
    }
  }
  std::shuffle(items.begin(), items.end(), random);
  return items;
}

bool covered(const std::vector<ProductItem>& items, int64_t query, int64_t row) {
  return std::any_of(items.begin(), items.end(), [&](const ProductItem& item) {
    return query / kQueryTile == item.query_tile && row >= int64_t{item.first_tile} * kOperandTile &&
           row < int64_t{item.end_tile} * kOperandTile;
  });
}

// The list with more behind it than count, which the device knows.
struct DeviceItems {
  std::vector<ProductItem> padded;
  int32_t count;
  DeviceBytes list;
  DeviceBytes length;

  explicit DeviceItems(const std::vector<ProductItem>& items)
      : padded([&] {
          std::vector<ProductItem> more = items;
          more.resize(items.size() + 9, {1 << 20, 1 << 20, 1 << 21});
          return more;
        }()),
        count(static_cast<int32_t>(items.size())),
        list(padded.data(), padded.size() * sizeof(ProductItem)),
        length(&count, sizeof count) {}

  ProductSchedule schedule(bool counted_there) const {
    if (!counted_there) return schedule_items(as<ProductItem>(list), count);
    return schedule_items(as<ProductItem>(list), static_cast<int>(padded.size()), as<int32_t>(length));
  }
};

// Runs `launch` with the list, its length on the host or the device, and with all; `place` says where a value of the
// result belongs: {query, first row}.
template <typename T>
void expect_covered(const std::vector<ProductItem>& items, const ProductSchedule& all, int64_t values,
                    const std::function<void(const ProductSchedule&, T*)>& launch,
                    const std::function<std::pair<int64_t, int64_t>(int64_t)>& place) {
  const DeviceItems list(items);
  const auto run = [&](const ProductSchedule& schedule) {
    const DeviceBytes out(static_cast<size_t>(values) * sizeof(T));
    KITH_CUDA_CHECK(cudaMemset(out.data(), kUntouched, static_cast<size_t>(values) * sizeof(T)));
    launch(schedule, as<T>(out));
    return read_back<T>(out, values);
  };
  const std::vector<T> expected = run(all);
  T untouched;
  std::memset(&untouched, kUntouched, sizeof untouched);
  for (const bool counted_there : {false, true}) {
    const std::vector<T> found = run(list.schedule(counted_there));
    for (int64_t i = 0; i < values; ++i) {
      const auto [query, row] = place(i);
      const T& wanted = covered(items, query, row) ? expected[static_cast<size_t>(i)] : untouched;
      ASSERT_EQ(std::memcmp(&found[static_cast<size_t>(i)], &wanted, sizeof wanted), 0)
          << "value " << i << ", query " << query << ", row " << row;
    }
  }
}

TEST_F(CudaProductItemsSmall, MinimaPartsAndMarks) {
  const ProductSchedule all = schedule_product(kItemQueries, kItemRows, 7);
  const std::vector<float> thresholds(static_cast<size_t>(kItemQueries), 100.0f);
  const DeviceBytes limits(thresholds.data(), thresholds.size() * 4);
  for (const DType dtype : {DType::f32, DType::u8}) {
    for (const int64_t cols : {40, 700}) {  // the queries stay in shared memory, or come with every chunk
      const DeviceOperands data(dtype, kItemQueries, kItemRows, cols);
      const std::vector<ProductItem> items = random_items(5 + static_cast<uint32_t>(cols), kAnyLength);
      for (const ProductEngine engine : engines_here()) {
        for (const int tiles : {1, 2}) {
          const int64_t groups = group_count(kItemRows, tiles);
          expect_covered<float>(
              items, all, kItemQueries * groups,
              [&](const ProductSchedule& schedule, float* out) {
                launch_product<ProductMinima>(engine, data.view(), schedule, {out, groups, tiles}, nullptr);
              },
              [&](int64_t i) { return std::pair(i / groups, group_row(i % groups, 0, tiles)); });
        }
        const int64_t parts = part_count(kItemRows, 8);
        expect_covered<float>(
            items, all, kItemQueries * parts,
            [&](const ProductSchedule& schedule, float* out) {
              launch_product<ProductParts>(engine, data.view(), schedule, {out, 8}, nullptr);
            },
            [&](int64_t i) { return std::pair(i / parts, i % parts / 16 * kOperandTile); });
        const int64_t words = mark_words(kItemRows);
        expect_covered<uint32_t>(
            items, all, kItemQueries * words,
            [&](const ProductSchedule& schedule, uint32_t* out) {
              launch_product<ProductMarks>(engine, data.view(), schedule, {as<float>(limits), out}, nullptr);
            },
            [&](int64_t i) { return std::pair(i / words, marked_row(i % words, 0)); });
      }
    }
  }
}

TEST_F(CudaProductItemsSmall, Candidates) {
  const DeviceOperands data(DType::f32, kItemQueries, kItemRows, 40);
  const std::vector<float> thresholds(static_cast<size_t>(kItemQueries), 100.0f);  // amid the values
  const DeviceBytes limits(thresholds.data(), thresholds.size() * 4);
  const std::vector<ProductItem> items = random_items(6, kAnyLength);
  const DeviceItems list(items);
  for (const ProductEngine engine : engines_here()) {
    const auto run = [&](const ProductSchedule& schedule) {
      const DeviceBytes counts(static_cast<size_t>(kItemQueries) * 4);
      const DeviceBytes rows(static_cast<size_t>(kItemQueries * kItemRows) * 4);
      KITH_CUDA_CHECK(cudaMemset(counts.data(), 0, static_cast<size_t>(kItemQueries) * 4));
      launch_product<ProductCandidates>(engine, data.view(), schedule,
                                        {as<float>(limits), as<uint32_t>(counts), as<uint32_t>(rows), kItemRows},
                                        nullptr);
      const std::vector<uint32_t> found_counts = read_back<uint32_t>(counts, kItemQueries);
      const std::vector<uint32_t> found = read_back<uint32_t>(rows, kItemQueries * kItemRows);
      std::vector<std::vector<uint32_t>> lists;
      for (int64_t q = 0; q < kItemQueries; ++q) {
        const auto first = found.begin() + q * kItemRows;
        lists.emplace_back(first, first + found_counts[static_cast<size_t>(q)]);
        std::sort(lists.back().begin(), lists.back().end());
      }
      return lists;
    };
    std::vector<std::vector<uint32_t>> expected = run(schedule_product(kItemQueries, kItemRows, 7));
    size_t kept = 0;
    size_t dropped = 0;
    for (int64_t q = 0; q < kItemQueries; ++q) {
      std::vector<uint32_t>& rows = expected[static_cast<size_t>(q)];
      dropped += std::erase_if(rows, [&](uint32_t row) { return !covered(items, q, row); });
      kept += rows.size();
    }
    ASSERT_GT(kept, 0u);
    ASSERT_GT(dropped, 0u);
    for (const bool counted_there : {false, true}) ASSERT_EQ(run(list.schedule(counted_there)), expected);
  }
}

// The pairs that either limit lets pass, each with terms of its own: as candidates of that limit and those terms.
template <typename Acc>
void expect_pairs(DType dtype, Acc threshold) {
  const DeviceOperands data(dtype, kItemQueries, kItemRows, 40);
  const int64_t padded = operand_tiles(kItemRows) * kOperandTile;
  const int64_t slots = operand_tiles(kItemQueries) / 2 * kQueryTile;
  const std::vector<float> thresholds(static_cast<size_t>(kItemQueries), static_cast<float>(threshold));
  const DeviceBytes limits(thresholds.data(), thresholds.size() * 4);
  std::vector<Acc> terms(static_cast<size_t>(padded));
  KITH_CUDA_CHECK(cudaMemcpy(terms.data(), data.view().terms, terms.size() * 4, cudaMemcpyDeviceToHost));
  const std::vector<ProductItem> items = random_items(8, 3);  // of any number of tiles
  const DeviceItems list(items);
  const Acc none = std::numeric_limits<Acc>::lowest();
  for (const ProductEngine engine : engines_here()) {
    const DeviceBytes counts(static_cast<size_t>(kItemQueries) * 4);
    const DeviceBytes rows(static_cast<size_t>(kItemQueries * kItemRows) * 4);
    KITH_CUDA_CHECK(cudaMemset(counts.data(), 0, static_cast<size_t>(kItemQueries) * 4));
    launch_product<ProductCandidates>(engine, data.view(), list.schedule(false),
                                      {as<float>(limits), as<uint32_t>(counts), as<uint32_t>(rows), kItemRows},
                                      nullptr);
    const std::vector<uint32_t> candidates = read_back<uint32_t>(rows, kItemQueries * kItemRows);
    const std::vector<uint32_t> found_counts = read_back<uint32_t>(counts, kItemQueries);
    std::vector<uint64_t> expected;
    for (int64_t q = 0; q < kItemQueries; ++q) {
      for (uint32_t i = 0; i < found_counts[static_cast<size_t>(q)]; ++i) {
        expected.push_back(static_cast<uint64_t>(q) << 32 | candidates[static_cast<size_t>(q * kItemRows + i)]);
      }
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_GT(expected.size(), 1000u);
    for (const int side : {0, 1}) {
      const Acc no_term = terms.back();  // of a place without a row
      std::vector<Acc> both(static_cast<size_t>(2 * padded), no_term);
      for (int64_t i = 0; i < padded; ++i) {
        both[static_cast<size_t>(i / kOperandTile * 2 * kOperandTile + side * kOperandTile + i % kOperandTile)] =
            terms[static_cast<size_t>(i)];
      }
      std::vector<Acc> two(static_cast<size_t>(2 * slots), none);
      for (int64_t q = 0; q < kItemQueries; ++q) two[static_cast<size_t>(2 * q + side)] = threshold;
      const DeviceBytes pair_terms(both.data(), both.size() * 4);
      const DeviceBytes pair_limits(two.data(), two.size() * 4);
      const DeviceBytes count(4);
      const auto room = static_cast<int64_t>(expected.size());
      const DeviceBytes pairs(static_cast<size_t>(room) * 8);
      ProductOperands operands = data.view();
      operands.terms = pair_terms.data();
      for (const int64_t capacity : {room, room / 2}) {
        KITH_CUDA_CHECK(cudaMemset(count.data(), 0, 4));
        launch_product<ProductPairs>(
            engine, operands, list.schedule(false),
            {pair_limits.data(), as<uint64_t>(pairs), as<uint32_t>(count), static_cast<uint32_t>(capacity)}, nullptr);
        ASSERT_EQ(read_back<uint32_t>(count, 1)[0], expected.size());  // also where there is no room for them
        std::vector<uint64_t> found = read_back<uint64_t>(pairs, capacity);
        std::sort(found.begin(), found.end());
        ASSERT_TRUE(std::includes(expected.begin(), expected.end(), found.begin(), found.end()));
        if (capacity == room) {
          ASSERT_EQ(found, expected);
        }
      }
    }
  }
}

TEST_F(CudaProductItemsSmall, Pairs) {
  expect_pairs<float>(DType::f32, 100.0f);
  expect_pairs<int32_t>(DType::u8, 20000);
}

TEST_F(CudaProductItemsSmall, PartsFromTheItemsFirstRow) {
  const DeviceOperands data(DType::f32, kItemQueries, kItemRows, 40);
  const std::vector<ProductItem> items{{0, 3, 8}, {1, 10, 11}, {2, 0, 5}};
  const DeviceItems list(items);
  for (const ProductEngine engine : engines_here()) {
    for (const int each : {8, 2}) {
      const int64_t per_tile = kOperandTile / each;
      const int64_t all_parts = part_count(kItemRows, each);
      const int64_t stride = 5 * per_tile;
      const DeviceBytes all(static_cast<size_t>(kItemQueries * all_parts) * 4);
      const DeviceBytes some(static_cast<size_t>(kItemQueries * stride) * 4);
      KITH_CUDA_CHECK(cudaMemset(some.data(), 0x7F, static_cast<size_t>(kItemQueries * stride) * 4));
      launch_product<ProductParts>(engine, data.view(), schedule_product(kItemQueries, kItemRows, 7),
                                   {as<float>(all), each}, nullptr);
      launch_product<ProductParts>(engine, data.view(), list.schedule(false), {as<float>(some), each, stride}, nullptr);
      const std::vector<float> expected = read_back<float>(all, kItemQueries * all_parts);
      const std::vector<float> found = read_back<float>(some, kItemQueries * stride);
      for (int64_t q = 0; q < kItemQueries; ++q) {
        const ProductItem& item = items[static_cast<size_t>(q / kQueryTile)];
        for (int64_t i = 0; i < (item.end_tile - item.first_tile) * per_tile; ++i) {
          ASSERT_EQ(found[static_cast<size_t>(q * stride + i)],
                    expected[static_cast<size_t>(q * all_parts + item.first_tile * per_tile + i)]);
        }
      }
    }
  }
}

// What the nearest rows are is the matter of centre_search_test; here, that a row's slack counts, and odd tiles.
TEST_F(CudaProductItemsSmall, NearestWithinTheRowsSlack) {
  constexpr int64_t kRows = 300;  // three tiles
  const DeviceOperands data(DType::f32, kItemQueries, kRows, 40);
  const std::vector<float> none(static_cast<size_t>(kItemQueries), 0.0f);
  const std::vector<float> limit(static_cast<size_t>(kItemQueries), kFarthestValue);
  const DeviceBytes slacks(none.data(), none.size() * 4);
  const DeviceBytes limits(limit.data(), limit.size() * 4);
  ProductSchedule schedule;
  schedule.query_tiles = 3;
  schedule.base_tiles = 3;
  schedule.tiles_per_item = 4;
  schedule.items = 3;
  for (const ProductEngine engine : engines_here()) {
    const auto found_with = [&](float slack) {
      const std::vector<float> widths(static_cast<size_t>(operand_tiles(kRows) * kOperandTile), slack);
      const DeviceBytes row_slacks(widths.data(), widths.size() * 4);
      const DeviceBytes part_slacks(widths.data(), widths.size() / kGroupRowsPerTile * 4);
      const DeviceBytes out(static_cast<size_t>(kItemQueries) * sizeof(NearestRows));
      launch_product<ProductNearest>(
          engine, data.view(), schedule,
          {as<float>(slacks), as<float>(limits), as<float>(row_slacks), as<float>(part_slacks), as<NearestRows>(out),
           kItemQueries, 4 * kOperandTile, kItemQueries},
          nullptr);
      return read_back<NearestRows>(out, kItemQueries);
    };
    const std::vector<NearestRows> one = found_with(0.0f);
    const std::vector<NearestRows> all = found_with(1e30f);
    int64_t in_last_tile = 0;
    for (size_t q = 0; q < one.size(); ++q) {
      ASSERT_LT(one[q].rows[0], kRows);
      EXPECT_EQ(all[q].rows[0], one[q].rows[0]) << "query " << q;
      EXPECT_EQ(all[q].values[0], one[q].values[0]) << "query " << q;
      EXPECT_NE(all[q].rows[kNearestKept - 1], kNoNearest) << "query " << q;
      EXPECT_LT(all[q].values[kNearestKept], kFarthestValue) << "query " << q;
      in_last_tile += one[q].rows[0] >= 2 * kOperandTile ? 1 : 0;
    }
    EXPECT_GT(in_last_tile, 0);
  }
}

TEST_F(CudaProductItemsSmall, Nearest) {
  const DeviceOperands data(DType::f32, kItemQueries, kItemRows, 40);
  const std::vector<float> row_slack(static_cast<size_t>(operand_tiles(kItemRows) * kOperandTile), 0.25f);
  const DeviceBytes row_slacks(row_slack.data(), row_slack.size() * 4);
  const DeviceBytes part_slacks(row_slack.data(), row_slack.size() / kGroupRowsPerTile * 4);
  const std::vector<float> slack(static_cast<size_t>(kItemQueries), 0.5f);
  const std::vector<float> limit(static_cast<size_t>(kItemQueries), kFarthestValue);
  const DeviceBytes slacks(slack.data(), slack.size() * 4);
  const DeviceBytes limits(limit.data(), limit.size() * 4);
  ProductSchedule all;
  all.query_tiles = 3;
  all.base_tiles = kTiles;
  all.tiles_per_item = kPartTiles;
  all.items = 3 * kTiles / kPartTiles;
  constexpr int64_t kPartRows = kPartTiles * kOperandTile;
  for (const ProductEngine engine : engines_here()) {
    expect_covered<NearestRows>(
        random_items(7, kPartTiles), all, kTiles / kPartTiles * kItemQueries,
        [&](const ProductSchedule& schedule, NearestRows* out) {
          launch_product<ProductNearest>(engine, data.view(), schedule,
                                         {as<float>(slacks), as<float>(limits), as<float>(row_slacks),
                                          as<float>(part_slacks), out, kItemQueries, kPartRows, kItemQueries},
                                         nullptr);
        },
        [&](int64_t i) { return std::pair(i % kItemQueries, i / kItemQueries * kPartRows); });
  }
}

TEST_F(CudaProductItemsSmall, NoItems) {
  const DeviceOperands data(DType::f32, 5, 300, 8);
  for (const ProductEngine engine : engines_here()) {
    expect_covered<float>(
        {}, schedule_product(5, 300, 7), 5 * group_count(300, 1),
        [&](const ProductSchedule& schedule, float* out) {
          launch_product<ProductMinima>(engine, data.view(), schedule, {out, group_count(300, 1), 1}, nullptr);
        },
        [&](int64_t i) { return std::pair(i / group_count(300, 1), group_row(i % group_count(300, 1), 0, 1)); });
  }
}

}  // namespace
}  // namespace kith
