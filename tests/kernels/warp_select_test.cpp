// WarpSelect and the other cores of selection, run by the host model of a warp or by a lone thread.
#include "kernels/host_warp.hpp"

#include "core/ordered_key.hpp"
#include "kernels/select/filter_sample.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/select_plan.hpp"
#include "kernels/select/warp_select.hpp"

#include <kith/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Rows = std::vector<std::pair<const char*, std::vector<float>>>;

Rows hard_rows(size_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(n);
  for (float& value : values) value = uniform(random);
  std::vector<float> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  std::vector<float> few(n);
  for (float& value : few) value = static_cast<float>(random() % 3);
  std::vector<float> special(n);
  for (float& value : special) {
    const float choices[] = {kNan, kInfinity, -kInfinity, 0.0f, -0.0f, 1.0f, -kNan, 1e-45f};
    value = choices[random() % 8];
  }
  return {{"random", values},
          {"sorted", sorted},
          {"reversed", {sorted.rbegin(), sorted.rend()}},
          {"all equal", std::vector<float>(n, 2.5f)},
          {"few values", few},
          {"NaN and infinities", special},
          {"all NaN", std::vector<float>(n, kNan)}};
}

template <typename Entry>
std::vector<Entry> entries_of(const std::vector<float>& values) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < values.size(); ++i) {
    // Wide payloads do not fit 32 bits, and come in another order than the columns.
    const uint64_t payload = sizeof(Entry) == sizeof(uint64_t) ? i : (uint64_t{values.size()} - i) << 31;
    entries.push_back(EntryOf<Entry>::make(ordered_key(values[i]), payload));
  }
  return entries;
}

template <typename Entry>
std::vector<Entry> sorted_front(std::vector<Entry> entries, size_t k) {
  std::sort(entries.begin(), entries.end());
  entries.resize(k, EntryOf<Entry>::padding());
  return entries;
}

template <typename Select>
std::vector<typename Select::Entry> result_of(const Select& select, size_t k) {
  std::vector<typename Select::Entry> result;
  for (size_t i = 0; i < k; ++i) result.push_back(select.sorted(static_cast<int>(i / 32))[i % 32]);
  return result;
}

template <typename Entry, int kQueue>
void expect_selects() {
  using Warp = HostWarp<Entry>;
  using Select = WarpSelect<Warp, kQueue>;
  for (const size_t n : {1, 31, 32, 33, 700, 3000}) {
    for (const auto& [name, values] : hard_rows(n)) {
      const std::vector<Entry> entries = entries_of<Entry>(values);
      for (const int k : {kQueue == 1 ? 1 : 16 * kQueue + 1, 32 * kQueue}) {
        SCOPED_TRACE(::testing::Message() << name << ", " << n << " values, k " << k << ", queue of " << kQueue);
        Select select(k);
        for (size_t first = 0; first < n; first += 32) {
          select.add(Warp::each(
              [&](size_t lane) { return first + lane < n ? entries[first + lane] : EntryOf<Entry>::padding(); }));
        }
        select.flush();
        ASSERT_EQ(result_of(select, static_cast<size_t>(k)), sorted_front(entries, static_cast<size_t>(k)));
      }
    }
  }
}

TEST(WarpSelectModel, ShortPayloads) {
  expect_selects<uint64_t, 1>();
  expect_selects<uint64_t, 2>();
  expect_selects<uint64_t, 4>();
  expect_selects<uint64_t, 8>();
  expect_selects<uint64_t, 32>();
}

TEST(WarpSelectModel, WidePayloads) {
  expect_selects<WideEntry, 1>();
  expect_selects<WideEntry, 4>();
  expect_selects<WideEntry, 16>();
}

TEST(WarpSelectModel, MergesTheQueuesOfTwoWarps) {
  using Warp = HostWarp<uint64_t>;
  for (const auto& [name, values] : hard_rows(1000)) {
    SCOPED_TRACE(name);
    const std::vector<uint64_t> entries = entries_of<uint64_t>(values);
    WarpSelect<Warp, 4> a(100);
    WarpSelect<Warp, 4> b(100);
    for (size_t first = 0; first < 1000; first += 32) {
      const auto group =
          Warp::each([&](size_t lane) { return first + lane < 1000 ? entries[first + lane] : kPadding; });
      (first / 32 % 2 == 0 ? a : b).add(group);
    }
    a.flush();
    b.flush();
    a.merge_mirrored([&](int i) { return Warp::shuffle_xor(b.sorted(i), 31); });
    ASSERT_EQ(result_of(a, 100), sorted_front(entries, 100));
    EXPECT_EQ(a.threshold()[0], sorted_front(entries, 100).back());
  }
}

TEST(WarpSelectModel, NansAndPaddingNeverWin) {
  using Warp = HostWarp<uint64_t>;
  WarpSelect<Warp, 1> select(4);
  select.add(Warp::each([](size_t lane) {
    return lane == 9   ? pack_neighbor(ordered_key(kInfinity), 9)
           : lane == 3 ? pack_neighbor(ordered_key(kNan), 3)
                       : kPadding;
  }));
  select.flush();
  const std::vector<uint64_t> expected = {pack_neighbor(ordered_key(kInfinity), 9), pack_neighbor(kNanKey, 3), kPadding,
                                          kPadding};
  EXPECT_EQ(result_of(select, 4), expected);
}

// The group of one thread.
struct Alone {
  int threads() const { return 1; }
  int sum(int value) const { return value; }
  uint32_t min(uint32_t value) const { return value; }
  uint32_t max(uint32_t value) const { return value; }
};

TEST(KeyCut, KeepsExactlyTheSmallest) {
  constexpr int kItems = 32;
  for (const size_t n : {1, 2, 3, 5, 31, 32}) {
    for (const auto& [name, values] : hard_rows(n)) {
      uint32_t keys[kItems];
      std::vector<uint64_t> entries;
      for (size_t i = 0; i < kItems; ++i) {
        keys[i] = i < n ? ordered_key(values[i]) : kNanKey;
        if (i < n) entries.push_back(pack_neighbor(keys[i], static_cast<uint32_t>(i)));
      }
      const auto row_at = [&](int i) { return static_cast<size_t>(i) < n ? static_cast<uint32_t>(i) : kNoRow; };
      const RowsAt<kItems, decltype(row_at)> rows{row_at};
      std::sort(entries.begin(), entries.end());
      for (size_t want = 1; want <= n; ++want) {
        SCOPED_TRACE(::testing::Message() << name << ", " << want << " of " << n);
        Alone group;
        const KeyCut cut =
            find_cut(group, keys, rows, static_cast<uint32_t>(n), {static_cast<int>(want), static_cast<int>(want)});
        std::vector<uint64_t> kept;
        for (int i = 0; i < kItems; ++i) {
          if (cut.keeps(keys[i], row_at(i))) kept.push_back(pack_neighbor(keys[i], row_at(i)));
        }
        std::sort(kept.begin(), kept.end());
        ASSERT_EQ(kept, (std::vector<uint64_t>{entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(want)}));
      }
    }
  }
}

TEST(FilterSample, RunsLieApartAndInside) {
  for (const uint32_t strata : {512u, 1024u}) {
    for (const uint32_t n :
         {8 * strata, 8 * strata + 1, 16 * strata - 1, 16 * strata, 16 * strata + 5, 128000u, 999999u}) {
      uint32_t end = 0;
      for (uint32_t i = 0; i < strata; ++i) {
        const uint32_t start = sample_start(i, strata, n);
        ASSERT_GE(start, end) << i << " of " << strata << ", n " << n;
        end = start + kSampleRun;
      }
      ASSERT_LE(end, n);
    }
  }
}

// The share of rows whose sample misleads is what makes the filter path slow: none of these may.
TEST(FilterSample, EnoughAndNotTooManyPass) {
  constexpr int kThreads = 256;
  constexpr int kSample = kThreads * kFilterItems;
  for (const uint32_t k : {1u, 10u, 100u, 512u}) {
    const uint32_t n = static_cast<uint32_t>(std::min<int64_t>(filter_longest_slice(k, kThreads), 128000));
    for (auto& [name, values] : hard_rows(n)) {
      const std::vector<uint64_t> entries = entries_of<uint64_t>(values);
      if (std::string_view(name) == "all NaN") continue;  // selected by radix
      std::vector<uint64_t> sample;
      for (uint32_t i = 0; i < kSample; ++i) {
        sample.push_back(entries[sample_start(i / kSampleRun, kSample / kSampleRun, n) + i % kSampleRun]);
      }
      std::sort(sample.begin(), sample.end());
      const KeepRange range = sample_range(k, n, kSample);
      for (const int rank : {range.least, range.most}) {
        const uint64_t cut = sample[static_cast<size_t>(rank) - 1];
        const auto passed = std::count_if(entries.begin(), entries.end(), [&](uint64_t entry) { return entry <= cut; });
        EXPECT_GE(passed, k) << name << ", n " << n << ", rank " << rank;
        EXPECT_LE(passed, kSample) << name << ", n " << n << ", k " << k << ", rank " << rank;
      }
    }
  }
}

TEST(SelectPlan, ChoosesByShape) {
  EXPECT_EQ(plan_select({10000, 1000, 100}, 132).path, SelectPath::registers);
  EXPECT_EQ(plan_select({10000, 128000, 2048}, 132).path, SelectPath::filter);
  EXPECT_EQ(plan_select({10000, 128000, 2048}, 132).slices, 1);
  EXPECT_EQ(plan_select({10000, 128000, 2049}, 132).path, SelectPath::radix);
  EXPECT_EQ(plan_select({4, 500, 2000}, 132).path, SelectPath::radix);
  SelectProblem wide{10, 500, 20};
  wide.wide_payload = true;
  EXPECT_EQ(plan_select(wide, 132).path, SelectPath::warp_queue);
}

TEST(SelectPlan, SlicesCoverTheRowAndAreCounted) {
  for (const int64_t rows : {1, 7, 200, 10000}) {
    for (const int64_t cols : {1025, 100000, 10000000}) {
      for (const int64_t k : {1, 100, 1000, 2048}) {
        const SelectPlan plan = plan_select({rows, cols, k}, 132);
        EXPECT_GE(plan.slices * plan.slice_length, cols);
        EXPECT_LT((plan.slices - 1) * plan.slice_length, cols);
        EXPECT_LE(plan.slice_length, filter_longest_slice(k, plan.threads) + 8);
        if (plan.slices == 1) {
          EXPECT_EQ(plan.workspace_bytes, 0);
        } else {
          EXPECT_GE(plan.workspace_bytes, rows * plan.slices * k * 8);
        }
      }
    }
  }
  EXPECT_GE(plan_select({1, 10000000, 100}, 132).slices, 100);
}

TEST(SelectPlan, RefusesWhatItCannotDo) {
  EXPECT_THROW(plan_select({1, 10, 0}, 132), InvalidArgument);
  EXPECT_THROW(plan_select({1, int64_t{1} << 31, 5}, 132), InvalidArgument);
  EXPECT_THROW(plan_select({1, 2000, 5}, 132, SelectPath::registers), InvalidArgument);
  EXPECT_THROW(plan_select({1, 20000, 4000}, 132, SelectPath::filter), InvalidArgument);
  SelectProblem wide{10, 5000, 2000};
  wide.wide_payload = true;
  EXPECT_THROW(plan_select(wide, 132), InvalidArgument);
  wide.k = 10;
  EXPECT_THROW(plan_select(wide, 132, SelectPath::radix), InvalidArgument);
}

}  // namespace
}  // namespace kith
