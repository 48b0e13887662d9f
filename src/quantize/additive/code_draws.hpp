// Random numbers of the search for codes: functions of (seed, row number, round), equal on all devices.
#pragma once

#include "core/half.hpp"
#include "core/host_device.hpp"
#include "core/random.hpp"

#include <cstdint>

namespace kith {

// The random numbers of a row for one purpose and round.
class RowDraws {
 public:
  enum class Purpose : uint64_t { start, perturb };

  KITH_HOST_DEVICE RowDraws(uint64_t seed, int64_t row, Purpose purpose, int64_t round)
      : rng_(seed, static_cast<uint64_t>(row)),
        first_(static_cast<uint64_t>(purpose) << 56 | static_cast<uint64_t>(round) << 16) {}

  // Two words per code.
  KITH_HOST_DEVICE Random4 pair(int64_t number) const { return rng_.block(first_ + static_cast<uint64_t>(number)); }

 private:
  CounterRng rng_;
  uint64_t first_;
};

KITH_HOST_DEVICE constexpr uint8_t drawn_code(uint32_t word, int bits) {
  return static_cast<uint8_t>(word >> (32 - bits));
}

// Random codes of a row.
KITH_HOST_DEVICE inline void draw_codes(uint64_t seed, int64_t row, int64_t books, int bits, uint8_t* codes) {
  const RowDraws draws(seed, row, RowDraws::Purpose::start, 0);
  for (int64_t k = 0; k < books; ++k) codes[k] = drawn_code(draws.pair(k / 4).word[k % 4], bits);
}

struct Perturbation {
  uint64_t seed = 0;
  int64_t codes = 0;  // of a row
};

// Algorithm 2: replaces some codes, chosen without replacement, by random ones.
KITH_HOST_DEVICE inline void perturb_codes(const Perturbation& perturbation, int64_t row, int64_t round, int64_t books,
                                           int bits, uint8_t* codes) {
  const RowDraws draws(perturbation.seed, row, RowDraws::Purpose::perturb, round);
  auto needed = static_cast<uint64_t>(perturbation.codes);
  Random4 words{};
  for (int64_t k = 0; k < books && needed > 0; ++k) {
    if (k % 2 == 0) words = draws.pair(k / 2);
    const auto left = static_cast<uint64_t>(books - k);
    // Skipped with probability 1 - needed / left.
    if (words.word[k % 2 * 2] * left >> 32 >= needed) continue;
    codes[k] = drawn_code(words.word[k % 2 * 2 + 1], bits);
    --needed;
  }
}

// A hash of a row's values, at least 0; zeros of both signs count as equal.
KITH_HOST_DEVICE inline int64_t content_number(const float* row, int64_t cols) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (int64_t c = 0; c < cols; ++c) {
    hash ^= bits_of_float(row[c] + 0.0f);
    hash *= 0xBF58476D1CE4E5B9u;
    hash ^= hash >> 29;
  }
  return static_cast<int64_t>(hash >> 1);
}

}  // namespace kith
