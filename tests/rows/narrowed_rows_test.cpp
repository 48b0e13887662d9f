// f64 becomes f32: what is subtracted first, what is refused, and what is warned of.
#include "rows/narrowed_rows.hpp"

#include <kith/error.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>
#include <kith/pairwise_distances.hpp>

#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kTimesCols = 3;

// An hour in seconds since 1970, which f32 rounds to two minutes, and places in a city.
std::vector<double> times(int64_t rows) {
  std::mt19937_64 random(1);
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kTimesCols; ++i) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    values.push_back(i % kTimesCols == 0 ? 1.7e9 + 3600 * share : 4.8e6 + 400 * share);
  }
  return values;
}

MatrixView view_of(const std::vector<double>& values) {
  return {values.data(), static_cast<int64_t>(values.size()) / kTimesCols, kTimesCols};
}

// What a call logs of rounding.
template <typename Call>
std::vector<std::string> told_of_rounding(const Call& call) {
  std::vector<std::string> told;
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 2;
  options.log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::precision) told.emplace_back(text);
  };
  call(Resources(options));
  return told;
}

Offset offset_for(const MatrixView& rows, Metric metric) {
  return NarrowedRows("x", rows, metric, Resources()).offset();
}

TEST(NarrowedRows, AnOffsetIsAValueOfEachColumn) {
  const std::vector<double> x = times(600);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::l1, Metric::linf}) {
    const Offset offset = offset_for(view_of(x), metric);
    ASSERT_NE(offset, nullptr);
    for (size_t col = 0; col < 3; ++col) {
      bool found = false;
      for (size_t i = col; i < x.size(); i += 3) found |= x[i] == (*offset)[col];
      EXPECT_TRUE(found) << col;
    }
  }
  for (const Metric metric : {Metric::cosine, Metric::inner_product, Metric::chi_square}) {
    EXPECT_EQ(offset_for(view_of(x), metric), nullptr) << name_of(metric);
  }
  EXPECT_EQ(offset_for(view_of({}), Metric::l2), nullptr);
  const double few[] = {0.0, 1e9 + 1, 1.0, 1e9 + 2};
  EXPECT_THAT(*offset_for({few, 2, 2}, Metric::l2), ::testing::ElementsAre(0, 1e9 + 1));
}

TEST(NarrowedRows, ValuesAreSubtractedInDouble) {
  const std::vector<double> x = times(1000);
  const NarrowedRows narrowed("x", view_of(x), Metric::l2, Resources());
  const auto* const values = static_cast<const float*>(narrowed.view().data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(x[i] - (*narrowed.offset())[i % 3]));
  // Other types lose a given offset, too; one of another length is left to whoever compares columns.
  const std::vector<float> rounded(x.begin(), x.end());
  const MatrixView floats(rounded.data(), 1000, 3);
  const NarrowedRows shifted("x", floats, narrowed.offset(), OfRounding::silent, Resources());
  const auto* const moved = static_cast<const float*>(shifted.view().data());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(moved[i], static_cast<float>(static_cast<double>(rounded[i]) - (*narrowed.offset())[i % 3]));
  }
  const NarrowedRows other("x", {rounded.data(), 1500, 2}, narrowed.offset(), OfRounding::silent, Resources());
  EXPECT_EQ(other.view().data(), rounded.data());
  EXPECT_EQ(NarrowedRows("x", floats, Metric::l2, Resources()).view().data(), rounded.data());
}

TEST(NarrowedRows, EverydayValuesAreRoundedAlone) {
  const auto floats = reference::make_floats(reference::Shape::gaussian, 300, 5, 1);
  const std::vector<double> x(floats.values.begin(), floats.values.end());
  const NarrowedRows narrowed("x", {x.data(), 300, 5}, Metric::l2, Resources());
  EXPECT_EQ(narrowed.offset(), nullptr);
  const auto* const values = static_cast<const float*>(narrowed.view().data());
  EXPECT_TRUE(std::equal(floats.values.begin(), floats.values.end(), values));
}

TEST(NarrowedRows, ExactValuesStayUnlessDifferencesAreExactToo) {
  const std::vector<double> x{1e9, 1e9 + 64, static_cast<double>(0.1f)};
  EXPECT_EQ(offset_for({x.data(), 3, 1}, Metric::l2), nullptr);  // 0.1f - 1e9 would be rounded
  EXPECT_EQ(offset_for({x.data(), 2, 1}, Metric::l2)->at(0), 1e9);
}

TEST(NarrowedRows, RowsThatAreNotFiniteDoNotCount) {
  const std::vector<double> x = times(500);
  std::vector<double> broken(3, std::numeric_limits<double>::infinity());
  broken.insert(broken.end(), x.begin(), x.end());
  EXPECT_EQ(*offset_for(view_of(broken), Metric::l2), *offset_for(view_of(x), Metric::l2));
  const std::vector<double> nothing(3, std::nan(""));
  EXPECT_EQ(offset_for(view_of(nothing), Metric::l2), nullptr);
}

TEST(NarrowedRows, ANumberBeyondFloatIsNamed) {
  std::vector<double> x(15);
  x[10] = 1e300;
  try {
    (void)knn(view_of(x), view_of(x), {.k = 1});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "base holds 1e+300 in row 3, column 1, which is beyond float32's range of 3.4e38: scale the vectors");
  }
}

TEST(NarrowedRows, RoundingThatMayChangeAnswersIsToldOf) {
  const std::vector<double> x = times(600);
  const auto found = [&](Metric metric) {
    return told_of_rounding(
        [&](const Resources& on) { (void)knn(view_of(x), view_of(x), {.k = 1, .metric = metric}, on); });
  };
  EXPECT_THAT(found(Metric::l2), ::testing::IsEmpty());
  EXPECT_THAT(found(Metric::cosine), ::testing::ElementsAre(::testing::StartsWith("base: float32, in which Kith")));
}

TEST(NarrowedRows, NeighboursAreThoseOfTheDifferences) {
  const std::vector<double> x = times(400);
  const Neighbors found = knn(view_of(x), view_of(x), {.k = 2});
  for (int64_t i = 0; i < 400; ++i) {
    double nearest = HUGE_VAL;
    int64_t at = -1;
    for (int64_t j = 0; j < 400; ++j) {
      double sum = 0;
      for (int64_t col = 0; col < 3; ++col) {
        const double apart = x[static_cast<size_t>(3 * i + col)] - x[static_cast<size_t>(3 * j + col)];
        sum += apart * apart;
      }
      if (j != i && sum < nearest) nearest = sum, at = j;
    }
    ASSERT_EQ(found.ids(i)[0], i);
    ASSERT_EQ(found.ids(i)[1], at);
  }
  const MatrixBuffer all = pairwise_distances(view_of(x), view_of(x));
  EXPECT_EQ(reinterpret_cast<const float*>(all.view().row(7))[found.ids(7)[1]], found.distances(7)[1]);
}

TEST(NarrowedRows, ALimitThatIsNamedIsEnough) {
  const std::vector<double> x = times(4000);
  const auto search = [&](int64_t limit) {
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 2;
    options.host_memory_limit = limit;
    (void)knn(view_of(x), view_of(x), {.k = 3}, Resources(options));
  };
  int64_t named = 0;
  try {
    search(1);
  } catch (const OutOfMemory& error) {
    named = error.bytes_needed();
  }
  ASSERT_GT(named, 2 * 4000 * 3 * 4);
  EXPECT_NO_THROW(search(named));
  EXPECT_THROW(search(named - 1), OutOfMemory);
}

TEST(NarrowedRows, KMeansKeepsWhatItSubtracts) {
  std::vector<double> x;
  for (int i = 0; i < 300; ++i) x.push_back(1.7e9 + 90.0 * (i % 3) + 0.01 * i);
  const MatrixView rows(x.data(), 300, 1);
  KMeans model({.clusters = 3, .seed = 1});
  model.fit(rows);
  ASSERT_EQ(model.offset().size(), 1u);
  std::vector<int32_t> labels(300);
  model.predict(rows, labels.data(), nullptr);
  for (size_t i = 3; i < labels.size(); ++i) ASSERT_EQ(labels[i], labels[i % 3]);
  KMeans again({.clusters = 3, .seed = 1});
  again.restore(model.snapshot());
  EXPECT_EQ(again.offset(), model.offset());
  std::vector<float> plain(300);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(x[i] - 1.7e9);
  model.fit({plain.data(), 300, 1});  // another offset, or none, after the first
  EXPECT_TRUE(model.offset().empty());
}

}  // namespace
}  // namespace kith
