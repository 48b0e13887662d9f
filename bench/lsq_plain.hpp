// Local search for codes in plain f32, as one would write it: what its codes lose to those of exact costs.
#pragma once

#include "core/parallel_for.hpp"
#include "quantize/additive/local_search.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plain {

// One row's search; residuals, products and costs all in f32.
class Search {
 public:
  Search(const kith::Codebooks& books, const std::vector<float>& columns, const std::vector<float>& halves)
      : books_(books), columns_(columns), halves_(halves), left_(static_cast<size_t>(books.cols)), scores_(256) {}

  // The squared error of the codes that were found.
  double run(const float* row, int64_t number, const kith::LocalSearchPlan& plan) {
    const auto m = static_cast<size_t>(books_.books);
    std::vector<uint8_t> best(m);
    std::copy_n(row, books_.cols, left_.begin());
    for (int64_t k = 0; k < books_.books; ++k) move(k, best[static_cast<size_t>(k)] = nearest(k), -1.0f);
    float least = cost();
    for (int64_t round = 0; round < plan.rounds; ++round) {
      std::vector<uint8_t> codes = best;
      kith::perturb_codes(plan, number, round, books_.books, books_.bits, codes.data());
      std::copy_n(row, books_.cols, left_.begin());
      for (int64_t k = 0; k < books_.books; ++k) move(k, codes[static_cast<size_t>(k)], -1.0f);
      for (int64_t step = 0; step < plan.sweeps * books_.books; ++step) {
        const int64_t k = step % books_.books;
        uint8_t& code = codes[static_cast<size_t>(k)];
        move(k, code, 1.0f);
        code = nearest(k);
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
  uint8_t nearest(int64_t k) {
    const int64_t words = books_.words();
    std::copy_n(halves_.data() + k * words, words, scores_.begin());
    for (int64_t c = 0; c < books_.cols; ++c) {
      const float* const column = columns_.data() + (k * books_.cols + c) * words;
      const float value = left_[static_cast<size_t>(c)];
      for (int64_t j = 0; j < words; ++j) scores_[static_cast<size_t>(j)] -= value * column[j];
    }
    return static_cast<uint8_t>(std::min_element(scores_.begin(), scores_.begin() + words) - scores_.begin());
  }

  const kith::Codebooks books_;
  const std::vector<float>& columns_;
  const std::vector<float>& halves_;
  std::vector<float> left_;
  std::vector<float> scores_;
};

// The mean squared error of rows 0 .. count - 1.
inline double error(const kith::Codebooks& books, const float* rows, int64_t count, const kith::LocalSearchPlan& plan) {
  const int64_t words = books.words();
  std::vector<float> columns(static_cast<size_t>(books.size()));
  std::vector<float> halves(static_cast<size_t>(books.all_words()));
  for (int64_t k = 0; k < books.books; ++k) {
    for (int64_t j = 0; j < words; ++j) {
      double square = 0;
      for (int64_t c = 0; c < books.cols; ++c) {
        const float value = books.word(k, j)[c];
        columns[static_cast<size_t>((k * books.cols + c) * words + j)] = value;
        square += static_cast<double>(value) * static_cast<double>(value);
      }
      halves[static_cast<size_t>(k * words + j)] = static_cast<float>(square / 2);
    }
  }
  std::vector<double> errors(static_cast<size_t>(count));
  const kith::Resources resources;
  kith::ProgressMeter meter("plain", count, resources);
  kith::parallel_for(count, meter, resources, [&](int64_t i, int) {
    Search search(books, columns, halves);
    errors[static_cast<size_t>(i)] = search.run(rows + i * books.cols, i, plan);
  });
  double sum = 0;
  for (const double one : errors) sum += one;
  return sum / static_cast<double>(count);
}

}  // namespace plain
