// Lists that grow out of others: the same values as a copy of all would have, shared pages, old versions as they were;
// and a graph that rows were linked into does not depend on whether its lists lie in pages.
#include "graph/search/graph/walk_lists.hpp"
#include "core/random.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "graph/search/build/extend_walk_graph.hpp"
#include "index/index_check.hpp"
#include "reference/data_kinds.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kDegree = 16;

std::vector<uint32_t> all_of(const WalkLists& lists) {
  std::vector<uint32_t> values(static_cast<size_t>(lists.places() * lists.degree()));
  lists.copy_to(values.data(), Resources());
  for (int64_t place = 0; place < lists.places(); ++place) {
    EXPECT_TRUE(std::equal(lists.of(place), lists.of(place) + kDegree, values.data() + place * kDegree));
  }
  return values;
}

TEST(WalkLists, ChangesAreThoseOfACopyAndOldVersionsStay) {
  for (const int64_t changes : {3, 40, 400}) {
    SCOPED_TRACE(changes);
    const int64_t first = 64 * 50 + 13;
    HostArray<uint32_t> made(first * kDegree, "a test", on_cpu());
    for (int64_t i = 0; i < made.size(); ++i) made[i] = static_cast<uint32_t>(i);
    std::vector<WalkLists> versions{WalkLists(std::move(made), first, kDegree)};
    std::vector<std::vector<uint32_t>> expected{all_of(versions[0])};
    const CounterRng rng(1, 2);
    uint64_t drawn = 0;
    bool was_paged = false;
    for (uint32_t step = 1; step < 12; ++step) {
      const int64_t before = versions.back().places();
      const int64_t places = before + step * 7;
      std::vector<uint32_t> some;
      for (int64_t i = 0; i < changes; ++i) some.push_back(rng.below(drawn++, static_cast<uint32_t>(before)));
      std::sort(some.begin(), some.end());
      const Resources resources = on_cpu();
      ChangedLists lists(versions.back(), places, resources);
      lists.change(some);
      std::vector<uint32_t> values = expected.back();
      values.resize(static_cast<size_t>(places * kDegree));
      const auto set = [&](uint32_t place, uint32_t* list) {
        std::fill(list, list + kDegree, step * 1000000 + place);
        std::fill_n(values.data() + place * kDegree, kDegree, step * 1000000 + place);
      };
      for (const uint32_t place : some) set(place, lists.changed(place));
      for (int64_t place = before; place < places; ++place) {
        set(static_cast<uint32_t>(place), lists.changed(static_cast<uint32_t>(place)));
      }
      set(step * 64, lists.change(step * 64));  // one that nobody had named before
      versions.push_back(std::move(lists).take());
      expected.push_back(std::move(values));
      was_paged |= versions.back().flat() == nullptr;
    }
    EXPECT_EQ(was_paged, changes < 400);
    for (size_t i = 0; i < versions.size(); ++i) EXPECT_EQ(all_of(versions[i]), expected[i]);
  }
}

// Few rows change few pages, of a graph with many.
TEST(WalkLists, RowsLinkedIntoPagesAreThoseLinkedIntoOneArray) {
  const int64_t count = reference::fewer_if_sanitized(16000, 8000);
  const auto data = reference::make_kind("clusters_100", count + 60, 1);
  const auto built = build_walk_graph(data.view().slice(0, count), {Metric::l2, kDegree, 1}, on_cpu());
  const WalkCoder& coder = built->coder;
  auto paged = built;
  auto flat = built;
  bool was_paged = false;
  for (int64_t first = count; first < count + 60; first += 3) {
    HostArray<std::byte> codes(3 * coder.place_bytes(), "a test", on_cpu());
    coder.encode_all(data.view().slice(first, 3), codes.data(), on_cpu());
    paged = extend_walk_graph(*paged, codes.data(), 3, 0, 1, on_cpu());
    was_paged |= paged->edges.flat() == nullptr;
    // The same graph with its lists in one array.
    HostArray<uint32_t> together(flat->edges.places() * kDegree, "a test", on_cpu());
    flat->edges.copy_to(together.data(), Resources());
    WalkGraph moved = *flat;
    moved.edges = WalkLists(std::move(together), flat->edges.places(), kDegree);
    flat = extend_walk_graph(moved, codes.data(), 3, 0, 1, on_cpu());
  }
  EXPECT_TRUE(was_paged);
  EXPECT_EQ(all_of(paged->edges), all_of(flat->edges));
  ASSERT_EQ(paged->order.places(), flat->order.places());
  EXPECT_EQ(std::memcmp(paged->order.rows().data(), flat->order.rows().data(), static_cast<size_t>(paged->rows()) * 4),
            0);
  EXPECT_EQ(std::memcmp(paged->codes.data(), flat->codes.data(), static_cast<size_t>(paged->codes.size())), 0);
  EXPECT_EQ(all_of(built->edges).size(), static_cast<size_t>(built->order.places() * kDegree));
}

}  // namespace
}  // namespace kith
