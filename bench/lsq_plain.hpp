// Local search for codes in plain f32, as one would write it: what its codes lose to those of exact costs. And what
// becomes of it as the paper prints it, or with both sides of the products rounded to halves and nothing decided after.
#pragma once

#include "core/half.hpp"
#include "core/parallel_for.hpp"
#include "quantize/additive/local_search.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plain {

struct Ways {
  bool printed_objective = false;  // line 19 of Algorithm 1: inner products of different books are counted once
  bool printed_start = false;      // line 10 of it: a round goes on from codes that were not kept
  bool halves = false;             // residuals and codewords as halves, sums in f32
};

// Codebooks as the search wants them: column by column, and half of the codewords' squares.
struct Prepared {
  explicit Prepared(const kith::Codebooks& given, const Ways& wanted)
      : books(given),
        ways(wanted),
        columns(static_cast<size_t>(given.size())),
        halves(static_cast<size_t>(given.all_words())) {
    const int64_t words = books.words();
    for (int64_t k = 0; k < books.books; ++k) {
      for (int64_t j = 0; j < words; ++j) {
        double square = 0;
        for (int64_t c = 0; c < books.cols; ++c) {
          const float value = books.word(k, j)[c];
          columns[static_cast<size_t>((k * books.cols + c) * words + j)] =
              ways.halves ? static_cast<float>(kith::half_of(value)) : value;
          square += static_cast<double>(value) * static_cast<double>(value);
        }
        halves[static_cast<size_t>(k * words + j)] = static_cast<float>(square / 2);
      }
    }
  }

  kith::Codebooks books;
  Ways ways;
  std::vector<float> columns;
  std::vector<float> halves;
};

// One row's search; residuals, products and costs all in f32.
class Search {
 public:
  explicit Search(const Prepared& prepared)
      : prepared_(prepared), books_(prepared.books), left_(static_cast<size_t>(books_.cols)), scores_(256) {}

  // The squared error of the codes that were found.
  double run(const float* row, int64_t number, const kith::LocalSearchPlan& plan) {
    row_ = row;
    const auto m = static_cast<size_t>(books_.books);
    std::vector<uint8_t> best(m);
    std::copy_n(row, books_.cols, left_.begin());
    for (int64_t k = 0; k < books_.books; ++k) move(k, best[static_cast<size_t>(k)] = nearest(k, false), -1.0f);
    float least = cost();
    std::vector<uint8_t> codes = best;
    for (int64_t round = 0; round < plan.rounds; ++round) {
      if (!prepared_.ways.printed_start) codes = best;
      kith::perturb_codes(plan, number, round, books_.books, books_.bits, codes.data());
      std::copy_n(row, books_.cols, left_.begin());
      for (int64_t k = 0; k < books_.books; ++k) move(k, codes[static_cast<size_t>(k)], -1.0f);
      for (int64_t step = 0; step < plan.sweeps * books_.books; ++step) {
        const int64_t k = step % books_.books;
        uint8_t& code = codes[static_cast<size_t>(k)];
        move(k, code, 1.0f);
        code = nearest(k, prepared_.ways.printed_objective);
        move(k, code, -1.0f);
      }
      const float now = cost();
      if (!(now < least)) continue;
      least = now;
      best = codes;
    }
    double sum = 0;
    for (int64_t c = 0; c < books_.cols; ++c) {
      double value = static_cast<double>(row[c]);
      for (int64_t k = 0; k < books_.books; ++k) {
        value -= static_cast<double>(books_.word(k, best[static_cast<size_t>(k)])[c]);
      }
      sum += value * value;
    }
    return sum;
  }

 private:
  void move(int64_t k, int64_t word, float sign) {
    for (int64_t c = 0; c < books_.cols; ++c) left_[static_cast<size_t>(c)] += sign * books_.word(k, word)[c];
  }
  float cost() const {
    float sum = 0;
    for (const float value : left_) sum += value * value;
    return sum;
  }
  // With r what is left of x, |c|^2 - 2 <x, c> + 2 <x - r, c> is least where |c|^2 / 2 - <r, c> is; with the last term
  // once, where |c|^2 / 2 - <(x + r) / 2, c> is.
  uint8_t nearest(int64_t k, bool printed) {
    const int64_t words = books_.words();
    std::copy_n(prepared_.halves.data() + k * words, words, scores_.begin());
    for (int64_t c = 0; c < books_.cols; ++c) {
      const float* const column = prepared_.columns.data() + (k * books_.cols + c) * words;
      float value = left_[static_cast<size_t>(c)];
      if (printed) value = (row_[c] + value) / 2;
      if (prepared_.ways.halves) value = static_cast<float>(kith::half_of(value));
      for (int64_t j = 0; j < words; ++j) scores_[static_cast<size_t>(j)] -= value * column[j];
    }
    return static_cast<uint8_t>(std::min_element(scores_.begin(), scores_.begin() + words) - scores_.begin());
  }

  const Prepared& prepared_;
  const kith::Codebooks& books_;
  const float* row_ = nullptr;
  std::vector<float> left_;
  std::vector<float> scores_;
};

// The squared errors of rows 0 .. count - 1.
inline std::vector<double> errors(const kith::Codebooks& books, const float* rows, int64_t count,
                                  const kith::LocalSearchPlan& plan, const Ways& ways = {}) {
  const Prepared prepared(books, ways);
  std::vector<double> found(static_cast<size_t>(count));
  const kith::Resources resources;
  kith::ProgressMeter meter("plain", count, resources);
  kith::parallel_for(count, meter, resources, [&](int64_t i, int) {
    Search search(prepared);
    found[static_cast<size_t>(i)] = search.run(rows + i * books.cols, i, plan);
  });
  return found;
}

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double one : values) sum += one;
  return sum / static_cast<double>(values.size());
}

}  // namespace plain
