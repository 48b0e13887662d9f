// Codes written down from their definitions: one value, one codeword, one bit at a time.
#pragma once

#include "core/ordered_key.hpp"
#include "core/random.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/distance/canonical.hpp"
#include "reference/brute_force.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace kith::reference {

// The codeword with the least (canonical key, number).
inline uint32_t nearest_codeword(const float* x, const float* words, int64_t count, int64_t cols) {
  uint64_t best = kPadding;
  for (int64_t w = 0; w < count; ++w) {
    const float key = canonical_pair<KeyKind::squared_l2>(x, words + w * cols, cols);
    best = std::min(best, pack_neighbor(ordered_key(key), static_cast<uint32_t>(w)));
  }
  return row_of(best);
}

inline void put_bits(std::vector<uint8_t>& code, int64_t first, int bits, uint32_t value) {
  for (int b = 0; b < bits; ++b) {
    const int64_t at = first + b;
    code[static_cast<size_t>(at / 8)] |= static_cast<uint8_t>((value >> b & 1u) << (at % 8));
  }
}
inline uint32_t get_bits(const uint8_t* code, int64_t first, int bits) {
  uint32_t value = 0;
  for (int b = 0; b < bits; ++b) value |= (code[(first + b) / 8] >> ((first + b) % 8) & 1u) << b;
  return value;
}

// FAISS's rounding: for 8 bits the product is an f32, for fewer a double.
inline uint32_t scalar_level(float x, float least, float span, int bits) {
  float t = 0;
  if (span != 0) t = (x - least) / span;
  if (!(t > 0)) t = 0;
  if (t > 1) t = 1;
  const int levels = (1 << bits) - 1;
  if (bits == 8) return static_cast<uint32_t>(t * static_cast<float>(levels));
  return static_cast<uint32_t>(static_cast<double>(t) * levels);
}

// `values` as Codec::values() has them.
inline std::vector<uint8_t> encode(const CodeFormat& format, const std::vector<float>& values, const float* row) {
  std::vector<uint8_t> code(static_cast<size_t>(format.bytes()), 0);
  if (format.kind == CodeKind::scalar) {
    for (int64_t c = 0; c < format.cols; ++c) {
      const float least = values[static_cast<size_t>(c)];
      const float span = values[static_cast<size_t>(format.cols + c)];
      put_bits(code, c * format.bits, format.bits, scalar_level(row[c], least, span, format.bits));
    }
  } else {
    const int64_t cols = format.part_cols();
    for (int64_t p = 0; p < format.parts; ++p) {
      const float* const words = values.data() + p * format.codewords() * cols;
      put_bits(code, p * format.bits, format.bits, nearest_codeword(row + p * cols, words, format.codewords(), cols));
    }
  }
  return code;
}

inline std::vector<float> decode(const CodeFormat& format, const std::vector<float>& values, const uint8_t* code) {
  std::vector<float> row;
  if (format.kind == CodeKind::scalar) {
    const double levels = (1 << format.bits) - 1;
    for (int64_t c = 0; c < format.cols; ++c) {
      const auto least = static_cast<double>(values[static_cast<size_t>(c)]);
      const auto span = static_cast<double>(values[static_cast<size_t>(format.cols + c)]);
      const auto level = static_cast<float>(get_bits(code, c * format.bits, format.bits));
      row.push_back(
          std::fma(level, static_cast<float>(span / levels), static_cast<float>(least + 0.5 * span / levels)));
    }
  } else {
    const int64_t cols = format.part_cols();
    for (int64_t p = 0; p < format.parts; ++p) {
      const int64_t word = p * format.codewords() + get_bits(code, p * format.bits, format.bits);
      const float* const from = values.data() + word * cols;
      row.insert(row.end(), from, from + cols);
    }
  }
  return row;
}

// The codewords of one part, trained on all of these rows. Sums are in long double, which on most machines holds more
// digits than the library's: there is no rounding for either to differ in.
inline std::vector<float> train_codewords(Matrix<float> rows, int64_t count, const CounterRng& rng, int iterations) {
  const int64_t n = rows.rows;
  const int64_t cols = rows.cols;
  const int row_bits = static_cast<int>(std::ceil(std::log2(static_cast<double>(n))));
  for (int64_t c = 0; c < cols; ++c) {
    float largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(rows.row(i)[c]));
    int exponent = 0;
    std::frexp(largest, &exponent);
    const int digit = exponent + row_bits - 53;
    for (int64_t i = 0; i < n; ++i) {
      const double scaled = std::ldexp(static_cast<double>(rows.row(i)[c]), -digit);
      rows.row(i)[c] = static_cast<float>(std::ldexp(std::nearbyint(scaled), digit)) + 0.0f;
    }
  }
  using Row = std::vector<float>;
  const auto row = [&](int64_t i) { return Row(rows.row(i), rows.row(i) + cols); };
  std::vector<Row> words;
  const auto offer = [&](int64_t i) {
    if (static_cast<int64_t>(words.size()) == count) return;
    if (std::find(words.begin(), words.end(), row(i)) == words.end()) words.push_back(row(i));
  };
  for (int64_t i = 0; i < std::min(8 * count, n); ++i) {
    offer(rng.below(static_cast<uint64_t>(i), static_cast<uint32_t>(n)));
  }
  for (int64_t i = 0; i < n; ++i) offer(i);
  words.resize(static_cast<size_t>(count), words[0]);

  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::vector<float> flat;
    for (const Row& word : words) flat.insert(flat.end(), word.begin(), word.end());
    std::vector<int64_t> owner(static_cast<size_t>(n));
    std::vector<int64_t> sizes(static_cast<size_t>(count), 0);
    std::vector<std::pair<float, int64_t>> far;
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t w = nearest_codeword(rows.row(i), flat.data(), count, cols);
      owner[static_cast<size_t>(i)] = w;
      ++sizes[w];
      far.emplace_back(-canonical_pair<KeyKind::squared_l2>(rows.row(i), flat.data() + w * cols, cols), i);
    }
    std::sort(far.begin(), far.end());
    size_t next = 0;
    int64_t last = -1;
    for (int64_t w = 0; w < count; ++w) {
      if (sizes[static_cast<size_t>(w)] > 0) continue;
      for (; next < far.size() && far[next].first < 0; ++next) {
        const int64_t i = far[next].second;
        const int64_t from = owner[static_cast<size_t>(i)];
        if (sizes[static_cast<size_t>(from)] < 2 || (last >= 0 && row(last) == row(i))) continue;
        --sizes[static_cast<size_t>(from)];
        sizes[static_cast<size_t>(w)] = 1;
        owner[static_cast<size_t>(i)] = w;
        last = i;
        ++next;
        break;
      }
    }
    for (int64_t w = 0; w < count; ++w) {
      if (sizes[static_cast<size_t>(w)] == 0) continue;
      for (int64_t c = 0; c < cols; ++c) {
        long double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          if (owner[static_cast<size_t>(i)] == w) sum += static_cast<long double>(rows.row(i)[c]);
        }
        words[static_cast<size_t>(w)][static_cast<size_t>(c)] =
            static_cast<float>(static_cast<double>(sum) / static_cast<double>(sizes[static_cast<size_t>(w)]));
      }
    }
  }
  std::vector<float> flat;
  for (const Row& word : words) flat.insert(flat.end(), word.begin(), word.end());
  return flat;
}

}  // namespace kith::reference
