// Additive codes, slow and obvious: the search for codes as the paper prints it and as mended, and the sums.
#pragma once

#include "kernels/distance/canonical.hpp"
#include "quantize/additive/codebooks.hpp"
#include "quantize/additive/local_search.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith::reference {

// x less the codewords of all books but one.
inline std::vector<double> residual(const Codebooks& books, const float* x, const uint8_t* codes, int64_t without) {
  std::vector<double> r(x, x + books.cols);
  for (int64_t k = 0; k < books.books; ++k) {
    for (int64_t c = 0; k != without && c < books.cols; ++c) {
      r[static_cast<size_t>(c)] -= static_cast<double>(books.word(k, codes[k])[c]);
    }
  }
  return r;
}

inline float cost(const Codebooks& books, const float* x, const uint8_t* codes) {
  return static_cast<float>(canonical_squared_norm(residual(books, x, codes, -1).data(), books.cols));
}

inline uint8_t best_code(const Codebooks& books, const float* x, const uint8_t* codes, int64_t k) {
  const std::vector<double> r = residual(books, x, codes, k);
  int64_t best = 0;
  const auto key = [&](int64_t j) {
    return canonical_pair<KeyKind::squared_l2>(r.data(), books.word(k, j), books.cols);
  };
  for (int64_t j = 1; j < books.words(); ++j) best = key(j) < key(best) ? j : best;
  return static_cast<uint8_t>(best);
}

// Algorithm 1, from the codes given.
inline float local_search(const Codebooks& books, const float* x, int64_t row, const LocalSearchPlan& plan,
                          uint8_t* codes) {
  float least = cost(books, x, codes);
  for (int64_t round = plan.from_round; round < plan.from_round + plan.rounds; ++round) {
    std::vector<uint8_t> tried(codes, codes + books.books);
    perturb_codes(plan, row, round, books.books, books.bits, tried.data());
    std::vector<int64_t> order;
    for (int64_t sweep = 0; sweep < plan.sweeps; ++sweep) {
      order_books(plan, round, sweep, books.books, order);
      for (const int64_t k : order) tried[static_cast<size_t>(k)] = best_code(books, x, tried.data(), k);
    }
    const float found = cost(books, x, tried.data());
    if (found < least) std::copy(tried.begin(), tried.end(), codes);
    least = std::min(least, found);
  }
  return least;
}

// The same as the paper prints it: its line 19 counts the inner products of different books once, not twice, and its
// line 10 goes on from codes that were not kept.
inline float local_search_as_printed(const Codebooks& books, const float* x, int64_t row, const LocalSearchPlan& plan,
                                     uint8_t* codes) {
  float least = cost(books, x, codes);
  std::vector<uint8_t> tried(codes, codes + books.books);
  for (int64_t round = plan.from_round; round < plan.from_round + plan.rounds; ++round) {
    perturb_codes(plan, row, round, books.books, books.bits, tried.data());
    for (int64_t step = 0; step < plan.sweeps * books.books; ++step) {
      const int64_t k = step % books.books;
      const std::vector<double> r = residual(books, x, tried.data(), k);
      double best = 0;
      for (int64_t j = 0; j < books.words(); ++j) {
        double value = 0;  // |c|^2 - 2 <x, c> + <x - r, c>, where x - r is the sum of the other books' codewords
        for (int64_t c = 0; c < books.cols; ++c) {
          const auto word = static_cast<double>(books.word(k, j)[c]);
          value += word * (word - static_cast<double>(x[c]) - r[static_cast<size_t>(c)]);
        }
        if (j == 0 || value < best) {
          best = value;
          tried[static_cast<size_t>(k)] = static_cast<uint8_t>(j);
        }
      }
    }
    const float found = cost(books, x, tried.data());
    if (found < least) std::copy(tried.begin(), tried.end(), codes);
    least = std::min(least, found);
  }
  return least;
}

}  // namespace kith::reference
