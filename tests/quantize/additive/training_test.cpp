// Codebooks for codes, and the training of local search and residual quantizers.
#include <kith/error.hpp>
#include <kith/local_search_quantizer.hpp>
#include <kith/residual_quantizer.hpp>

#include "kernels/codes/code_format.hpp"
#include "kernels/dense/factorisations.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/additive_training.hpp"
#include "quantize/additive/local_search_steps.hpp"
#include "quantize/additive/search_books.hpp"
#include "reference/additive.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

Resources with_threads(int threads) {
  ResourceOptions options;
  options.threads = threads;
  return Resources(options);
}

TEST(Cholesky, SolvesSystemsLargerAndSmallerThanABlock) {
  for (const int64_t size : {1, 5, 96, 97, 250}) {
    const auto from = make_floats(Shape::gaussian, size, size, 3);
    const Dense a(size, size, "a", Resources());
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        for (int64_t k = 0; k < size; ++k) a(i, j) += static_cast<double>(from.row(i)[k]) * from.row(j)[k];
      }
      a(i, i) += 0.5;
    }
    const Dense used(size, size, "a", Resources());
    std::copy_n(a.row(0), size * size, used.row(0));
    const Dense b(size, 3, "b", Resources());
    for (int64_t i = 0; i < size; ++i) b(i, 0) = 1.0, b(i, 1) = static_cast<double>(i), b(i, 2) = -2.0;
    const Dense x(size, 3, "x", Resources());
    std::copy_n(b.row(0), size * 3, x.row(0));
    solve_positive_definite(used.view(), x.view(), 0.5, with_threads(2));
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t c = 0; c < 3; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < size; ++j) sum += a(i, j) * x(j, c);
        EXPECT_NEAR(sum, b(i, c), 1e-8 * static_cast<double>(size));
      }
    }
  }
}

struct Coded {
  Matrix<float> rows;
  std::vector<uint8_t> codes;
  CodedRows view;
};

Coded make_coded(int64_t count, int64_t cols, int64_t books, int bits) {
  Coded made{make_floats(Shape::gaussian, count, cols, 4), {}, {}};
  made.codes.resize(static_cast<size_t>(count * books));
  for (int64_t i = 0; i < count; ++i) draw_codes(5, i, books, bits, made.codes.data() + i * books);
  made.view = {made.rows.row(0), made.codes.data(), count, cols, books, bits};
  return made;
}

// |X - C B|^2 + lambda |C|^2.
double objective(const Coded& coded, const std::vector<float>& values, double lambda) {
  const Codebooks books{values.data(), coded.view.books, coded.view.bits, coded.view.cols};
  double sum = 0;
  for (int64_t i = 0; i < coded.view.count; ++i) {
    for (const double r : reference::residual(books, coded.rows.row(i), coded.codes.data() + i * books.books, -1)) {
      sum += r * r;
    }
  }
  for (const float value : values) sum += lambda * static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

TEST(CodebookUpdate, NoChangeOfACodewordIsBetter) {
  const Coded coded = make_coded(300, 5, 3, 4);
  std::vector<float> found(static_cast<size_t>(3 * 16 * 5));
  update_codebooks(coded.view, 0.1, found.data(), with_threads(2));
  const double least = objective(coded, found, 0.1);
  for (size_t at = 0; at < found.size(); at += 7) {
    for (const float by : {-0.05f, 0.05f}) {
      std::vector<float> other = found;
      other[at] += by;
      EXPECT_GT(objective(coded, other, 0.1), least);
    }
  }
}

TEST(CodebookUpdate, UnusedCodewordsAreZeroAndThreadsDoNotMatter) {
  Coded coded = make_coded(200, 70, 2, 6);
  for (uint8_t& code : coded.codes) code &= 31;  // the second half of each book is unused: B^T B is singular
  std::vector<float> found(static_cast<size_t>(2 * 64 * 70));
  update_codebooks(coded.view, 1e-4, found.data(), with_threads(1));
  for (int64_t k = 0; k < 2; ++k) {
    for (int64_t i = 32 * 70; i < 64 * 70; ++i) ASSERT_EQ(found[static_cast<size_t>(k * 64 * 70 + i)], 0.0f);
  }
  for (const float value : found) ASSERT_TRUE(std::isfinite(value));
  std::vector<float> again(found.size());
  update_codebooks(coded.view, 1e-4, again.data(), with_threads(3));
  EXPECT_EQ(found, again);
}

TEST(CodebookUpdate, OneBookTakesTheMeans) {
  const Coded coded = make_coded(400, 4, 1, 4);
  std::vector<float> found(16 * 4);
  update_codebooks(coded.view, 1e-9, found.data(), Resources());
  std::map<int, std::pair<double, int>> means;
  for (int64_t i = 0; i < 400; ++i) {
    auto& [sum, count] = means[coded.codes[static_cast<size_t>(i)]];
    sum += static_cast<double>(coded.rows.row(i)[2]);
    ++count;
  }
  for (const auto& [code, mean] : means) {
    EXPECT_NEAR(found[static_cast<size_t>(code * 4 + 2)], mean.first / mean.second, 1e-5);
  }
}

LocalSearchParams small_params() {
  LocalSearchParams params;
  params.codebooks = 3;
  params.bits = 4;
  params.rounds = 6;
  params.train_search_rounds = 2;
  params.anneal = 0;
  return params;
}

double error_of(const LocalSearchQuantizer& quantizer, const Matrix<float>& rows) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows.rows * quantizer.code_bytes()));
  const MutableMatrixView view(codes.data(), rows.rows, quantizer.code_bytes());
  quantizer.encode(rows.view(), view);
  Matrix<float> back(rows.rows, rows.cols);
  quantizer.decode(MatrixView(codes.data(), rows.rows, quantizer.code_bytes()),
                   MutableMatrixView(back.row(0), rows.rows, rows.cols));
  double sum = 0;
  for (size_t i = 0; i < back.values.size(); ++i) {
    sum += std::pow(static_cast<double>(back.values[i]) - static_cast<double>(rows.values[i]), 2);
  }
  return sum;
}

TEST(LocalSearchTraining, TheObjectiveFallsFromEveryStart) {
  const auto rows = make_floats(Shape::gaussian, 800, 10, 6);
  for (const AdditiveStart start : {AdditiveStart::opq, AdditiveStart::residual, AdditiveStart::random}) {
    LocalSearchParams params = small_params();
    params.train_start = start;
    params.regularization = 1e-4;  // the objective is nearly the error
    LocalSearchQuantizer quantizer(params);
    quantizer.train(rows.view());
    const std::vector<double> history = quantizer.history();
    ASSERT_EQ(history.size(), 6u);
    for (size_t i = 1; i < history.size(); ++i) EXPECT_LE(history[i], history[i - 1] * (1 + 1e-6));
    EXPECT_NEAR(error_of(quantizer, rows), history.back(), 0.2 * history.back());
  }
}

TEST(LocalSearchTraining, TheSameBytesForAnyThreadsAndOnTheirGrid) {
  const auto rows = make_floats(Shape::gaussian, 700, 11, 7);
  LocalSearchParams params = small_params();
  params.anneal = 1;
  LocalSearchQuantizer one(params);
  one.train(rows.view(), with_threads(1));
  LocalSearchQuantizer many(params);
  many.train(rows.view(), with_threads(3));
  EXPECT_EQ(one.values(), many.values());
  EXPECT_EQ(one.history(), many.history());
  const std::vector<float> values = one.values();
  const CodewordGrid grid({values.data(), 3, 4, 11});
  for (const float value : values) ASSERT_EQ(grid.rounded(value), value);
}

TEST(LocalSearchTraining, AnnealedItEndsLower) {
  const auto rows = make_floats(Shape::gaussian, 3000, 12, 21);
  LocalSearchParams params;
  params.codebooks = 4;
  params.bits = 4;
  params.anneal = 0;
  LocalSearchQuantizer calm(params);
  calm.train(rows.view());
  params.anneal = LocalSearchParams().anneal;
  LocalSearchQuantizer annealed(params);
  annealed.train(rows.view());
  EXPECT_LT(error_of(annealed, rows), error_of(calm, rows));
}

TEST(LocalSearchTraining, UnitsOfTheRowsDoNotMatter) {
  const auto rows = make_floats(Shape::gaussian, 700, 11, 22);
  auto scaled = rows;
  for (float& value : scaled.values) value *= 0x1p20f;
  LocalSearchParams params = small_params();
  params.anneal = 1;
  LocalSearchQuantizer one(params);
  one.train(rows.view());
  LocalSearchQuantizer other(params);
  other.train(scaled.view());
  std::vector<float> expected = one.values();
  for (float& value : expected) value *= 0x1p20f;
  EXPECT_EQ(other.values(), expected);
}

TEST(LocalSearchTraining, CodewordsOfHugeRowsAreFinite) {
  auto rows = make_floats(Shape::gaussian, 300, 6, 23);
  for (float& value : rows.values) value *= 1e25f;  // their squares are not
  LocalSearchParams params = small_params();
  params.anneal = 1;
  LocalSearchQuantizer quantizer(params);
  quantizer.train(rows.view());
  for (const float value : quantizer.values()) ASSERT_TRUE(std::isfinite(value));
}

TEST(LocalSearchTraining, HardRows) {
  for (const Shape shape : {Shape::all_equal, Shape::near_duplicates, Shape::far_mean, Shape::with_zeros, Shape::tiny,
                            Shape::mixed_norms, Shape::sorted}) {
    SCOPED_TRACE(shape);
    for (const int64_t cols : {1, 7}) {
      const auto rows = make_floats(shape, 150, cols, 8);
      LocalSearchParams params = small_params();
      params.rounds = 2;
      LocalSearchQuantizer quantizer(params);
      quantizer.train(rows.view());
      for (const float value : quantizer.values()) ASSERT_TRUE(std::isfinite(value));
      double spread = 0;
      for (const float value : rows.values) spread += static_cast<double>(value) * static_cast<double>(value);
      EXPECT_LE(error_of(quantizer, rows), (shape == Shape::all_equal ? 1e-9 : 0.5) * spread);
    }
  }
}

TEST(LocalSearchTraining, OneBookIsAKMeans) {
  const auto rows = make_floats(Shape::gaussian, 600, 6, 9);
  LocalSearchParams params = small_params();
  params.codebooks = 1;
  params.regularization = 1e-9;
  params.rounds = 20;
  LocalSearchQuantizer quantizer(params);
  quantizer.train(rows.view());
  // A fixed point of Lloyd's algorithm, or nearly: codewords are the means of the rows that are nearest to them.
  const double error = error_of(quantizer, rows);
  EXPECT_NEAR(error, quantizer.history().back(), 1e-3 * error);
  const std::vector<float> words = quantizer.values();
  std::vector<double> sums(words.size(), 0.0);
  std::vector<int> counts(16, 0);
  for (int64_t i = 0; i < 600; ++i) {
    const uint8_t code = reference::best_code({words.data(), 1, 4, 6}, rows.row(i), nullptr, 0);
    ++counts[code];
    for (int64_t c = 0; c < 6; ++c) sums[static_cast<size_t>(code * 6 + c)] += static_cast<double>(rows.row(i)[c]);
  }
  for (size_t w = 0; w < 16; ++w) {
    for (size_t c = 0; c < 6; ++c) EXPECT_NEAR(sums[w * 6 + c] / counts[w], words[w * 6 + c], 0.05);
  }
}

TEST(LocalSearchTraining, CancelledItKeepsTheLastRound) {
  const auto rows = make_floats(Shape::gaussian, 500, 8, 10);
  LocalSearchParams params = small_params();
  params.rounds = 50;
  ResourceOptions options;
  int rounds = 0;
  options.log = [&, cancel = options.cancel](LogLevel, std::string_view text) {
    if (text.find("LSQ round") != std::string_view::npos && ++rounds == 3) cancel.request();
  };
  LocalSearchQuantizer quantizer(params);
  EXPECT_THROW(quantizer.train(rows.view(), Resources(options)), Cancelled);
  ASSERT_TRUE(quantizer.trained());
  EXPECT_EQ(quantizer.history().size(), 3u);
  LocalSearchParams three = params;
  three.rounds = 3;
  LocalSearchQuantizer whole(three);
  whole.train(rows.view());
  EXPECT_EQ(whole.values(), quantizer.values());
}

TEST(LocalSearchQuantizer, ChoicesHaveNames) {
  for (const AdditiveStart start : {AdditiveStart::opq, AdditiveStart::residual, AdditiveStart::random}) {
    EXPECT_EQ(parse_additive_start(name_of(start)), start);
  }
  for (const CodeStart start : {CodeStart::greedy, CodeStart::random, CodeStart::given}) {
    EXPECT_EQ(parse_code_start(name_of(start)), start);
  }
  for (const SweepOrder order : {SweepOrder::fixed, SweepOrder::random}) {
    EXPECT_EQ(parse_sweep_order(name_of(order)), order);
  }
  EXPECT_THROW(parse_additive_start("greedy"), InvalidArgument);
  EXPECT_THROW(parse_code_start("opq"), InvalidArgument);
  EXPECT_THROW(parse_sweep_order(""), InvalidArgument);
}

TEST(LocalSearchQuantizer, RefusesWhatMakesNoSense) {
  const auto with = [](auto change) {
    LocalSearchParams params;
    change(params);
    return params;
  };
  using P = LocalSearchParams;
  EXPECT_THROW(LocalSearchQuantizer(with([](P& p) { p.codebooks = 0; })), InvalidArgument);
  EXPECT_THROW(LocalSearchQuantizer(with([](P& p) { p.bits = 9; })), InvalidArgument);
  EXPECT_THROW(LocalSearchQuantizer(with([](P& p) { p.regularization = 0; })), InvalidArgument);
  EXPECT_THROW(LocalSearchQuantizer(with([](P& p) { p.anneal = -1; })), InvalidArgument);
  EXPECT_THROW(LocalSearchQuantizer(with([](P& p) { p.perturbed = 9; })), InvalidArgument);
  EXPECT_THROW(LocalSearchQuantizer(with([](P& p) { p.sweeps = 0; })), InvalidArgument);

  LocalSearchQuantizer quantizer(small_params());
  auto rows = make_floats(Shape::gaussian, 100, 6, 1);
  std::vector<uint8_t> codes(300);
  const MutableMatrixView out(codes.data(), 100, 2);
  EXPECT_THROW(quantizer.encode(rows.view(), out), InvalidState);
  EXPECT_THROW(quantizer.train(MatrixView(rows.row(0), 15, 6)), InvalidArgument);
  quantizer.train(rows.view());
  const std::vector<float> before = quantizer.values();
  EXPECT_THROW(quantizer.encode(MatrixView(rows.row(0), 100, 5), out), InvalidArgument);
  EXPECT_THROW(quantizer.encode(rows.view(), MutableMatrixView(codes.data(), 100, 3)), InvalidArgument);
  LocalSearchEncoding given;
  given.start = CodeStart::given;
  std::fill(codes.begin(), codes.end(), uint8_t{0xF0});  // 12 bits are used
  EXPECT_THROW(quantizer.encode(rows.view(), out, given), InvalidArgument);
  rows.row(42)[3] = NAN;
  try {
    quantizer.encode(rows.view(), out);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("42"), std::string::npos) << error.what();
  }
  EXPECT_THROW(quantizer.train(rows.view()), InvalidArgument);
  EXPECT_EQ(quantizer.values(), before);
  ResourceOptions options;
  options.host_memory_limit = 10000;
  rows.row(42)[3] = 0;
  EXPECT_THROW(quantizer.train(rows.view(), Resources(options)), OutOfMemory);
  EXPECT_EQ(quantizer.values(), before);
}

// Without the check too, and no message then advises to switch it off.
TEST(LocalSearchQuantizer, TrainingRefusesRowsThatAreNotFiniteInAnyCase) {
  auto rows = make_floats(Shape::gaussian, 700, 6, 1);
  rows.row(42)[3] = NAN;
  const auto expect_refused = [&](auto&& quantizer) {
    try {
      quantizer.train(rows.view());
      FAIL();
    } catch (const InvalidArgument& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("row 42"), std::string::npos) << text;
      EXPECT_EQ(text.find("check_finite"), std::string::npos) << text;
    }
  };
  for (const AdditiveStart start : {AdditiveStart::opq, AdditiveStart::residual, AdditiveStart::random}) {
    LocalSearchParams params = small_params();
    params.train_start = start;
    params.check_finite = false;
    expect_refused(LocalSearchQuantizer(params));
  }
  expect_refused(ResidualQuantizer({.codebooks = 2, .bits = 4, .check_finite = false}));
  rows.row(42)[3] = -3e38f;  // finite, but no residual of it is
  expect_refused(ResidualQuantizer({.codebooks = 2, .bits = 4}));
  expect_refused(LocalSearchQuantizer(small_params()));
}

// |x - sum of codewords|^2 in float64.
std::vector<double> exact_errors(const LocalSearchQuantizer& quantizer, const Matrix<float>& rows, int64_t rounds) {
  const LocalSearchParams& params = quantizer.params();
  std::vector<uint8_t> codes(static_cast<size_t>(rows.rows * quantizer.code_bytes()));
  quantizer.encode(rows.view(), MutableMatrixView(codes.data(), rows.rows, quantizer.code_bytes()), {.rounds = rounds});
  const std::vector<float> values = quantizer.values();
  const Codebooks books{values.data(), params.codebooks, params.bits, rows.cols};
  std::vector<double> errors;
  for (int64_t i = 0; i < rows.rows; ++i) {
    std::vector<uint8_t> own;
    for (int64_t k = 0; k < params.codebooks; ++k) {
      own.push_back(static_cast<uint8_t>(sub_code(codes.data() + i * quantizer.code_bytes(), k, params.bits)));
    }
    double sum = 0;
    for (const double r : reference::residual(books, rows.row(i), own.data(), -1)) sum += r * r;
    errors.push_back(sum);
  }
  return errors;
}

// The mean is in one book alone, and makes neither the penalty of codewords large nor the grid of the search coarse.
TEST(LocalSearchQuantizer, AMeanFarFromTheSpreadChangesLittle) {
  auto rows = make_floats(Shape::gaussian, 1500, 8, 3);
  LocalSearchParams params = small_params();
  params.codebooks = 4;
  const auto mean_error = [&](LocalSearchQuantizer& quantizer) {
    quantizer.train(rows.view());
    const std::vector<double> some = exact_errors(quantizer, rows, 4);
    const std::vector<double> more = exact_errors(quantizer, rows, 8);
    double sum = 0;
    for (size_t i = 0; i < some.size(); ++i) {
      EXPECT_LE(more[i], some[i] * (1 + 1e-4)) << i;  // more rounds never raise it
      sum += more[i];
    }
    return sum / static_cast<double>(some.size());
  };
  LocalSearchQuantizer centred(params);
  const double expected = mean_error(centred);
  for (const float mean : {1e3f, 1e5f, -1e5f}) {
    SCOPED_TRACE(mean);
    auto before = rows;
    for (float& value : rows.values) value += mean;
    LocalSearchQuantizer moved(params);
    EXPECT_LT(mean_error(moved), 1.1 * expected);
    rows = before;
  }
}

TEST(AdditiveQuantizers, LookupTablesAddUpToInnerProducts) {
  const auto rows = make_floats(Shape::gaussian, 700, 6, 1);
  const auto expect_sums = [&](const auto& quantizer) {
    std::vector<uint8_t> codes(1400);
    quantizer.encode(rows.view(), MutableMatrixView(codes.data(), 700, 2));
    Matrix<float> back(700, 6);
    quantizer.decode(MatrixView(codes.data(), 700, 2), MutableMatrixView(back.row(0), 700, 6));
    std::vector<float> table(48);
    const MutableMatrixView out(table.data(), 1, 48);
    quantizer.lookup_table(rows.view().slice(3, 1), Metric::inner_product, out);
    const std::vector<float> words = quantizer.values();
    for (int64_t e = 0; e < 48; ++e) {
      ASSERT_EQ(table[static_cast<size_t>(e)],
                0.0f - canonical_pair<KeyKind::inner_product>(rows.row(3), words.data() + e * 6, 6));
    }
    for (int64_t i = 0; i < 700; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < 3; ++k)
        sum += static_cast<double>(table[static_cast<size_t>(16 * k + sub_code(codes.data() + 2 * i, k, 4))]);
      const double product = -static_cast<double>(canonical_pair<KeyKind::inner_product>(rows.row(3), back.row(i), 6));
      ASSERT_NEAR(sum, product, 1e-5);
    }
    EXPECT_THROW(quantizer.lookup_table(rows.view().slice(3, 1), Metric::sqeuclidean, out), Unsupported);
  };
  LocalSearchQuantizer local(small_params());
  local.train(rows.view());
  expect_sums(local);
  ResidualQuantizer residual({.codebooks = 3, .bits = 4});
  residual.train(rows.view());
  expect_sums(residual);
}

TEST(AdditiveQuantizers, DecodingRefusesBitsBehindTheLastCode) {
  const auto rows = make_floats(Shape::gaussian, 700, 6, 1);
  LocalSearchQuantizer local(small_params());  // 12 bits of 2 bytes
  local.train(rows.view());
  ResidualQuantizer residual({.codebooks = 3, .bits = 4});
  residual.train(rows.view());
  const auto expect_refused = [&](const auto& quantizer) {
    std::vector<uint8_t> codes(1400);
    std::vector<float> back(4200);
    const MutableMatrixView out(back.data(), 700, 6);
    quantizer.encode(rows.view(), MutableMatrixView(codes.data(), 700, 2));
    EXPECT_NO_THROW(quantizer.decode(MatrixView(codes.data(), 700, 2), out));
    codes[2 * 13 + 1] |= 0x10;
    try {
      quantizer.decode(MatrixView(codes.data(), 700, 2), out);
      FAIL();
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("code 13"), std::string::npos) << error.what();
    }
  };
  expect_refused(local);
  expect_refused(residual);
}

TEST(LocalSearchQuantizer, WarnsOfFewRows) {
  std::vector<std::string> lines;
  ResourceOptions options;
  options.log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) lines.emplace_back(text);
  };
  const auto rows = make_floats(Shape::gaussian, 100, 6, 1);
  LocalSearchQuantizer quantizer(small_params());
  quantizer.train(rows.view(), Resources(options));
  ASSERT_EQ(lines.size(), 1u);  // none of the product codes that it begins with
  EXPECT_NE(lines[0].find("624 or more"), std::string::npos) << lines[0];
}

TEST(BeamSearch, EqualsThePlainSearch) {
  for (const auto& [shape, beam] :
       {std::pair(Shape::gaussian, 1), std::pair(Shape::gaussian, 3), std::pair(Shape::gaussian, 10),
        std::pair(Shape::gaussian, 64), std::pair(Shape::near_duplicates, 4), std::pair(Shape::far_mean, 4),
        std::pair(Shape::all_equal, 5), std::pair(Shape::huge, 3), std::pair(Shape::tiny, 3)}) {
    auto words = make_floats(shape, 4 * 8, 5, 2);
    const Codebooks books{words.row(0), 4, 3, 5};
    const auto rows = make_floats(shape, 30, 5, 3);
    std::vector<uint8_t> codes(120);
    encode_beam(books, beam, rows.view(), codes.data(), with_threads(2));
    for (int64_t i = 0; i < 30; ++i) {
      std::vector<std::vector<uint8_t>> paths = {{}};
      for (int64_t k = 0; k < 4; ++k) {
        std::vector<std::tuple<float, size_t, std::vector<uint8_t>>> next;
        for (size_t p = 0; p < paths.size(); ++p) {
          std::vector<float> r(5);
          path_residual(books, k, rows.row(i), paths[p].data(), r.data());
          for (int64_t j = 0; j < 8; ++j) {
            std::vector<uint8_t> path = paths[p];
            path.push_back(static_cast<uint8_t>(j));
            next.emplace_back(canonical_pair<KeyKind::squared_l2>(r.data(), books.word(k, j), 5), p, path);
          }
        }
        std::sort(next.begin(), next.end());
        next.resize(std::min<size_t>(next.size(), static_cast<size_t>(beam)));
        paths.clear();
        for (const auto& one : next) paths.push_back(std::get<2>(one));
      }
      EXPECT_EQ(paths[0], std::vector<uint8_t>(codes.begin() + 4 * i, codes.begin() + 4 * i + 4)) << beam;
    }
  }
}

TEST(ResidualQuantizer, AWiderBeamIsNearerAndTrainingReproducible) {
  const auto rows = make_floats(Shape::gaussian, 700, 8, 5);
  std::vector<double> errors;
  for (const int64_t beam : {1, 8}) {
    ResidualQuantizer quantizer({4, 4, beam, 1, true});
    quantizer.train(rows.view(), with_threads(2));
    ResidualQuantizer again({4, 4, beam, 1, true});
    again.train(rows.view(), with_threads(1));
    EXPECT_EQ(quantizer.values(), again.values());
    ASSERT_EQ(quantizer.code_bytes(), 2);
    std::vector<uint8_t> codes(1400);
    quantizer.encode(rows.view(), MutableMatrixView(codes.data(), 700, 2));
    Matrix<float> back(700, 8);
    quantizer.decode(MatrixView(codes.data(), 700, 2), MutableMatrixView(back.row(0), 700, 8));
    double sum = 0;
    for (size_t i = 0; i < back.values.size(); ++i) {
      sum += std::pow(static_cast<double>(back.values[i]) - static_cast<double>(rows.values[i]), 2);
    }
    errors.push_back(sum);
  }
  EXPECT_LT(errors[1], errors[0]);
  EXPECT_THROW(ResidualQuantizer({4, 4, 0, 1, true}), InvalidArgument);
  EXPECT_THROW(ResidualQuantizer({0, 4, 5, 1, true}), InvalidArgument);
  ResidualQuantizer few({2, 8, 5, 0, true});
  EXPECT_THROW(few.train(MatrixView(rows.row(0), 255, 8)), InvalidArgument);
}

}  // namespace
}  // namespace kith
