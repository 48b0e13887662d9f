#include "quantize/additive/search_books.hpp"

#include <algorithm>

namespace kith {

SearchBooks::SearchBooks(const Codebooks& given, const Resources& resources)
    : grid_(given),
      values_(given.size(), "codebooks on their grid", resources),
      means_(given.books * given.cols, "codebooks on their grid", resources),
      rounded_(given),
      nearest_(static_cast<size_t>(given.books)),
      made_(static_cast<size_t>(given.books)) {
  rounded_.values = values_.data();
  std::transform(given.values, given.values + given.size(), values_.begin(),
                 [this](float value) { return grid_.rounded(value); });
  std::vector<double> sums(static_cast<size_t>(given.cols));
  for (int64_t k = 0; k < given.books; ++k) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t j = 0; j < given.words(); ++j) {
      const float* const word = rounded_.word(k, j);
      for (int64_t c = 0; c < given.cols; ++c) sums[static_cast<size_t>(c)] += static_cast<double>(word[c]);
    }
    for (int64_t c = 0; c < given.cols; ++c) {
      const double mean = sums[static_cast<size_t>(c)] / static_cast<double>(given.words());
      means_[k * given.cols + c] = grid_.rounded(static_cast<float>(mean));
    }
  }
}

const NearestCodeword& SearchBooks::nearest(int64_t k) const {
  std::call_once(made_[static_cast<size_t>(k)], [&] {
    nearest_[static_cast<size_t>(k)].set(rounded_.book(k), rounded_.words(), rounded_.cols);
  });
  return nearest_[static_cast<size_t>(k)];
}

}  // namespace kith
