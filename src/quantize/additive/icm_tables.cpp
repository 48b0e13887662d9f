#include "quantize/additive/icm_tables.hpp"

#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/least_scores.hpp"
#include "quantize/additive/residual_rows.hpp"

#include <algorithm>

namespace kith {
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

int64_t TableIcm::bytes_for(const Codebooks& books, int64_t block_rows) {
  return array_bytes<int16_t>(block_rows * books.books * (PairwiseTables::width_for(books) + 1)) +
         array_bytes<float>(UnaryTerms::scratch_floats(books, block_rows) + books.cols) +
         kTogether * (array_bytes<uint16_t>(1) + array_bytes<uint32_t>(kMostScoredWords));
}

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
      out[first + i] = settle(row, book, others, codes + row * books.books, doubtful_.data() + i * kMostScoredWords, counts_[i]);
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
