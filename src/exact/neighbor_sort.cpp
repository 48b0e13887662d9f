#include "exact/neighbor_sort.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

namespace kith {
namespace {

constexpr int kMostDigitBits = 13;
constexpr int kMostDigits = 3;  // of 32 bits

// Wide digits are fewer, and pay where there are more values to sort than a digit has.
int digit_bits(int64_t count) { return count >= 1 << 14 ? kMostDigitBits : 11; }

struct Spread {
  bool sorted;
  bool rows_ascend;
  uint32_t largest_row;
  uint32_t smallest_key;
  uint32_t largest_key;
};

// Of at least one. Without a branch, and without a value that waits for the one before: compilers make vectors of it.
Spread spread_of(const uint64_t* neighbors, int64_t count) {
  uint32_t falls = 0;
  uint32_t row_falls = 0;
  uint32_t largest_row = row_of(neighbors[0]);
  uint32_t smallest = ordered_of(neighbors[0]);
  uint32_t largest = smallest;
  for (int64_t i = 1; i < count; ++i) {
    falls |= neighbors[i - 1] > neighbors[i] ? 1u : 0u;
    row_falls |= row_of(neighbors[i - 1]) > row_of(neighbors[i]) ? 1u : 0u;
    largest_row = std::max(largest_row, row_of(neighbors[i]));
    smallest = std::min(smallest, ordered_of(neighbors[i]));
    largest = std::max(largest, ordered_of(neighbors[i]));
  }
  return {falls == 0, row_falls == 0, largest_row, smallest, largest};
}

// Sorts by value(neighbour), which is at most `largest`, keeping the order of equal ones. The two arrays change places
// with every digit.
template <typename Value>
void sort_by(uint64_t*& from, uint64_t*& to, int64_t count, uint32_t largest, const Value& value) {
  const int bits = std::bit_width(largest);
  const auto digits = static_cast<int>(divide_up(bits, digit_bits(count)));
  // As even as can be: the fewer values a digit has, the better their places stay in the cache.
  const int width = digits == 0 ? 0 : static_cast<int>(divide_up(bits, digits));
  const uint32_t mask = (uint32_t{1} << width) - 1;
  uint32_t places[kMostDigits][1 << kMostDigitBits];
  for (int digit = 0; digit < digits; ++digit) std::fill_n(places[digit], size_t{1} << width, 0u);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t key = value(from[i]);
    for (int digit = 0; digit < digits; ++digit, key >>= width) ++places[digit][key & mask];
  }
  for (int digit = 0; digit < digits; ++digit) {
    uint32_t at = 0;
    for (uint32_t& place : std::span(places[digit], size_t{1} << width)) at += std::exchange(place, at);
    const int shift = digit * width;
    for (int64_t i = 0; i < count; ++i) to[places[digit][value(from[i]) >> shift & mask]++] = from[i];
    std::swap(from, to);
  }
}

}  // namespace

void sort_neighbors(uint64_t* neighbors, int64_t count, uint64_t* scratch) {
  const bool compare = scratch == nullptr || count < kFewestToSortByDigits || count > UINT32_MAX;
  if (compare) {
    if (!std::is_sorted(neighbors, neighbors + count)) std::sort(neighbors, neighbors + count);
    return;
  }
  const Spread spread = spread_of(neighbors, count);
  if (spread.sorted) return;
  uint64_t* from = neighbors;
  uint64_t* to = scratch;
  if (!spread.rows_ascend) sort_by(from, to, count, spread.largest_row, row_of);
  const uint32_t smallest = spread.smallest_key;
  sort_by(from, to, count, spread.largest_key - smallest,
          [=](uint64_t neighbor) { return ordered_of(neighbor) - smallest; });
  if (from != neighbors) std::copy_n(from, count, neighbors);
}

}  // namespace kith
