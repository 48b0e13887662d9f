#include "kernels/select/neighbor_sort.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "core/ordered_number.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace kith {
namespace {

constexpr int kMostDigitBits = 13;
constexpr int kMostDigits = 3;  // per 32-bit number

struct Spread {
  bool sorted = true;
  bool rows_ascend = true;
  uint32_t largest_row = 0;
  uint32_t smallest_key = UINT32_MAX;
  uint32_t largest_key = 0;
};

// Requires at least one neighbour. Branchless and without dependencies, so that compilers vectorise it.
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

// In signed numbers, of which every instruction set finds the larger one by vectors.
Spread spread_of(const NeighborRun& run) {
  if (run.keys == nullptr) return spread_of(run.packed, run.count);
  const auto number = [&](int64_t i) { return static_cast<int32_t>(ordered_number(run.keys[i]) ^ 0x80000000u); };
  int32_t falls = 0;
  int32_t smallest = number(0);
  int32_t largest = smallest;
  for (int64_t i = 1; i < int64_t{run.count}; ++i) {
    const int32_t now = number(i);
    falls |= number(i - 1) > now ? 1 : 0;
    smallest = now < smallest ? now : smallest;
    largest = now > largest ? now : largest;
  }
  return {falls == 0, true, run.first_row + run.count - 1, static_cast<uint32_t>(smallest) ^ 0x80000000u,
          static_cast<uint32_t>(largest) ^ 0x80000000u};
}

// The runs in the order of their rows, if these do not overlap.
Spread spread_of(std::span<NeighborRun> runs) {
  const auto before = [](const NeighborRun& a, const NeighborRun& b) { return row_of(a.at(0)) < row_of(b.at(0)); };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::sort(runs.begin(), runs.end(), before);
  Spread all;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Spread own = spread_of(runs[i]);
    all.sorted &= own.sorted && (i == 0 || runs[i - 1].at(runs[i - 1].count - 1) <= runs[i].at(0));
    all.rows_ascend &= own.rows_ascend && (i == 0 || all.largest_row <= row_of(runs[i].at(0)));
    all.largest_row = std::max(all.largest_row, own.largest_row);
    all.smallest_key = std::min(all.smallest_key, own.smallest_key);
    all.largest_key = std::max(all.largest_key, own.largest_key);
  }
  return all;
}

// Calls use(neighbour) for each neighbour.
template <typename Use>
void for_each_neighbor(std::span<const uint64_t> neighbors, const Use& use) {
  for (const uint64_t neighbor : neighbors) use(neighbor);
}
template <typename Use>
void for_each_neighbor(std::span<NeighborRun> runs, const Use& use) {
  for (const NeighborRun& run : runs) {
    if (run.keys == nullptr) {
      for_each_neighbor(std::span(run.packed, run.count), use);
    } else {
      for (uint32_t i = 0; i < run.count; ++i) {
        use(pack_neighbor(ordered_number(run.keys[i]), run.first_row + i));
      }
    }
  }
}

// Splits numbers up to `largest` into digits of nearly equal width: narrow digits keep their counters in the cache,
// wide ones need fewer passes and pay off once there are more numbers to sort than digit values.
struct Digits {
  int count;
  int width;

  Digits(uint32_t largest, int64_t neighbors) {
    const int bits = std::bit_width(largest);
    const int most = neighbors >= 1 << 14 ? kMostDigitBits : 11;
    count = static_cast<int>(divide_up(bits, most));
    width = count == 0 ? 0 : static_cast<int>(divide_up(bits, count));
  }
};

// Stable sort by value(neighbour), digit by digit: from the source to `to`, then alternating with `other`. Returns the
// array with the result.
template <typename Source, typename Value>
uint64_t* sort_by(const Digits& digits, Source source, int64_t count, uint64_t* to, uint64_t* other,
                  const Value& value) {
  const int width = digits.width;
  const uint32_t mask = (uint32_t{1} << width) - 1;
  uint32_t places[kMostDigits][1 << kMostDigitBits];
  for (int digit = 0; digit < digits.count; ++digit) std::fill_n(places[digit], size_t{1} << width, 0u);
  const auto count_digits = [&]<int kDigits>() {
    for_each_neighbor(source, [&](uint64_t neighbor) {
      uint32_t key = value(neighbor);
      for (int digit = 0; digit < kDigits; ++digit, key >>= width) ++places[digit][key & mask];
    });
  };
  switch (digits.count) {
    case 1: count_digits.template operator()<1>(); break;
    case 2: count_digits.template operator()<2>(); break;
    default: count_digits.template operator()<3>(); break;
  }
  for (int digit = 0; digit < digits.count; ++digit) {
    uint32_t at = 0;
    uint32_t* const own = places[digit];
    for (uint32_t& place : std::span(own, size_t{1} << width)) at += std::exchange(place, at);
    const int shift = digit * width;
    const auto move = [&, to](uint64_t neighbor) { to[own[value(neighbor) >> shift & mask]++] = neighbor; };
    if (digit == 0) {
      for_each_neighbor(source, move);
    } else {
      for_each_neighbor(std::span<const uint64_t>(other, static_cast<size_t>(count)), move);
    }
    std::swap(to, other);
  }
  return other;
}

bool sorts_by_digits(int64_t count, const uint64_t* scratch) {
  return scratch != nullptr && count >= kFewestToSortByDigits && count <= UINT32_MAX;
}

void sort_by_comparing(uint64_t* neighbors, int64_t count) {
  if (!std::is_sorted(neighbors, neighbors + count)) std::sort(neighbors, neighbors + count);
}

}  // namespace

uint64_t NeighborRun::at(int64_t i) const {
  return keys == nullptr ? packed[i]
                         : pack_neighbor(ordered_number(keys[i]), first_row + static_cast<uint32_t>(i));
}

void copy_run(const NeighborRun& run, uint64_t* to) {
  if (run.keys == nullptr) {
    std::copy_n(run.packed, run.count, to);
  } else {
    for (uint32_t i = 0; i < run.count; ++i) to[i] = pack_neighbor(ordered_number(run.keys[i]), run.first_row + i);
  }
}

void sort_neighbors(uint64_t* neighbors, int64_t count, uint64_t* scratch) {
  if (!sorts_by_digits(count, scratch)) return sort_by_comparing(neighbors, count);
  const Spread spread = spread_of(neighbors, count);
  if (spread.sorted) return;
  uint64_t* at = neighbors;
  const auto sort = [&](const Digits& digits, const auto& value) {
    uint64_t* const to = at == neighbors ? scratch : neighbors;
    if (digits.count > 0) {
      at = sort_by(digits, std::span<const uint64_t>(at, static_cast<size_t>(count)), count, to, at, value);
    }
  };
  if (!spread.rows_ascend) sort(Digits(spread.largest_row, count), row_of);
  const uint32_t smallest = spread.smallest_key;
  sort(Digits(spread.largest_key - smallest, count),
       [=](uint64_t neighbor) { return ordered_of(neighbor) - smallest; });
  if (at != neighbors) std::copy_n(at, count, neighbors);
}

void sort_runs(std::span<NeighborRun> runs, int64_t count, uint64_t* sorted, uint64_t* scratch) {
  const bool by_digits = sorts_by_digits(count, scratch);
  const Spread spread = by_digits ? spread_of(runs) : Spread();
  const uint32_t smallest = spread.smallest_key;
  const auto key = [=](uint64_t neighbor) { return ordered_of(neighbor) - smallest; };
  const Digits rows(spread.rows_ascend ? 0 : spread.largest_row, count);
  const Digits keys(by_digits ? spread.largest_key - smallest : 0, count);
  if (!by_digits || spread.sorted || keys.count == 0) {
    uint64_t* to = sorted;
    for (const NeighborRun& run : runs) {
      copy_run(run, to);
      to += run.count;
    }
    if (!spread.sorted || !by_digits) sort_neighbors(sorted, count, scratch);
    return;
  }
  // The last pass writes to the final place.
  const bool odd = (rows.count + keys.count) % 2 != 0;
  uint64_t* const to = odd ? sorted : scratch;
  uint64_t* const other = odd ? scratch : sorted;
  if (rows.count == 0) {
    sort_by(keys, runs, count, to, other, key);
    return;
  }
  uint64_t* const at = sort_by(rows, runs, count, to, other, row_of);
  sort_by(keys, std::span<const uint64_t>(at, static_cast<size_t>(count)), count, at == sorted ? scratch : sorted, at,
          key);
}

}  // namespace kith
