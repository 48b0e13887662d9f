#include "core/host_arrays.hpp"

#include "core/footprint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace kith {
namespace {

struct SomeArrays {
  SomeArrays(ArrayPlaces& places, int64_t first, int64_t last)
      : bytes(places.take<uint8_t>(first)), none(places.take<float>(0)), numbers(places.take<double>(last)) {}

  PlacedArray<uint8_t> bytes;
  PlacedArray<float> none;
  PlacedArray<double> numbers;
};

TEST(HostArrays, LieApartInOneBlockThatIsCountedOnce) {
  const Resources resources;
  const int64_t before = resources.host_memory()->used();
  {
    const HostArrays<SomeArrays> held("the test", resources, 65, 3);
    EXPECT_EQ(held->bytes.size(), 65);
    EXPECT_EQ(held->none.size(), 0);
    std::fill(held->bytes.begin(), held->bytes.end(), uint8_t{7});
    std::fill(held->numbers.begin(), held->numbers.end(), 0.5);
    EXPECT_EQ(std::count(held->bytes.begin(), held->bytes.end(), 7), 65);
    EXPECT_EQ(held->numbers[2], 0.5);
    for (const void* const data : {static_cast<void*>(held->bytes.data()), static_cast<void*>(held->numbers.data())}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    }
    EXPECT_EQ(resources.host_memory()->used() - before, 128 + 3 * 8);
  }
  EXPECT_EQ(resources.host_memory()->used(), before);
}

TEST(HostArrays, AreCountedWithoutBeingThere) {
  const Footprint needed = counted(Resources(), [](const Resources& counting) {
    const HostArrays<SomeArrays> held("the test", counting, 65, 3);
    EXPECT_EQ(held->numbers.size(), 3);
    std::fill(held->numbers.begin(), held->numbers.end(), 0.5);  // of none
  });
  EXPECT_EQ(needed.host, 128 + 3 * 8);
}

}  // namespace
}  // namespace kith
