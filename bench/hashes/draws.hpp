// What a case draws: its parameters and its vectors.
//
// Everything follows from (seed, entry point, case) by a counter-based generator, so that a new entry point, or more
// cases of one, change no others. Values of vectors are made of integers by exact operations or single IEEE roundings,
// never by functions of libm: every processor sees the same bytes.
#pragma once

#include <kith/kith.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

namespace hashes {

// The mixing step of SplitMix64: a number for each counter.
inline uint64_t mixed(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class Draws {
 public:
  Draws(uint64_t seed, std::string_view entry_point, int64_t index);

  uint64_t bits() { return mixed(key_ ^ mixed(counter_++)); }
  // From low to high, both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <typename T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<int64_t>(choices.size()) - 1)];
  }
  template <typename T>
  T of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(between(0, static_cast<int64_t>(choices.size()) - 1))];
  }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

// What vectors look like. The later ones are hard for bounds, selections and k-means.
enum class Pattern : uint8_t {
  uniform,     // 24 bits between -1 and 1
  bell,        // sums of four uniform numbers
  clusters,    // around eight centres
  sparse,      // nine values of ten are zero
  ties,        // small integers: many equal distances
  equal,       // all rows are the same
  duplicates,  // five different rows
  far,         // a large mean beside a small spread
  sorted,      // row i lies near i / 8 in every column
  zeros,
  infinite,  // bell, but for some infinities and NaNs
};

// Vectors of one pattern, as a function of row and column.
struct Source {
  Pattern pattern = Pattern::uniform;
  uint64_t key = 0;
  bool negative = true;  // else absolute values, as chi_square wants them

  float value(int64_t row, int64_t col) const;
};

// A matrix that the case owns, in host memory or, where the run has a GPU, in its memory.
class Rows {
 public:
  Rows() = default;
  // Rows first .. first + rows - 1 of the source; `gap` elements lie between rows.
  Rows(const Source& source, kith::DType dtype, int64_t first, int64_t rows, int64_t cols, int64_t gap = 0);

  void move_to_device();
  // Where the matrix was moved to.
  kith::MatrixView view() const;
  kith::MatrixView host() const;
  int64_t rows() const { return shape_.rows; }
  int64_t cols() const { return shape_.cols; }
  kith::DType dtype() const { return dtype_; }

 private:
  std::vector<std::byte> values_;
  std::shared_ptr<void> on_device_;
  kith::MatrixShape shape_;
  kith::DType dtype_ = kith::DType::f32;
};

// A filter with the memory that it refers to.
struct DrawnFilter {
  kith::RowFilter filter;
  std::vector<uint8_t> bytes;
  std::vector<int64_t> numbers;
};
// A filter of any form; `ids` are what a list may name, by default the rows.
DrawnFilter draw_filter(Draws& draws, int64_t rows, const std::vector<int64_t>& ids = {});

int64_t draw_rows(Draws& draws);  // 1 to 1,025, at the edges of tiles and between
int64_t draw_cols(Draws& draws);  // 1 to 128
int64_t draw_k(Draws& draws, int64_t rows);
kith::Metric draw_metric(Draws& draws);
// One that vectors of the metric can have.
kith::DType draw_dtype(Draws& draws, kith::Metric metric);
Source draw_source(Draws& draws, kith::Metric metric);
// Patterns that codes and centres can be learnt from.
Source draw_plain_source(Draws& draws);

// A base and queries for it.
struct SearchData {
  kith::Metric metric = kith::Metric::l2;
  Rows base;
  Rows queries;
};
struct SearchShape {
  int64_t queries = 1;
  int64_t rows = 1;
  int64_t cols = 1;
};
SearchData draw_search_data(Draws& draws, kith::Metric metric, const SearchShape& shape);

}  // namespace hashes
