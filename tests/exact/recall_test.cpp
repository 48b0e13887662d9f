// Recall on small results counted by hand, and against a direct count on random ones.
#include <kith/recall.hpp>

#include <kith/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace kith {
namespace {

using ::testing::HasSubstr;

IdMatrixView view(const std::vector<int64_t>& ids, int64_t cols) {
  return {ids.data(), static_cast<int64_t>(ids.size()) / cols, cols};
}

template <typename Function>
std::string refusal(Function&& function) {
  try {
    function();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no InvalidArgument was thrown";
}

TEST(Recall, OneRecallCountsQueriesWhoseNearestIsAmongTheFirstR) {
  const std::vector<int64_t> found{7, 1, 2, /**/ 3, 4, 5, /**/ 9, 8, 6, /**/ 0, 1, 2};
  const std::vector<int64_t> truth{7, 0, /**/ 5, 3, /**/ 1, 9, /**/ 1, 0};
  EXPECT_DOUBLE_EQ(one_recall(view(found, 3), view(truth, 2), 1), 0.25);
  EXPECT_DOUBLE_EQ(one_recall(view(found, 3), view(truth, 2), 2), 0.5);
  EXPECT_DOUBLE_EQ(one_recall(view(found, 3), view(truth, 2), 3), 0.75);
}

TEST(Recall, KRecallIsTheShareOfTrueNeighboursInAnyOrder) {
  const std::vector<int64_t> found{1, 2, 3, /**/ 4, 5, 6};
  const std::vector<int64_t> truth{3, 1, 9, 2, /**/ 6, 5, 4, 0};
  EXPECT_DOUBLE_EQ(k_recall(view(found, 3), view(truth, 4), 3), 5.0 / 6.0);
  EXPECT_DOUBLE_EQ(k_recall(view(found, 3), view(truth, 4), 2), 2.0 / 4.0);
  EXPECT_DOUBLE_EQ(k_recall(view(found, 3), view(truth, 4), 1), 0.0);
}

TEST(Recall, AnIdFoundTwiceCountsOnceAndNobodyNever) {
  const std::vector<int64_t> found{5, 5, -1, -1};
  const std::vector<int64_t> truth{5, 6, 7, 8};
  EXPECT_DOUBLE_EQ(k_recall(view(found, 4), view(truth, 4), 4), 0.25);
  EXPECT_DOUBLE_EQ(one_recall(view(found, 4), view(truth, 4), 4), 1.0);
}

TEST(Recall, ATrueNeighbourThatIsNobodyIsRefusedWithItsRow) {
  const std::vector<int64_t> found{1, 2, /**/ 1, -1};
  const std::vector<int64_t> truth{1, 2, /**/ 1, -1};
  EXPECT_DOUBLE_EQ(k_recall(view(found, 2), view(truth, 2), 1), 1.0);
  const std::string text = refusal([&] { k_recall(view(found, 2), view(truth, 2), 2); });
  EXPECT_THAT(text, HasSubstr("row 1 of the true ids holds 1 neighbours"));
  const std::vector<int64_t> nobody{-1, -1, /**/ -1, -1};
  EXPECT_THAT(refusal([&] { one_recall(view(found, 2), view(nobody, 2), 1); }), HasSubstr("row 0 of the true ids"));
}

TEST(Recall, ATruthThatHoldsARowTwiceIsRefused) {
  const std::vector<int64_t> found{1, 2, 3, /**/ 1, 2, 3};
  const std::vector<int64_t> truth{1, 2, 3, /**/ 4, 5, 4};
  EXPECT_DOUBLE_EQ(k_recall(view(found, 3), view(truth, 3), 2), 0.5);
  EXPECT_THAT(refusal([&] { k_recall(view(found, 3), view(truth, 3), 3); }),
              HasSubstr("row 1 of the true ids holds 4 twice"));
}

TEST(Recall, WrongShapesAndRanksAreRefusedWithWhatIsAllowed) {
  const std::vector<int64_t> ids{0, 1, 2, 3, 4, 5};
  const IdMatrixView wide = view(ids, 3);
  const IdMatrixView tall = view(ids, 2);
  EXPECT_THAT(refusal([&] { k_recall(wide, tall, 1); }), HasSubstr("found ids have 2 rows and true ids 3"));
  EXPECT_THAT(refusal([&] { one_recall(wide, tall, 1); }), HasSubstr("found ids have 2 rows and true ids 3"));
  EXPECT_THAT(refusal([&] { k_recall(wide, wide, 0); }), HasSubstr("k = 0; allowed are 1 to 3"));
  EXPECT_THAT(refusal([&] { k_recall(wide, wide, 4); }), HasSubstr("k = 4; allowed are 1 to 3"));
  EXPECT_THAT(refusal([&] {
                k_recall(wide, {ids.data(), 2, 2}, 3);
              }),
              HasSubstr("allowed are 1 to 2, the columns of the true"));
  EXPECT_THAT(refusal([&] { one_recall(wide, wide, 4); }), HasSubstr("R = 4; allowed are 1 to 3"));
  EXPECT_THAT(refusal([&] { one_recall(wide, wide, -1); }), HasSubstr("R = -1"));
  EXPECT_THAT(refusal([&] { one_recall(wide, {nullptr, 2, 3}, 1); }), HasSubstr("a null pointer"));
  EXPECT_THAT(refusal([&] { one_recall(wide, {ids.data(), 2, 0}, 1); }), HasSubstr("allowed are 1 to 0"));
  EXPECT_THAT(refusal([&] { k_recall({}, {}, 1); }), HasSubstr("at least one query"));
  EXPECT_THAT(refusal([&] { k_recall({nullptr, -1, 3}, wide, 1); }), HasSubstr("-1 x 3"));
}

RC_GTEST_PROP(RecallProperty, EqualsADirectCount, ()) {
  const auto rows = *rc::gen::inRange<int64_t>(1, 8);
  const auto k = *rc::gen::inRange<int64_t>(1, 8);
  const auto found_cols = k + *rc::gen::inRange<int64_t>(0, 4);
  const auto true_cols = k + *rc::gen::inRange<int64_t>(0, 4);
  const auto ids = [](int64_t smallest, int64_t count) {
    return *rc::gen::container<std::vector<int64_t>>(static_cast<size_t>(count),
                                                     rc::gen::inRange<int64_t>(smallest, 12));
  };
  const std::vector<int64_t> found = ids(-1, rows * found_cols);
  std::vector<int64_t> truth;  // no row is there twice
  for (int64_t row = 0; row < rows; ++row) {
    const auto drawn =
        *rc::gen::unique<std::vector<int64_t>>(static_cast<size_t>(true_cols), rc::gen::inRange<int64_t>(0, 12));
    truth.insert(truth.end(), drawn.begin(), drawn.end());
  }

  int64_t shared = 0;
  int64_t nearest = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t* found_row = found.data() + row * found_cols;
    const int64_t* true_row = truth.data() + row * true_cols;
    const std::set<int64_t> found_set(found_row, found_row + k);
    for (const int64_t id : std::set<int64_t>(true_row, true_row + k))
      shared += static_cast<int64_t>(found_set.count(id));
    nearest += static_cast<int64_t>(found_set.count(true_row[0]));
  }
  RC_ASSERT(k_recall(view(found, found_cols), view(truth, true_cols), k) ==
            static_cast<double>(shared) / static_cast<double>(rows * k));
  RC_ASSERT(one_recall(view(found, found_cols), view(truth, true_cols), k) ==
            static_cast<double>(nearest) / static_cast<double>(rows));
}

}  // namespace
}  // namespace kith
