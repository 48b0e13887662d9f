#include <kith/error.hpp>
#include <kith/index.hpp>

#include "exact/exact_check.hpp"
#include "exact/exact_search.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

// Keeps about `share` of the rows, at random.
std::vector<uint8_t> random_mask(int64_t rows, double share, uint64_t seed) {
  const CounterRng rng(seed, 9);
  std::vector<uint8_t> mask(static_cast<size_t>(rows));
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = rng.uniform(i) < share ? 1 : 0;
  return mask;
}

std::vector<uint8_t> packed(const std::vector<uint8_t>& mask) {
  std::vector<uint8_t> bits((mask.size() + 7) / 8);
  for (size_t i = 0; i < mask.size(); ++i) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | mask[i] << (i % 8));
  return bits;
}

std::vector<int64_t> listed(const std::vector<uint8_t>& mask) {
  std::vector<int64_t> ids;
  for (size_t i = mask.size(); i-- > 0;) {  // backwards, and some twice
    if (mask[i] == 0) continue;
    ids.push_back(static_cast<int64_t>(i));
    if (i % 5 == 0) ids.push_back(static_cast<int64_t>(i));
  }
  return ids;
}

constexpr double kShares[] = {0.0, 0.004, 0.1, 0.5, 0.7, 0.99, 1.0};

TEST(Filter, EveryFormAndShareEqualsTheReference) {
  for (const double share : kShares) {
    for (const int64_t queries : {2, 20}) {
      for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
        SCOPED_TRACE(::testing::Message() << share << " of the rows, " << queries << " queries, " << name_of(metric));
        const auto base = make_floats(Shape::gaussian, 1003, 20, 1);
        const auto query_rows = make_floats(Shape::gaussian, queries, 20, 2);
        const auto mask = random_mask(base.rows, share, 3);
        const auto bits = packed(mask);
        const auto ids = listed(mask);
        check(query_rows, base, {12, metric, true, RowFilter::mask(mask.data(), base.rows)});
        check(query_rows, base, {12, metric, true, RowFilter::bits(bits.data(), base.rows)});
        check(query_rows, base, {12, metric, true, RowFilter::rows(ids.data(), static_cast<int64_t>(ids.size()))});
      }
    }
  }
}

TEST(Filter, AnIndexEqualsTheReference) {
  const auto base = make_floats(Shape::near_duplicates, 2000, 16, 1);
  const auto bytes = make_bytes(2000, 16, 1);
  for (const bool prepare : {true, false}) {
    Index index("Flat", {.metric = Metric::sqeuclidean, .prepare = prepare});
    index.add(base.view().slice(0, 700), Ownership::borrow, on_cpu());
    index.add(base.view().slice(700, 1300), Ownership::copy, on_cpu());
    Index byte_index("Flat", {.metric = Metric::sqeuclidean, .prepare = prepare});
    byte_index.add(bytes.view(), Ownership::copy, on_cpu());
    for (const double share : kShares) {
      for (const int64_t queries : {3, 25}) {
        SCOPED_TRACE(::testing::Message() << share << " of the rows, " << queries << " queries");
        const auto query_rows = make_floats(Shape::near_duplicates, queries, 16, 2);
        const auto mask = random_mask(base.rows, share, 4);
        const RowFilter filter = RowFilter::mask(mask.data(), base.rows);
        expect_same(index.search(query_rows.view(), {.k = 40, .filter = filter}, on_cpu()),
                    reference::knn(query_rows, base, {40, Metric::sqeuclidean, true, filter}));
        expect_same(byte_index.search(query_rows.view(), {.k = 40, .filter = filter}, on_cpu()),
                    reference::knn(query_rows, bytes, {40, Metric::sqeuclidean, true, filter}));
      }
    }
  }
}

TEST(Filter, RowsThatItLeavesOutAreNotLookedAt) {
  auto base = make_floats(Shape::gaussian, 200, 8, 1);
  base.row(50)[3] = NAN;
  for (const int64_t queries : {2, 20}) {
    const auto query_rows = make_floats(Shape::gaussian, queries, 8, 2);
    std::vector<uint8_t> mask(200, 1);
    EXPECT_THROW(
        knn(query_rows.view(), base.view(), {3, Metric::l2, true, RowFilter::mask(mask.data(), 200)}, on_cpu()),
        InvalidArgument);
    for (const int64_t last : {60, 200}) {  // few, and nearly all
      std::fill(mask.begin() + last, mask.end(), uint8_t{0});
      mask[50] = 0;
      check(query_rows, base, {3, Metric::l2, true, RowFilter::mask(mask.data(), 200)});
      std::fill(mask.begin(), mask.end(), uint8_t{1});
    }
  }
}

TEST(Filter, ABadRowIsCalledByItsOwnNumber) {
  auto base = make_floats(Shape::gaussian, 200, 8, 1);
  for (float& value : base.values) value = std::abs(value);
  base.row(50)[3] = NAN;
  base.row(60)[3] = -1;
  for (const int64_t queries : {2, 20}) {
    const auto query_rows = reference::without_sign(make_floats(Shape::gaussian, queries, 8, 2));
    for (const int64_t last : {70, 200}) {  // few, and nearly all
      std::vector<uint8_t> mask(200, 0);
      std::fill(mask.begin() + 7, mask.begin() + last, uint8_t{1});
      const RowFilter filter = RowFilter::mask(mask.data(), 200);
      const auto message = [&](Metric metric) -> std::string {
        try {
          knn(query_rows.view(), base.view(), {3, metric, true, filter}, on_cpu());
        } catch (const InvalidArgument& error) {
          return error.what();
        }
        return "";
      };
      EXPECT_NE(message(Metric::l2).find("base row 50 holds a NaN"), std::string::npos) << message(Metric::l2);
      mask[50] = 0;
      EXPECT_NE(message(Metric::chi_square).find("base row 60 holds a value below"), std::string::npos);
      mask[60] = 0;
      EXPECT_EQ(message(Metric::chi_square), "");  // nobody looks at rows that are left out
    }
  }
}

TEST(Filter, WorksFromFiles) {
  const testing::TemporaryDirectory directory;
  const auto base = make_floats(Shape::gaussian, 900, 12, 1);
  const auto queries = make_floats(Shape::gaussian, 15, 12, 2);
  write_vectors(directory.path("base.fbin"), base.view());
  write_vectors(directory.path("queries.fbin"), queries.view());
  for (const double share : {0.02, 0.9}) {
    const auto mask = random_mask(900, share, 5);
    const KnnParams params{7, Metric::l2, true, RowFilter::mask(mask.data(), 900)};
    const reference::Result truth = reference::knn(queries, base, params);
    int64_t seen = 0;
    knn(
        VectorFile(directory.path("queries.fbin")), VectorFile(directory.path("base.fbin")),
        [&](int64_t first, const NeighborsView& part) {
          for (int64_t i = 0; i < part.queries * part.k; ++i) {
            ASSERT_EQ(part.ids[i], truth.ids[static_cast<size_t>(first * part.k + i)]);
          }
          seen += part.queries;
        },
        params, on_cpu());
    EXPECT_EQ(seen, 15);
  }
}

TEST(Filter, RefusesWhatDoesNotFit) {
  const auto base = make_floats(Shape::gaussian, 100, 4, 1);
  const std::vector<uint8_t> mask(101, 1);
  const auto search = [&](const RowFilter& filter) {
    knn(base.view(), base.view(), {3, Metric::l2, true, filter}, on_cpu());
  };
  EXPECT_THROW(search(RowFilter::mask(mask.data(), 101)), InvalidArgument);
  EXPECT_THROW(search(RowFilter::bits(mask.data(), 99)), InvalidArgument);
  EXPECT_THROW(search(RowFilter::mask(nullptr, 100)), InvalidArgument);
  const int64_t outside[] = {3, 100};
  const int64_t negative[] = {-1};
  EXPECT_THROW(search(RowFilter::rows(outside, 2)), InvalidArgument);
  EXPECT_THROW(search(RowFilter::rows(negative, 1)), InvalidArgument);
  EXPECT_NO_THROW(search(RowFilter::rows(nullptr, 0)));
}

TEST(Filter, KeptRowsAreCountedAndFoundInEveryForm) {
  for (const int64_t rows : {1, 63, 64, 65, 4096, 4097, 20000}) {
    for (const double share : {0.003, 0.5, 0.98}) {
      auto mask = random_mask(rows, share, 5);
      mask[static_cast<size_t>(rows / 2)] = 1;
      const auto bits = packed(mask);
      const auto ids = listed(mask);
      const Resources resources = on_cpu();
      KeptRows forms[] = {{RowFilter::mask(mask.data(), rows), rows, resources},
                          {RowFilter::bits(bits.data(), rows), rows, resources},
                          {RowFilter::rows(ids.data(), static_cast<int64_t>(ids.size())), rows, resources}};
      for (KeptRows& kept : forms) {
        int64_t before = 0;
        for (int64_t row = 0; row < rows; ++row) {
          ASSERT_EQ(kept.count_before(row), before) << row << " of " << rows;
          if (mask[static_cast<size_t>(row)] == 0) continue;
          ASSERT_EQ(kept.row_at(before), row);
          ++before;
        }
        EXPECT_EQ(kept.count_before(rows), before);
        EXPECT_EQ(kept.count(), before);
        const uint32_t* const list = kept.list(resources);
        const uint64_t* const words = kept.bits(resources);
        for (int64_t i = 0; i < before; ++i) ASSERT_TRUE(keeps(words, list[i]));
        ASSERT_TRUE(std::is_sorted(list, list + before));
      }
    }
  }
}

TEST(Filter, FewRowsAreGatheredAndMostAreMasked) {
  SearchTask problem;
  problem.shape.queries = 1000;
  problem.shape.rows = problem.rows = 1000000;
  problem.shape.cols = 128;
  EXPECT_EQ(filter_path(problem, 1000000, Device::cpu(), true, cpu_extensions()), FilterPath::none);
  EXPECT_EQ(filter_path(problem, 1000, Device::cpu(), true, cpu_extensions()), FilterPath::gather);
  EXPECT_EQ(filter_path(problem, 990000, Device::cpu(), true, cpu_extensions()), FilterPath::mask);
  EXPECT_EQ(filter_path(problem, 990000, Device::cpu(), false, cpu_extensions()), FilterPath::gather);
  EXPECT_EQ(filter_path(problem, 990000, Device::cuda(0), true, cpu_extensions()), FilterPath::mask);
  EXPECT_EQ(filter_path(problem, 990000, Device::cuda(0), false, cpu_extensions()), FilterPath::list);
  EXPECT_EQ(filter_path(problem, 500000, Device::cuda(0), true, cpu_extensions()), FilterPath::list);
  problem.shape.base_in_memory = false;  // from a file
  EXPECT_EQ(filter_path(problem, 990000, Device::cuda(0), false, cpu_extensions()), FilterPath::gather);
  problem.shape.base_in_memory = true;
  problem.shape.queries = 1;  // copying a row costs more than passing over it once
  EXPECT_EQ(filter_path(problem, 990000, Device::cpu(), false, cpu_extensions()), FilterPath::mask);
  EXPECT_EQ(filter_path(problem, 300000, Device::cpu(), false, cpu_extensions()), FilterPath::mask);
  EXPECT_EQ(filter_path(problem, 50000, Device::cpu(), false, cpu_extensions()), FilterPath::gather);
}

RC_GTEST_PROP(Filter, FilteringIsSearchingTheKeptRowsAlone, ()) {
  const auto rows = *rc::gen::inRange<int64_t>(1, 300);
  const auto base = make_floats(Shape::gaussian, rows, 6, *rc::gen::arbitrary<uint64_t>());
  const auto queries = make_floats(Shape::gaussian, *rc::gen::inRange<int64_t>(1, 12), 6, 1);
  const auto mask = random_mask(rows, *rc::gen::inRange(0, 101) / 100.0, *rc::gen::arbitrary<uint64_t>());
  std::vector<int64_t> kept;
  reference::Matrix<float> few(0, 6);
  for (int64_t i = 0; i < rows; ++i) {
    if (mask[static_cast<size_t>(i)] == 0) continue;
    kept.push_back(i);
    few.values.insert(few.values.end(), base.row(i), base.row(i) + 6);
    ++few.rows;
  }
  const Neighbors filtered =
      knn(queries.view(), base.view(), {5, Metric::l2, true, RowFilter::mask(mask.data(), rows)}, on_cpu());
  const Neighbors alone = knn(queries.view(), few.view(), {5, Metric::l2}, on_cpu());
  for (int64_t i = 0; i < queries.rows * 5; ++i) {
    const int64_t id = alone.ids()[i];
    RC_ASSERT(filtered.ids()[i] == (id < 0 ? -1 : kept[static_cast<size_t>(id)]));
    RC_ASSERT(filtered.distances()[i] == alone.distances()[i]);
  }
}

}  // namespace
}  // namespace kith
