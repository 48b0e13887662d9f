#include "graph/build/cells/cell_ranks_cpu.hpp"

#include <kith/knn.hpp>

#include "exact/exact_check.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

// As the search of every vector among the centres finds them.
void expect_as_searched(const MatrixView& vectors, const MatrixView& centres, int64_t most, int threads) {
  const Resources resources = on_cpu(threads);
  const Neighbors found = knn(vectors, centres, {.k = most, .metric = Metric::l2, .check_finite = false}, resources);
  CellRanks ranks(centres, most, resources);
  ProgressMeter meter("cells", vectors.rows(), resources);
  std::atomic<int64_t> told{0};
  ranks.rank(vectors, meter, [&](int64_t vector, const uint32_t* cells) {
    ++told;
    for (int64_t i = 0; i < most; ++i) EXPECT_EQ(cells[i], found.ids(vector)[i]) << vector << " " << i;
  });
  EXPECT_EQ(told, vectors.rows());
}

TEST(CellRanks, AreThoseOfASearch) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 16, 45}) {
      const auto vectors = make_floats(shape, 150, cols, 3);
      const auto centres = make_floats(shape, 333, cols, 4);
      for (const int64_t most : {1, 7, 60, 333}) {
        SCOPED_TRACE(::testing::Message() << shape << " " << cols << " " << most);
        expect_as_searched(vectors.view(), centres.view(), most, 1);
      }
    }
  }
}

TEST(CellRanks, TakeBytesAndAnyThreads) {
  const auto vectors = reference::make_bytes(700, 33, 1);
  const auto centres = make_floats(Shape::gaussian, 200, 33, 4);
  for (const int threads : {1, 3}) expect_as_searched(vectors.view(), centres.view(), 40, threads);
}

// Tiles leave a product out for differences of whole numbers, with every instruction set, and for no others.
TEST(CellRanks, WholeNumbersAmongFarCentres) {
  const auto bytes = reference::make_bytes(100, 70, 1);
  auto others = make_floats(Shape::gaussian, 100, 70, 2);
  auto centres = make_floats(Shape::gaussian, 300, 70, 4);
  for (float& value : others.values) value = 100 + 40 * value;
  for (float& value : centres.values) value = 120.3f + 40 * value;
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    expect_as_searched(bytes.view(), centres.view(), 60, 1);
    expect_as_searched(others.view(), centres.view(), 60, 1);
  }
}

// Equal centres are ranked by their numbers, however many there are.
TEST(CellRanks, CentresThatTie) {
  auto centres = make_floats(Shape::gaussian, 400, 12, 4);
  for (int64_t i = 0; i < 400; ++i) std::copy_n(centres.row(i % 5), 12, centres.row(i));
  const auto vectors = make_floats(Shape::gaussian, 80, 12, 5);
  for (const int64_t most : {1, 30, 90, 399}) expect_as_searched(vectors.view(), centres.view(), most, 1);
}

TEST(CellRanks, ValuesThatAreNoNumbers) {
  auto centres = make_floats(Shape::gaussian, 70, 12, 4);
  auto vectors = make_floats(Shape::gaussian, 40, 12, 5);
  vectors.row(3)[2] = std::numeric_limits<float>::quiet_NaN();
  vectors.row(9)[0] = std::numeric_limits<float>::infinity();
  vectors.row(20)[1] = 1e30f;
  expect_as_searched(vectors.view(), centres.view(), 20, 1);
  centres.row(7)[5] = std::numeric_limits<float>::quiet_NaN();
  expect_as_searched(vectors.view(), centres.view(), 20, 1);
}

}  // namespace
}  // namespace kith
