#include "exact/neighbor_sort.hpp"

#include "core/ordered_key.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int kDigitBits = 11;
constexpr int kValues = 1 << kDigitBits;
// The lowest bits of the digits: three of the row, three of the key.
constexpr int kShifts[] = {0, 11, 22, 32, 43, 54};
constexpr int kRowDigits = 3;
constexpr int kDigits = 6;

// Rows have 32 bits, so that their third digit ends where the key begins.
constexpr int bits_of(int digit) { return digit == 2 || digit == 5 ? 10 : kDigitBits; }
uint32_t digit_of(uint64_t neighbor, int digit) {
  return static_cast<uint32_t>(neighbor >> kShifts[digit]) & ((1u << bits_of(digit)) - 1);
}

}  // namespace

void sort_neighbors(uint64_t* neighbors, int64_t count, uint64_t* scratch) {
  if (scratch == nullptr || count < kFewestToSortByDigits) return std::sort(neighbors, neighbors + count);
  bool rows_ascend = true;
  for (int64_t i = 1; i < count; ++i) rows_ascend &= row_of(neighbors[i - 1]) <= row_of(neighbors[i]);
  const int first = rows_ascend ? kRowDigits : 0;
  std::vector<int64_t> places(static_cast<size_t>(kDigits) * kValues);
  for (int64_t i = 0; i < count; ++i) {
    for (int digit = first; digit < kDigits; ++digit) {
      ++places[static_cast<size_t>(digit * kValues) + digit_of(neighbors[i], digit)];
    }
  }
  uint64_t* from = neighbors;
  uint64_t* to = scratch;
  for (int digit = first; digit < kDigits; ++digit) {
    int64_t* const next = places.data() + digit * kValues;
    if (next[digit_of(from[0], digit)] == count) continue;
    int64_t at = 0;
    for (int value = 0; value < kValues; ++value) at += std::exchange(next[value], at);
    for (int64_t i = 0; i < count; ++i) to[next[digit_of(from[i], digit)]++] = from[i];
    std::swap(from, to);
  }
  if (from != neighbors) std::copy_n(from, count, neighbors);
}

}  // namespace kith
