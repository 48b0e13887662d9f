// Codes by local search, in every form and split, against the plain algorithm.
#include "quantize/additive/additive_encoding.hpp"

#include <kith/error.hpp>

#include "kernels/forced_target.hpp"
#include "quantize/additive/local_search.hpp"
#include "quantize/additive/search_books.hpp"
#include "reference/additive.hpp"
#include "reference/additive_cases.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::Matrix;
using reference::Shape;

using Case = reference::AdditiveCase;

// On the grid, as trained codebooks are.
Case make_case(Shape shape, int64_t books, int bits, int64_t cols, int64_t rows) {
  Case made = reference::make_additive_case(shape, books, bits, cols, rows);
  round_to_grid(made.words.row(0), books, bits, cols);
  made.books.values = made.words.row(0);
  return made;
}

AdditiveEncoding encoding_of(SearchForm form, CodeStart start, int64_t rounds) {
  return reference::additive_encoding(start, rounds, form);
}

struct Encoded {
  std::vector<uint8_t> codes;
  std::vector<float> costs;
  bool operator==(const Encoded&) const = default;
};

Encoded encode(const Case& given, const AdditiveEncoding& encoding, const Resources& resources = Resources(),
               std::vector<uint8_t> start = {}) {
  Encoded out{std::move(start), std::vector<float>(static_cast<size_t>(given.rows.rows))};
  out.codes.resize(static_cast<size_t>(given.rows.rows * given.books.books));
  encode_additive(given.books, encoding, given.rows.view(), out.codes.data(), out.costs.data(), resources);
  return out;
}

// From drawn codes, on codebooks and rows as the grid has them.
Encoded expected(const Case& given, const LocalSearchPlan& plan) {
  const SearchBooks search(given.books, Resources());
  Encoded out;
  for (int64_t i = 0; i < given.rows.rows; ++i) {
    std::vector<float> row(given.rows.row(i), given.rows.row(i) + given.rows.cols);
    search.move_row(row.data());
    std::vector<uint8_t> codes(static_cast<size_t>(given.books.books));
    draw_codes(plan.seed, i, given.books.books, given.books.bits, codes.data());
    out.costs.push_back(reference::local_search(search.books(), row.data(), i, plan, codes.data()));
    out.codes.insert(out.codes.end(), codes.begin(), codes.end());
  }
  return out;
}

constexpr SearchForm kForms[] = {SearchForm::tables, SearchForm::products, SearchForm::direct};

TEST(AdditiveEncoding, EveryFormAndInstructionSetEqualsThePlainAlgorithm) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(shape);
    const Case given = make_case(shape, 4, 5, 19, 33);
    const AdditiveEncoding encoding = encoding_of(SearchForm::tables, CodeStart::random, 3);
    const Encoded plain = expected(given, encoding.search);
    for (const std::string& target : targets_for_next_case()) {
      SCOPED_TRACE(target);
      const ForcedTarget forced(target);
      for (const SearchForm form : kForms) {
        SCOPED_TRACE(static_cast<int>(form));
        EXPECT_EQ(encode(given, encoding_of(form, CodeStart::random, 3)), plain);
      }
    }
  }
}

// Most rounds come to codes that earlier ones ended with, and are cut short.
TEST(AdditiveEncoding, ManyRoundsThatComeBackEqualThePlainAlgorithm) {
  for (const auto& [books, bits] : {std::pair<int64_t, int>{3, 3}, {2, 5}, {9, 1}}) {
    for (const Shape shape : {Shape::gaussian, Shape::near_duplicates}) {
      const Case given = make_case(shape, books, bits, 7, 40);
      for (const bool random_order : {false, true}) {
        AdditiveEncoding encoding = encoding_of(SearchForm::tables, CodeStart::random, 30);
        encoding.search.perturbed = 2;
        encoding.search.sweeps = 3;
        encoding.search.random_order = random_order;
        EXPECT_EQ(encode(given, encoding), expected(given, encoding.search)) << books << " books, " << shape;
      }
    }
  }
}

TEST(LocalMinima, HoldTheBestAndTheLatest) {
  constexpr int64_t kBooks = 3;
  LocalMinima minima(kBooks, 2, Resources());
  minima.clear();
  const auto holds = [&](int64_t row, std::array<uint8_t, kBooks> codes) {
    return minima.holds(row, codes.data(), minima.mark_of(codes.data()));
  };
  const auto add = [&](std::array<uint8_t, kBooks> codes) {
    minima.add(1, codes.data(), minima.mark_of(codes.data()));
  };
  const auto add_best = [&](std::array<uint8_t, kBooks> codes, bool known) {
    minima.add_best(1, codes.data(), minima.mark_of(codes.data()), known);
  };
  EXPECT_FALSE(holds(1, {0, 0, 0}));  // nothing yet
  add_best({9, 9, 9}, true);
  for (uint8_t i = 1; i <= 100; ++i) add({i, 0, 0});
  EXPECT_TRUE(holds(1, {9, 9, 9}));  // whatever came after
  EXPECT_TRUE(holds(1, {100, 0, 0}));
  EXPECT_FALSE(holds(1, {1, 0, 0}));
  EXPECT_FALSE(holds(0, {100, 0, 0}));  // another row's
  add_best({8, 8, 8}, false);
  EXPECT_FALSE(holds(1, {8, 8, 8}));
  EXPECT_FALSE(holds(1, {0, 0, 0}));
  EXPECT_TRUE(holds(1, {9, 9, 9}));  // as any other
  add_best({0, 0, 0}, true);
  EXPECT_TRUE(holds(1, {0, 0, 0}));
}

// Squares of such values are a few of f32's smallest steps, and many costs are equal.
TEST(AdditiveEncoding, CostsBelowTheNormalRangeOfFloats) {
  for (const CodeStart start : {CodeStart::random, CodeStart::greedy}) {
    const Case given = make_case(Shape::tiny, 4, 6, 19, 140);
    const Encoded direct = encode(given, encoding_of(SearchForm::direct, start, 2));
    EXPECT_EQ(encode(given, encoding_of(SearchForm::tables, start, 2)), direct);
    EXPECT_EQ(encode(given, encoding_of(SearchForm::products, start, 2)), direct);
  }
}

TEST(AdditiveEncoding, TheMendedSearchEndsLowerThanThePrintedOne) {
  const Case given = make_case(Shape::gaussian, 4, 5, 12, 60);
  const AdditiveEncoding encoding = encoding_of(SearchForm::tables, CodeStart::random, 4);
  const Encoded mended = encode(given, encoding);
  double printed = 0;
  for (int64_t i = 0; i < given.rows.rows; ++i) {
    std::vector<uint8_t> codes(4);
    draw_codes(encoding.search.seed, i, 4, 5, codes.data());
    printed += static_cast<double>(
        reference::local_search_as_printed(given.books, given.rows.row(i), i, encoding.search, codes.data()));
  }
  double sum = 0;
  for (const float cost : mended.costs) sum += static_cast<double>(cost);
  EXPECT_LT(sum, 0.95 * printed);
}

TEST(AdditiveEncoding, FormsAgreeOnShapesStartsAndOrders) {
  for (const auto& [books, bits, cols, rows] : {std::array<int64_t, 4>{1, 8, 8, 70},
                                                {7, 8, 16, 65},
                                                {15, 4, 24, 129},
                                                {2, 6, 1, 64},
                                                {3, 1, 5, 9},
                                                {5, 7, 960, 3},
                                                {6, 8, 33, 1}}) {
    SCOPED_TRACE(::testing::Message() << books << " books of " << bits << " bits, " << cols << " columns");
    const Case given = make_case(Shape::gaussian, books, static_cast<int>(bits), cols, rows);
    for (const CodeStart start : {CodeStart::random, CodeStart::greedy}) {
      for (const bool random_order : {false, true}) {
        std::vector<Encoded> found;
        for (const SearchForm form : kForms) {
          AdditiveEncoding encoding = encoding_of(form, start, 2);
          encoding.search.perturbed = std::min<int64_t>(books, 2);
          encoding.search.random_order = random_order;
          found.push_back(encode(given, encoding));
        }
        EXPECT_EQ(found[0], found[2]);
        EXPECT_EQ(found[1], found[2]);
      }
    }
  }
}

TEST(AdditiveEncoding, FormsAgreeOnHardCases) {
  for (const auto& [name, given] : reference::hard_additive_cases()) {
    SCOPED_TRACE(name);
    for (const CodeStart start : {CodeStart::greedy, CodeStart::random}) {
      const Encoded direct = encode(given, encoding_of(SearchForm::direct, start, 1));
      for (const SearchForm form : {SearchForm::tables, SearchForm::products}) {
        const Encoded found = encode(given, encoding_of(form, start, 1));
        EXPECT_EQ(found.codes, direct.codes);
        for (size_t i = 0; i < direct.costs.size(); ++i) {
          if (direct.costs[i] != direct.costs[i]) continue;
          EXPECT_EQ(found.costs[i], direct.costs[i]) << i;
        }
      }
    }
  }
}

TEST(AdditiveEncoding, TheSameBytesForAnyThreadsBatchAndLimit) {
  const Case given = make_case(Shape::gaussian, 5, 8, 20, 1500);
  const AdditiveEncoding encoding = encoding_of(SearchForm::automatic, CodeStart::greedy, 4);
  const Encoded whole = encode(given, encoding);
  for (const int threads : {1, 3}) {
    ResourceOptions options;
    options.threads = threads;
    EXPECT_EQ(encode(given, encoding, Resources(options)), whole);
    const Resources unlimited(options);
    options.host_memory_limit = additive_encoding_footprint(given.books, SearchForm::tables, 100, unlimited).host;
    EXPECT_EQ(encode(given, encoding, Resources(options)), whole);
    options.host_memory_limit = additive_encoding_footprint(given.books, SearchForm::products, 8, unlimited).host;
    EXPECT_EQ(encode(given, encoding, Resources(options)), whole);
  }
  // Row by row, by their numbers.
  for (const int64_t row : {0, 1, 63, 64, 777, 1499}) {
    AdditiveEncoding one = encoding;
    one.first_row = row;
    std::vector<uint8_t> codes(5);
    float cost = 0;
    encode_additive(given.books, one, MatrixView(given.rows.row(row), 1, 20), codes.data(), &cost, Resources());
    EXPECT_EQ(codes, std::vector<uint8_t>(whole.codes.begin() + row * 5, whole.codes.begin() + row * 5 + 5));
    EXPECT_EQ(cost, whole.costs[static_cast<size_t>(row)]);
  }
}

// A block whose rows take every form, in several slices: rows beyond the grid, and rows whose norms the tables cannot
// decide.
TEST(AdditiveEncoding, RowsOfAllFormsInOneBlock) {
  Case given = make_case(Shape::gaussian, 3, 8, 10, 700);
  for (int64_t i = 0; i < 700; ++i) {
    const float scale = i % 7 == 3 ? 1e6f : i % 11 == 5 ? 9.0f : 1.0f;
    for (int64_t c = 0; c < 10; ++c) given.rows.row(i)[c] *= scale;
  }
  const Encoded direct = encode(given, encoding_of(SearchForm::direct, CodeStart::greedy, 3));
  ResourceOptions options;
  options.threads = 1;
  for (const int64_t block : {0, 1, 191, 193, 700}) {
    for (const SearchForm form : {SearchForm::tables, SearchForm::products}) {
      AdditiveEncoding encoding = encoding_of(form, CodeStart::greedy, 3);
      encoding.block_rows = block;
      EXPECT_EQ(encode(given, encoding, Resources(options)), direct) << block;
    }
  }
  // From given codes, which stay with their rows.
  AdditiveEncoding more = encoding_of(SearchForm::tables, CodeStart::given, 3);
  more.search.from_round = 3;
  EXPECT_EQ(encode(given, more, Resources(options), direct.codes),
            encode(given, encoding_of(SearchForm::direct, CodeStart::greedy, 6)));
}

TEST(AdditiveEncoding, ALongSearchOfOneBlockCanBeCancelled) {
  const Case given = make_case(Shape::gaussian, 2, 4, 6, 3);
  for (const SearchForm form : kForms) {
    ResourceOptions options;
    options.threads = 1;
    options.interrupted = [] { return true; };
    EXPECT_THROW(encode(given, encoding_of(form, CodeStart::greedy, 2'000'000), Resources(options)), Cancelled);
  }
}

TEST(AdditiveEncoding, RoundsContinueAndNeverRaiseACost) {
  const Case given = make_case(Shape::gaussian, 6, 8, 24, 200);
  Encoded before = encode(given, encoding_of(SearchForm::automatic, CodeStart::greedy, 0));
  for (const int64_t rounds : {1, 2, 4, 8, 16}) {
    const Encoded now = encode(given, encoding_of(SearchForm::automatic, CodeStart::greedy, rounds));
    for (size_t i = 0; i < now.costs.size(); ++i) ASSERT_LE(now.costs[i], before.costs[i]);
    AdditiveEncoding second = encoding_of(SearchForm::automatic, CodeStart::given, rounds);
    second.search.from_round = rounds;
    EXPECT_EQ(encode(given, second, Resources(), now.codes),
              encode(given, encoding_of(SearchForm::automatic, CodeStart::greedy, 2 * rounds)));
    before = now;
  }
}

TEST(AdditiveEncoding, OneBookGivesTheNearestCodeword) {
  const Case given = make_case(Shape::near_duplicates, 1, 8, 12, 90);
  const Encoded found = encode(given, encoding_of(SearchForm::tables, CodeStart::greedy, 0));
  const SearchBooks search(given.books, Resources());
  for (int64_t i = 0; i < 90; ++i) {
    std::vector<float> row(given.rows.row(i), given.rows.row(i) + 12);
    search.move_row(row.data());
    EXPECT_EQ(found.codes[static_cast<size_t>(i)], reference::best_code(search.books(), row.data(), nullptr, 0));
  }
}

TEST(AdditiveEncoding, TwoBooksComeNearTheBestOfAllPairs) {
  const Case given = make_case(Shape::gaussian, 2, 8, 6, 12);
  const Encoded found = encode(given, encoding_of(SearchForm::tables, CodeStart::greedy, 64));
  const SearchBooks search(given.books, Resources());
  int best_found = 0;
  for (int64_t i = 0; i < 12; ++i) {
    std::vector<float> row(given.rows.row(i), given.rows.row(i) + 6);
    search.move_row(row.data());
    float least = INFINITY;
    for (int pair = 0; pair < 65536; ++pair) {
      const uint8_t codes[] = {static_cast<uint8_t>(pair / 256), static_cast<uint8_t>(pair % 256)};
      least = std::min(least, reference::cost(search.books(), row.data(), codes));
    }
    EXPECT_GE(found.costs[static_cast<size_t>(i)], least);
    best_found += found.costs[static_cast<size_t>(i)] == least;
  }
  EXPECT_GE(best_found, 9);
}

TEST(AdditiveEncoding, BooksOfDisjointColumnsAreAProductCode) {
  // Each book has values in four columns of its own: one greedy pass is the best there is.
  Case given = make_case(Shape::gaussian, 3, 8, 12, 100);
  for (int64_t k = 0; k < 3; ++k) {
    for (int64_t j = 0; j < 256; ++j) {
      for (int64_t c = 0; c < 12; ++c) {
        if (c / 4 != k) given.words.row(k * 256 + j)[c] = 0.0f;
      }
    }
  }
  const Encoded found = encode(given, encoding_of(SearchForm::tables, CodeStart::greedy, 0));
  EXPECT_EQ(encode(given, encoding_of(SearchForm::tables, CodeStart::greedy, 8)), found);
}

TEST(AdditiveEncoding, TiesGoToTheSmallerCode) {
  Case given = make_case(Shape::gaussian, 3, 6, 9, 40);
  for (int64_t k = 0; k < 3; ++k) {  // the second half repeats the first
    for (int64_t j = 0; j < 32; ++j) std::copy_n(given.words.row(k * 64 + j), 9, given.words.row(k * 64 + 32 + j));
  }
  for (const SearchForm form : kForms) {
    AdditiveEncoding encoding = encoding_of(form, CodeStart::greedy, 4);
    encoding.search.perturbed = 1;
    for (const uint8_t code : encode(given, encoding).codes) EXPECT_LT(code, 32);
  }
}

TEST(AdditiveEncoding, ManyChangedStepsByTablesAreNotLeftToProducts) {
  // What the fast form is for: rows near sums of codewords fit its tables.
  const Case given = make_case(Shape::gaussian, 7, 8, 32, 400);
  const auto form = [&](int64_t rows, int64_t limit) {
    ResourceOptions options;
    options.threads = 2;
    options.host_memory_limit = limit;
    return choose_search_form(given.books, LocalSearchPlan{}, rows, Resources(options));
  };
  EXPECT_EQ(form(400, int64_t{1} << 30), SearchForm::tables);
  EXPECT_EQ(form(2, int64_t{1} << 30), SearchForm::products);
  EXPECT_EQ(form(400, int64_t{1} << 20), SearchForm::products);
}

TEST(AdditiveEncoding, BytesAndHalvesAreTheirValues) {
  const Case floats = make_case(Shape::gaussian, 3, 8, 16, 30);
  Case given = floats;
  const auto bytes = reference::stored_as<int8_t>(floats.rows);
  for (size_t i = 0; i < bytes.values.size(); ++i) given.rows.values[i] = bytes.values[i];
  for (float& value : given.words.values) value *= 40;
  given.books.values = given.words.row(0);
  const AdditiveEncoding encoding = encoding_of(SearchForm::tables, CodeStart::greedy, 2);
  const Encoded as_floats = encode(given, encoding);
  Encoded as_bytes{std::vector<uint8_t>(90), std::vector<float>(30)};
  encode_additive(given.books, encoding, bytes.view(), as_bytes.codes.data(), as_bytes.costs.data(), Resources());
  EXPECT_EQ(as_bytes, as_floats);
}

}  // namespace
}  // namespace kith
