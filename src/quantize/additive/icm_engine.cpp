// Every codeword's exact cost. Residuals are in float64, the codewords taken off in the order of the books.
#include "quantize/additive/icm_engine.hpp"

#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/least_scores.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace kith {
namespace {

// A row less the codewords of its codes, without that of `book`, where that is one.
void take_off_codewords(const SearchBooks& search, const float* row, const uint8_t* codes, int64_t book,
                        IcmOthers others, float* residual) {
  const Codebooks& books = search.books();
  const float* words[kMostCodebooks];
  int64_t count = 0;
  for (int64_t k = 0; k < books.books; ++k) {
    if (k == book) continue;
    words[count++] = others == IcmOthers::before && k > book ? search.mean(k) : books.word(k, codes[k]);
  }
  subtract_rows_cpu(row, words, count, books.cols, residual);
}

class DirectIcm final : public IcmEngine {
 public:
  explicit DirectIcm(const SearchBooks& books) : books_(books), residual_(static_cast<size_t>(books.books().cols)) {}

  void load(const float* rows, int64_t) override { rows_ = rows; }

  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override {
    const Codebooks& books = books_.books();
    for (int64_t i = 0; i < count; ++i) {
      find_residual(rows[i], book, others, codes + rows[i] * books.books);
      float best = std::numeric_limits<float>::infinity();
      out[i] = 0;
      for (int64_t j = 0; j < books.words(); ++j) {
        const float key = canonical_pair<KeyKind::squared_l2>(residual_.data(), books.word(book, j), books.cols);
        if (key < best) {
          best = key;
          out[i] = static_cast<uint8_t>(j);
        }
      }
    }
  }

  float cost(int64_t row, const uint8_t* codes) const override {
    find_residual(row, -1, IcmOthers::all, codes);
    return static_cast<float>(canonical_squared_norm(residual_.data(), books_.books().cols));
  }

 private:
  void find_residual(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes) const {
    const Codebooks& books = books_.books();
    for (int64_t c = 0; c < books.cols; ++c) {
      double value = static_cast<double>(rows_[row * books.cols + c]);
      for (int64_t k = 0; k < books.books; ++k) {
        if (k == book) continue;
        const bool by_mean = others == IcmOthers::before && k > book;
        value -= static_cast<double>(by_mean ? books_.mean(k)[c] : books.word(k, codes[k])[c]);
      }
      residual_[static_cast<size_t>(c)] = value;
    }
  }

  const SearchBooks& books_;
  const float* rows_ = nullptr;
  mutable std::vector<double> residual_;
};

}  // namespace

std::unique_ptr<IcmEngine> make_direct_icm(const SearchBooks& books) { return std::make_unique<DirectIcm>(books); }

// Residuals times a book: rows x cols x codewords multiply-adds a step (kernels/assign/codewords_cpu.hpp). For few
// rows, or where there is no memory for tables.

namespace {

constexpr int64_t kResiduals = 64;  // at a time

class ProductIcm final : public IcmEngine {
 public:
  ProductIcm(const SearchBooks& books, const Resources& resources)
      : books_(books),
        cols_(books.books().cols),
        residuals_(kResiduals * cols_, "residuals", resources),
        scratch_(NearestCodeword::scratch_floats(cols_), "residuals", resources) {}

  void load(const float* rows, int64_t) override { rows_ = rows; }

  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override {
    for (int64_t first = 0; first < count; first += kResiduals) {
      const int64_t some = std::min(kResiduals, count - first);
      for (int64_t i = 0; i < some; ++i) {
        const int64_t row = rows[first + i];
        take_off_codewords(books_, rows_ + row * cols_, codes + row * books_.books().books, book, others,
                           residuals_.data() + i * cols_);
      }
      books_.nearest(book).nearest(residuals_.data(), cols_, some, out + first, 1, scratch_.data());
    }
  }

  float cost(int64_t row, const uint8_t* codes) const override {
    take_off_codewords(books_, rows_ + row * cols_, codes, -1, IcmOthers::all, scratch_.data());
    return static_cast<float>(canonical_squared_norm_cpu(scratch_.data(), cols_));
  }

 private:
  const SearchBooks& books_;
  const int64_t cols_;
  const float* rows_ = nullptr;
  HostArray<float> residuals_;
  HostArray<float> scratch_;
};

}  // namespace

std::unique_ptr<IcmEngine> make_product_icm(const SearchBooks& books, const Resources& resources) {
  return std::make_unique<ProductIcm>(books, resources);
}

namespace {

constexpr int64_t kTogether = 64;  // rows whose doubtful codewords are kept

}  // namespace

TableIcm::TableIcm(const SearchBooks& books, const PairwiseTables& tables, const UnaryTerms& terms, int64_t block_rows,
                   const Resources& resources)
    : books_(books),
      tables_(tables),
      terms_(terms),
      cols_(books.books().cols),
      block_rows_(block_rows),
      unary_(block_rows * books.books().books * tables.width(), "unary tables", resources),
      windows_(block_rows * books.books().books, "unary tables", resources),
      products_(UnaryTerms::scratch_floats(books.books(), block_rows), "unary tables", resources),
      residual_(cols_, "unary tables", resources),
      counts_(kTogether, "unary tables", resources),
      doubtful_(kTogether * kMostScoredWords, "unary tables", resources) {}

void TableIcm::take(const float* moved, const double* norms, int64_t count, uint8_t* fits) {
  const int64_t width = tables_.width();
  for (int64_t k = 0; k < books_.books().books; ++k) {
    const int64_t at = k * block_rows_ + taken_;
    terms_.round(k, moved, norms, count, products_.data(), unary_.data() + at * width, windows_.data() + at, fits);
  }
  const int64_t first = taken_;
  for (int64_t i = 0; i < count; ++i) {
    if (fits[i] == 0) continue;
    for (int64_t k = 0; taken_ < first + i && k < books_.books().books; ++k) {
      int16_t* const unary = unary_.data() + k * block_rows_ * width;
      std::copy_n(unary + (first + i) * width, width, unary + taken_ * width);
      windows_[k * block_rows_ + taken_] = windows_[k * block_rows_ + first + i];
    }
    ++taken_;
  }
}

void TableIcm::load(const float* rows, int64_t) { rows_ = rows; }

void TableIcm::step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
                    uint8_t* out) {
  const Codebooks& books = books_.books();
  ScoreTask task;
  task.tables = tables_.row(book, 0, 0);
  // Means that stand for books are zero after the move.
  task.end_book = others == IcmOthers::all ? books.books : book;
  task.skipped_book = book;
  task.table_words = books.words();
  task.width = tables_.width();
  task.unary = unary_.data() + book * block_rows_ * task.width;
  task.windows = windows_.data() + book * block_rows_;
  task.codes = codes;
  task.books = books.books;
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t some = std::min(kTogether, count - first);
    least_scores_cpu(task, rows + first, some, out + first, counts_.data(), doubtful_.data());
    for (int64_t i = 0; i < some; ++i) {
      if (counts_[i] == 1) continue;
      const int64_t row = rows[first + i];
      out[first + i] =
          settle(row, book, others, codes + row * books.books, doubtful_.data() + i * kMostScoredWords, counts_[i]);
    }
  }
}

uint8_t TableIcm::settle(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* candidates,
                         int64_t count) {
  const Codebooks& books = books_.books();
  take_off_codewords(books_, rows_ + row * cols_, codes, book, others, residual_.data());
  float keys[kMostScoredWords];
  canonical_keys_cpu(KeyKind::squared_l2, {residual_.data(), 0.0}, MatrixView(books.book(book), books.words(), cols_),
                     candidates, count, keys);
  int64_t best = 0;  // candidates ascend: ties go to the smaller
  for (int64_t i = 1; i < count; ++i) {
    if (keys[i] < keys[best]) best = i;
  }
  return static_cast<uint8_t>(candidates[best]);
}

float TableIcm::cost(int64_t row, const uint8_t* codes) const {
  take_off_codewords(books_, rows_ + row * cols_, codes, -1, IcmOthers::all, residual_.data());
  return static_cast<float>(canonical_squared_norm_cpu(residual_.data(), cols_));
}

}  // namespace kith
