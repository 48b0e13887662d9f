#include "quantize/additive/icm_engine.hpp"

#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/least_scores.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace kith {

void GridIcm::take_off_codewords(int64_t row, const uint8_t* codes, int64_t book, IcmOthers others,
                                 float* residual) const {
  const float* words[kMostCodebooks];
  int64_t count = 0;
  for (int64_t k = 0; k < books_.books; ++k) {
    if (k == book) continue;
    words[count++] = others == IcmOthers::before && k > book ? search_.mean(k) : books_.word(k, codes[k]);
  }
  subtract_rows_cpu(rows_ + row * books_.cols, words, count, books_.cols, residual);
}

float GridIcm::cost(int64_t row, const uint8_t* codes) const {
  take_off_codewords(row, codes, -1, IcmOthers::all, scratch_.data());
  return static_cast<float>(canonical_squared_norm_cpu(scratch_.data(), books_.cols));
}

namespace {

// The exact cost of every codeword. Residuals are float64; codewords are subtracted in the order of the books.
class DirectIcm final : public IcmEngine {
 public:
  explicit DirectIcm(const SearchBooks& books) : IcmEngine(books), residual_(static_cast<size_t>(books.books().cols)) {}

  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override {
    for (int64_t i = 0; i < count; ++i) {
      find_residual(rows[i], book, others, codes + rows[i] * books_.books);
      float best = std::numeric_limits<float>::infinity();
      out[i] = 0;
      for (int64_t j = 0; j < books_.words(); ++j) {
        const float key = canonical_pair<KeyKind::squared_l2>(residual_.data(), books_.word(book, j), books_.cols);
        if (key < best) {
          best = key;
          out[i] = static_cast<uint8_t>(j);
        }
      }
    }
  }

  float cost(int64_t row, const uint8_t* codes) const override {
    find_residual(row, -1, IcmOthers::all, codes);
    return static_cast<float>(canonical_squared_norm(residual_.data(), books_.cols));
  }

 private:
  void find_residual(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes) const {
    for (int64_t c = 0; c < books_.cols; ++c) {
      double value = static_cast<double>(rows_[row * books_.cols + c]);
      for (int64_t k = 0; k < books_.books; ++k) {
        if (k == book) continue;
        const bool by_mean = others == IcmOthers::before && k > book;
        value -= static_cast<double>(by_mean ? search_.mean(k)[c] : books_.word(k, codes[k])[c]);
      }
      residual_[static_cast<size_t>(c)] = value;
    }
  }

  mutable std::vector<double> residual_;
};

constexpr int64_t kResiduals = 64;  // at a time
constexpr int64_t kTogether = 64;   // rows whose doubtful codewords are kept

// Residuals times a book: rows x cols x codewords multiply-adds per step (kernels/assign/codewords_cpu.hpp). For few
// rows, and if there is no memory for tables.
class ProductIcm final : public GridIcm {
 public:
  ProductIcm(const SearchBooks& books, const Resources& resources)
      : GridIcm(books, NearestCodeword::scratch_floats(books.books().cols), resources),
        residuals_(kResiduals * books_.cols, "residuals", resources) {}

  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override {
    for (int64_t first = 0; first < count; first += kResiduals) {
      const int64_t some = std::min(kResiduals, count - first);
      for (int64_t i = 0; i < some; ++i) {
        const int64_t row = rows[first + i];
        take_off_codewords(row, codes + row * books_.books, book, others, residuals_.data() + i * books_.cols);
      }
      search_.nearest(book).nearest(residuals_.data(), books_.cols, some, out + first, 1, scratch_.data());
    }
  }

 private:
  HostArray<float> residuals_;
};

}  // namespace

std::unique_ptr<IcmEngine> make_direct_icm(const SearchBooks& books) { return std::make_unique<DirectIcm>(books); }

std::unique_ptr<IcmEngine> make_product_icm(const SearchBooks& books, const Resources& resources) {
  return std::make_unique<ProductIcm>(books, resources);
}

TableIcm::TableIcm(const SearchBooks& books, const PairwiseTables& tables, const UnaryTerms& terms, int64_t block_rows,
                   const Resources& resources)
    : GridIcm(books, books.books().cols, resources),
      tables_(tables),
      terms_(terms),
      block_rows_(block_rows),
      unary_(block_rows * books_.books * tables.width(), "unary tables", resources),
      windows_(block_rows * books_.books, "unary tables", resources),
      products_(UnaryTerms::scratch_floats(books_, block_rows), "unary tables", resources),
      counts_(kTogether, "unary tables", resources),
      doubtful_(kTogether * kMostScoredWords, "unary tables", resources) {}

void TableIcm::take(const float* moved, const double* norms, int64_t count, uint8_t* fits) {
  const int64_t width = tables_.width();
  for (int64_t k = 0; k < books_.books; ++k) {
    const int64_t at = k * block_rows_ + taken_;
    terms_.round(k, moved, norms, count, products_.data(), unary_.data() + at * width, windows_.data() + at, fits);
  }
  const int64_t first = taken_;
  for (int64_t i = 0; i < count; ++i) {
    if (fits[i] == 0) continue;
    for (int64_t k = 0; taken_ < first + i && k < books_.books; ++k) {
      int16_t* const unary = unary_.data() + k * block_rows_ * width;
      std::copy_n(unary + (first + i) * width, width, unary + taken_ * width);
      windows_[k * block_rows_ + taken_] = windows_[k * block_rows_ + first + i];
    }
    ++taken_;
  }
}

void TableIcm::step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
                    uint8_t* out) {
  ScoreTask task;
  task.tables = tables_.row(book, 0, 0);
  // Means that stand for books are zero after the move.
  task.end_book = others == IcmOthers::all ? books_.books : book;
  task.skipped_book = book;
  task.table_words = books_.words();
  task.width = tables_.width();
  task.unary = unary_.data() + book * block_rows_ * task.width;
  task.windows = windows_.data() + book * block_rows_;
  task.codes = codes;
  task.books = books_.books;
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t some = std::min(kTogether, count - first);
    least_scores_cpu(task, rows + first, some, out + first, counts_.data(), doubtful_.data());
    for (int64_t i = 0; i < some; ++i) {
      if (counts_[i] == 1) continue;
      const int64_t row = rows[first + i];
      out[first + i] =
          settle(row, book, others, codes + row * books_.books, doubtful_.data() + i * kMostScoredWords, counts_[i]);
    }
  }
}

uint8_t TableIcm::settle(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* candidates,
                         int64_t count) {
  take_off_codewords(row, codes, book, others, scratch_.data());
  float keys[kMostScoredWords];
  canonical_keys_cpu(KeyKind::squared_l2, {scratch_.data(), 0.0},
                     MatrixView(books_.book(book), books_.words(), books_.cols), candidates, count, keys);
  int64_t best = 0;  // candidates ascend: ties go to the smaller
  for (int64_t i = 1; i < count; ++i) {
    if (keys[i] < keys[best]) best = i;
  }
  return static_cast<uint8_t>(candidates[best]);
}

}  // namespace kith
