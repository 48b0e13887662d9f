#include "quantize/additive/icm_tables.hpp"

#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/least_scores.hpp"
#include "quantize/additive/residual_rows.hpp"

#include <limits>

namespace kith {
namespace {

constexpr int64_t kMostWords = 256;

}  // namespace

TableIcm::TableIcm(const SearchBooks& books, const PairwiseTables& tables, const Resources& resources)
    : books_(books),
      tables_(tables),
      cols_(books.books().cols),
      unary_(kIcmBlockRows * books.books().books * tables.width(), "unary tables", resources),
      windows_(kIcmBlockRows * books.books().books, "unary tables", resources),
      residual_(cols_, "unary tables", resources),
      counts_(kIcmBlockRows, "unary tables", resources),
      doubtful_(kIcmBlockRows * kMostWords, "unary tables", resources) {}

int64_t TableIcm::bytes_for(const Codebooks& books) {
  return array_bytes<int16_t>(kIcmBlockRows * books.books * (PairwiseTables::width_for(books) + 1)) +
         array_bytes<float>(books.cols) + kIcmBlockRows * (array_bytes<uint16_t>(1) + array_bytes<uint32_t>(kMostWords));
}

bool TableIcm::take(const float* products, double norm) {
  const int64_t books = books_.books().books;
  const int64_t words = books_.books().words();
  for (int64_t k = 0; k < books; ++k) {
    const int64_t at = taken_ * books + k;
    if (!tables_.round_unary(k, products + k * words, norm, unary_.data() + at * tables_.width(),
                             windows_.data() + at)) {
      return false;
    }
  }
  ++taken_;
  return true;
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
  task.unary = unary_.data() + book * task.width;
  task.unary_stride = books.books * task.width;
  task.windows = windows_.data() + book;
  task.window_stride = books.books;
  task.codes = codes;
  task.books = books.books;
  least_scores_cpu(task, rows, count, out, counts_.data(), doubtful_.data());
  for (int64_t i = 0; i < count; ++i) {
    if (counts_[i] == 1) continue;
    out[i] = settle(rows[i], book, others, codes + rows[i] * books.books, doubtful_.data() + i * kMostWords, counts_[i]);
  }
}

uint8_t TableIcm::settle(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* candidates,
                         int64_t count) {
  const Codebooks& books = books_.books();
  take_off_codewords(books_, rows_ + row * cols_, codes, book, others, residual_.data());
  float keys[kMostWords];
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
