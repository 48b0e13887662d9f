// How many bits are set: on every instruction set, for any number of words.
#include "rows/count_bits.hpp"

#include "core/random.hpp"
#include "kernels/forced_target.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

namespace kith {
namespace {

TEST(CountBits, OfAnyNumberOfWords) {
  const CounterRng rng(3, 1);
  std::vector<uint64_t> words(300);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i % 7 == 0 ? ~uint64_t{0} : uint64_t{rng.word(i)} << (i % 33);
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    int64_t expected = 0;
    for (size_t count = 0; count <= words.size(); ++count) {
      ASSERT_EQ(count_bits(words.data(), static_cast<int64_t>(count)), expected) << count;
      if (count < words.size()) expected += std::popcount(words[count]);
    }
  }
}

}  // namespace
}  // namespace kith
