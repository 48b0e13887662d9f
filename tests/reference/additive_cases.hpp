// Codebooks and rows to encode, easy and hard, for every device and form.
#pragma once

#include "quantize/additive/additive_encoding.hpp"
#include "reference/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kith::reference {

struct AdditiveCase {
  Matrix<float> words;
  Codebooks books;
  Matrix<float> rows;
};

// Codewords like the rows, scaled down so that sums of them come near rows.
inline AdditiveCase make_additive_case(Shape shape, int64_t books, int bits, int64_t cols, int64_t rows,
                                       double scale = 1) {
  AdditiveCase made{make_floats(shape, books << bits, cols, 1), {}, make_floats(shape, rows, cols, 2)};
  for (float& value : made.words.values) {
    value = static_cast<float>(static_cast<double>(value) * scale / static_cast<double>(books));
  }
  for (float& value : made.rows.values) value = static_cast<float>(static_cast<double>(value) * scale);
  made.books = {made.words.row(0), books, bits, cols};
  return made;
}

inline AdditiveEncoding additive_encoding(CodeStart start, int64_t rounds, SearchForm form = SearchForm::automatic) {
  AdditiveEncoding encoding;
  encoding.form = form;
  encoding.start = start;
  encoding.search.rounds = rounds;
  encoding.search.perturbed = 2;
  encoding.search.seed = 7;
  return encoding;
}

struct HardAdditiveCase {
  std::string name;
  AdditiveCase given;
};

inline std::vector<HardAdditiveCase> hard_additive_cases() {
  std::vector<HardAdditiveCase> cases;
  for (const Shape shape : kAllShapes) {
    cases.push_back({std::string(name_of(shape)), make_additive_case(shape, 4, 6, 19, 140)});
    cases.push_back({std::string(name_of(shape)) + ", wide", make_additive_case(shape, 3, 8, 80, 65)});
  }
  for (const double scale : {1e6, 1e-6, 1e12, 1e-13, 1e17, 1e-25, 1e30, 1e-35}) {
    cases.push_back({"values of " + std::to_string(std::log10(scale)), make_additive_case(Shape::gaussian, 4, 8, 40, 70, scale)});
  }
  AdditiveCase repeated = make_additive_case(Shape::gaussian, 4, 8, 48, 150);
  for (int64_t k = 0; k < 4; ++k) {
    for (int64_t j = 64; j < 256; ++j) {
      float* const word = repeated.words.row(k * 256 + j);
      // A quarter of them twice, half of them zero.
      if (j < 128) std::copy_n(repeated.words.row(k * 256 + j - 64), 48, word);
      if (j >= 128) std::fill_n(word, 48, 0.0f);
    }
  }
  cases.push_back({"repeated and unused codewords", repeated});
  std::fill(repeated.words.values.begin(), repeated.words.values.end(), 0.0f);
  cases.push_back({"codewords all zero", std::move(repeated)});
  // Whole numbers: differences of costs are often zero.
  AdditiveCase whole = make_additive_case(Shape::gaussian, 5, 8, 16, 260);
  for (float& value : whole.words.values) value = std::nearbyint(5 * value);
  for (float& value : whole.rows.values) value = std::nearbyint(2 * value);
  cases.push_back({"ties", std::move(whole)});
  AdditiveCase far = make_additive_case(Shape::gaussian, 4, 7, 30, 200);
  for (int64_t i = 0; i < far.rows.rows; i += 3) {
    for (int64_t c = 0; c < 30; ++c) far.rows.row(i)[c] *= i % 2 == 0 ? 1e4f : 3e15f;
  }
  far.rows.row(5)[3] = std::numeric_limits<float>::quiet_NaN();
  far.rows.row(50)[0] = std::numeric_limits<float>::infinity();
  cases.push_back({"rows beyond the grid", std::move(far)});
  for (HardAdditiveCase& one : cases) one.given.books.values = one.given.words.row(0);
  return cases;
}

}  // namespace kith::reference
