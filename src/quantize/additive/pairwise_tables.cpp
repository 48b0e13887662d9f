#include "quantize/additive/pairwise_tables.hpp"

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/dense.hpp"

#include <algorithm>

namespace kith {
int64_t PairwiseTables::width_for(const Codebooks& books) { return std::max(books.words(), kLeastWidth); }

PairwiseTables::PairwiseTables(const SearchBooks& search, const Resources& resources)
    : books_(search.books().books),
      words_(search.books().words()),
      width_(width_for(search.books())),
      values_(books_ * books_ * words_ * width_, "tables of codewords", resources),
      moved_(search.books().size(), "tables of codewords", resources),
      squares_(books_ * words_, "tables of codewords", resources),
      origin_(static_cast<size_t>(search.books().cols), 0.0f),
      scales_(static_cast<size_t>(books_)) {
  const Codebooks& books = search.books();
  const int64_t cols = books.cols;
  const HostArray<float> products(books.all_words() * words_, "tables of codewords", resources);
  const DenseView<const float> all{moved_.data(), books.all_words(), cols, cols, 1};
  const DenseView<float> out{products.data(), books.all_words(), words_, words_, 1};
  const Resources quiet = resources.with_progress({});
  const auto multiply_book = [&](int64_t k) {
    multiply(all, all.block(k * words_, 0, words_, cols).transposed(), out, {}, quiet);
  };
  if (resources.host_memory()->counts_only()) {
    multiply_book(0);
    return;
  }
  std::vector<double> largest(static_cast<size_t>(books_), 0.0);
  for (int64_t k = 0; k < books_; ++k) {
    const float* const mean = search.mean(k);
    for (int64_t c = 0; c < cols; ++c) origin_[static_cast<size_t>(c)] += mean[c];  // exact
    for (int64_t j = 0; j < words_; ++j) {
      float* const moved = moved_.data() + (k * words_ + j) * cols;
      double squared = 0;
      for (int64_t c = 0; c < cols; ++c) {
        moved[c] = books.word(k, j)[c] - mean[c];  // exact
        squared += static_cast<double>(moved[c]) * static_cast<double>(moved[c]);
      }
      squares_[k * words_ + j] = static_cast<float>(squared);
      largest[static_cast<size_t>(k)] = std::max(largest[static_cast<size_t>(k)], std::sqrt(squared) * 1.0001);
    }
    norms_ += largest[static_cast<size_t>(k)];
  }
  const double error = product_error(cols);
  for (int64_t k = 0; k < books_; ++k) {
    multiply_book(k);
    const double own = largest[static_cast<size_t>(k)];
    double reach = 0;  // of the pairwise terms, added up
    for (int64_t i = 0; i < books_; ++i) {
      const float* const from = products.data() + i * words_ * words_;
      float most = 0;
      for (int64_t e = 0; i != k && e < words_ * words_; ++e) most = std::max(most, std::abs(from[e]));
      reach += 2 * static_cast<double>(most);
    }
    TableScale& scale = scales_[static_cast<size_t>(k)];
    // Unary terms of rows near a sum of codewords reach as far, and by the book's own size further.
    const double room = reach + 4 * own * own;
    scale.step = (reach + room) / (kMostScore - books_ - 2);
    if (!(scale.step > 0)) scale.step = 1;
    scale.room = room;
    // Products and keys may lie below f32's normal range.
    const double underflow = 2 * static_cast<double>(books_) * underflow_error(cols);
    // Half a step for each term, and what f32 adds to a unary one.
    scale.constant =
        (0.5 * static_cast<double>(books_) + 0.02) * scale.step + 2 * error * own * (norms_ + own) + underflow;
    scale.linear = 2 * error * own;
    ProgressMeter meter("tables", books_, quiet);
    parallel_for(books_, meter, quiet, [&](int64_t i, int) {
      const float* const from = products.data() + i * words_ * words_;
      int16_t* const to = values_.data() + (k * books_ + i) * words_ * width_;
      for (int64_t b = 0; b < words_; ++b) {
        for (int64_t j = 0; j < words_; ++j) {
          const double steps = i == k ? 0.0 : 2.0 * static_cast<double>(from[b * words_ + j]) / scale.step;
          to[b * width_ + j] = static_cast<int16_t>(std::lrint(steps));
        }
        std::fill(to + b * width_ + words_, to + (b + 1) * width_, int16_t{0});
      }
    });
  }
}

}  // namespace kith
