// The beam: the best of all that was offered, each once, whatever the order.
#include "graph/search/walk/beam.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace kith {
namespace {

TEST(Beam, HoldsTheBestOfAllOffersOnce) {
  for (const int64_t capacity : {1, 2, 7, 64}) {
    std::vector<uint64_t> memory(static_cast<size_t>(capacity));
    Beam beam(memory.data(), capacity);
    std::set<std::pair<uint32_t, uint32_t>> all;
    std::set<uint32_t> opened;
    const CounterRng rng(1, static_cast<uint64_t>(capacity));
    for (uint64_t i = 0; i < 2000; ++i) {
      const uint32_t place = rng.below(2 * i, 300);
      const uint32_t key = place % 40;  // a place has one key; many places share it
      beam.offer(key, place);
      all.insert({key, place});
      if (i % 5 == 0) {
        uint32_t next = kNoWalkPlace;
        int64_t number = 0;
        for (auto at = all.begin(); at != all.end() && number < capacity; ++at, ++number) {
          if (opened.contains(at->second)) continue;
          next = at->second;
          break;
        }
        ASSERT_EQ(beam.open_next(), next);
        if (next != kNoWalkPlace) opened.insert(next);
      }
      ASSERT_EQ(beam.size(), std::min<int64_t>(capacity, std::ssize(all)));
      int64_t number = 0;
      for (auto at = all.begin(); number < beam.size(); ++at, ++number) {
        ASSERT_EQ(beam.key(number), at->first);
        ASSERT_EQ(beam.place(number), at->second);
      }
    }
  }
}

TEST(Beam, TakesTheLargestPlaceAndKey) {
  uint64_t memory[2];
  Beam beam(memory, 2);
  beam.offer(0xFFFFFFFFU, 0x7FFFFFFFU);
  beam.offer(0, 0x7FFFFFFEU);
  EXPECT_EQ(beam.open_next(), 0x7FFFFFFEU);
  EXPECT_EQ(beam.open_next(), 0x7FFFFFFFU);
  EXPECT_EQ(beam.open_next(), kNoWalkPlace);
}

}  // namespace
}  // namespace kith
