// The codes that walks go by, and the order of rows in a graph.
#include "graph/search/graph/walk_coder.hpp"

#include "graph/search/graph/place_order.hpp"
#include "index/index_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

std::vector<int8_t> coded(const WalkCoder& coder, const MatrixView& rows, int64_t* clipped = nullptr) {
  std::vector<int8_t> codes(static_cast<size_t>(rows.rows() * coder.place_bytes()));
  const int64_t cut = coder.encode_all(rows, reinterpret_cast<std::byte*>(codes.data()), on_cpu());
  if (clipped != nullptr) *clipped = cut;
  return codes;
}

TEST(WalkCoder, TakesBytesAsTheyAre) {
  const auto bytes = reference::make_bytes(40, 19, 1);
  const WalkCoder coder = WalkCoder::choose(bytes.view(), Metric::l2, 0, on_cpu());
  ASSERT_EQ(coder.place_bytes(), 32);
  const std::vector<int8_t> codes = coded(coder, bytes.view());
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t c = 0; c < 32; ++c) {
      const int value = c < 19 ? int{bytes.row(i)[c]} - 128 : 0;
      ASSERT_EQ(int{codes[static_cast<size_t>(i * 32 + c)]}, value);
    }
  }
}

TEST(WalkCoder, RoundsFloatsByOneStepAndCountsWhatIsClipped) {
  auto rows = make_floats(Shape::far_mean, 3000, 16, 1);
  rows.row(7)[3] += 1e6F;
  rows.row(8)[3] -= 1e6F;
  const WalkCoder coder = WalkCoder::choose(rows.view(), Metric::l2, 0, on_cpu());
  int64_t clipped = 0;
  const std::vector<int8_t> codes = coded(coder, rows.view(), &clipped);
  EXPECT_GE(clipped, 2);
  EXPECT_LE(clipped, 3000 * 16 / 500);
  EXPECT_EQ(codes[7 * 16 + 3], 127);
  EXPECT_EQ(codes[8 * 16 + 3], -127);
  int64_t off = 0;
  for (int64_t i = 0; i < 3000; ++i) {
    for (int64_t c = 0; c < 16; ++c) {
      const double value = coder.offsets()[static_cast<size_t>(c)] +
                           static_cast<double>(coder.step()) * codes[static_cast<size_t>(i * 16 + c)];
      off += std::abs(value - rows.row(i)[c]) > 0.51 * coder.step() ? 1 : 0;
    }
  }
  EXPECT_LE(off, clipped);
}

TEST(WalkCoder, AFarQueryKeepsItsDirection) {
  const auto rows = make_floats(Shape::gaussian, 1000, 16, 1);
  const WalkCoder coder = WalkCoder::choose(rows.view(), Metric::l2, 0, on_cpu());
  std::vector<std::byte> memory(static_cast<size_t>(WalkCoder::query_bytes(16)) + 64);
  auto* const aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  for (const float times : {1.0F, 10.0F, 1e6F, 1e30F}) {
    auto query = make_floats(Shape::gaussian, 1, 16, 2);
    for (float& value : query.values) value *= times;
    const WalkQuery made = coder.query(query.view(), 0, WalkCoder::query_room(aligned, 16));
    EXPECT_EQ(made.code.bytes == nullptr, times > 1);
    double dot = 0;
    double a = 0;
    double b = 0;
    for (int64_t c = 0; c < 16; ++c) {
      const double word = made.code.words[c];
      const double value = static_cast<double>(query.row(0)[c]) - coder.offsets()[static_cast<size_t>(c)];
      dot += word * value;
      a += word * word;
      b += value * value;
    }
    EXPECT_GT(dot / std::sqrt(a) / std::sqrt(b), 0.999);
  }
}

TEST(WalkCoder, RowsWithoutSpreadAndZeroVectorsHaveCodes) {
  for (const Shape shape : {Shape::all_equal, Shape::with_zeros, Shape::tiny, Shape::huge}) {
    SCOPED_TRACE(name_of(shape));
    const auto rows = make_floats(shape, 300, 5, 1);
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
      const WalkCoder coder = WalkCoder::choose(rows.view(), metric, 0, on_cpu());
      EXPECT_GT(coder.step(), 0);
      EXPECT_TRUE(std::isfinite(coder.step()));
      coded(coder, rows.view());
    }
  }
}

// One step for all clusters is coarse within one. The rows of a sample, of which few share a cluster, do not tell.
TEST(WalkCoder, RowsOfFarClustersHaveNoCodesWhereOneStepIsTooCoarse) {
  const auto chosen_for = [](int64_t clusters, int64_t size, float far) {
    auto rows = make_floats(Shape::gaussian, clusters * size, 4, 1);
    const auto centres = make_floats(Shape::gaussian, clusters, 4, 2);
    for (int64_t i = 0; i < rows.rows; ++i) {
      for (int64_t c = 0; c < 4; ++c) rows.row(i)[c] += far * centres.row(i / size)[c];
    }
    return WalkCoder::choose(rows.view(), Metric::l2, 0, on_cpu());
  };
  EXPECT_FALSE(chosen_for(40, 1000, 40).has_codes());
  EXPECT_TRUE(chosen_for(40, 1000, 3).has_codes());
}

TEST(PlaceOrder, EqualRowsShareAPlaceInTheOrderOfCells) {
  const int64_t count = 500;
  std::vector<int8_t> rows(static_cast<size_t>(count * 16), 0);
  std::vector<uint32_t> cells(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    rows[static_cast<size_t>(i * 16)] = static_cast<int8_t>(i % 90);
    cells[static_cast<size_t>(i)] = static_cast<uint32_t>(i % 90 % 7);
  }
  const PlaceOrder order(reinterpret_cast<const std::byte*>(rows.data()), 16, count, cells.data(), on_cpu());
  ASSERT_EQ(order.places(), 90);
  std::set<uint32_t> seen;
  std::pair<uint32_t, uint32_t> last{0, 0};
  for (uint32_t place = 0; place < 90; ++place) {
    const uint32_t first = order.first_row(place);
    const std::pair now{cells[first], first};
    EXPECT_TRUE(place == 0 || last < now);
    last = now;
    int64_t before = -1;
    order.view().visit(place, [&](uint32_t row) {
      EXPECT_GT(int64_t{row}, before);
      before = row;
      EXPECT_EQ(row % 90, first % 90);
      seen.insert(row);
    });
  }
  EXPECT_EQ(std::ssize(seen), count);
}

TEST(PlaceOrder, ByFirstRowIsThatOfOneCell) {
  for (const int64_t count : {1, 2, 500, 20000}) {
    for (const int64_t different : {int64_t{1}, int64_t{90}, count}) {
      std::vector<int8_t> rows(static_cast<size_t>(count * 16), 0);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t value = i * 7919 % different;
        std::memcpy(rows.data() + i * 16, &value, sizeof(value));
      }
      const auto* const bytes = reinterpret_cast<const std::byte*>(rows.data());
      const std::vector<uint32_t> one_cell(static_cast<size_t>(count), 0);
      const PlaceOrder expected(bytes, 16, count, one_cell.data(), on_cpu());
      const PlaceOrder order = PlaceOrder::by_first_row(bytes, 16, count, on_cpu());
      ASSERT_EQ(order.places(), expected.places());
      EXPECT_TRUE(std::equal(order.offsets().begin(), order.offsets().end(), expected.offsets().begin()));
      EXPECT_TRUE(std::equal(order.rows().begin(), order.rows().end(), expected.rows().begin()));
    }
  }
}

}  // namespace
}  // namespace kith
