// A new kind of index through Index: what a kind brings (prefix_index.hpp) and what every kind gets.
#include "index/index_check.hpp"
#include "index/prefix_index.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

MatrixView first_cols(const MatrixView& rows, int64_t cols) {
  return {rows.data(), rows.dtype(), {rows.rows(), cols, rows.row_stride()}};
}

template <typename Error, typename Call>
std::string text_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(IndexKind, AToyIsSearchedAndGrows) {
  const auto base = make_floats(Shape::gaussian, 500, 12, 1);
  const auto queries = make_floats(Shape::gaussian, 20, 12, 2);
  const int64_t kept[] = {3, 400, 77, 8};
  const RowFilter filter = RowFilter::rows(kept, 4);
  for (const int64_t cols : {1, 5, 12}) {
    Index index = make_prefix(cols);
    for (int64_t at = 0; at < 500; at += 125) index.add(base.view().slice(at, 125), Ownership::copy, on_cpu());
    EXPECT_EQ(index.size(), 500);
    EXPECT_EQ(index.dimension(), 12);
    EXPECT_EQ(index.bytes().host, 500 * cols * 4);
    EXPECT_EQ(index.device(), Device::cpu());
    const MatrixView short_queries = first_cols(queries.view(), cols);
    const MatrixView short_base = first_cols(base.view(), cols);
    for (const RowFilter& rows : {RowFilter(), filter}) {
      const Neighbors expected = knn(short_queries, short_base, {.k = 6, .filter = rows}, on_cpu());
      const Neighbors found = index.search(queries.view(), {.k = 6, .filter = rows}, on_cpu());
      EXPECT_EQ(std::memcmp(found.ids(), expected.ids(), 20 * 6 * sizeof(int64_t)), 0);
      EXPECT_EQ(std::memcmp(found.distances(), expected.distances(), 20 * 6 * sizeof(float)), 0);
      const RangeNeighbors near = range_search(short_queries, short_base, {.radius = 1, .filter = rows}, on_cpu());
      const RangeNeighbors in_range = index.range_search(queries.view(), {.radius = 1, .filter = rows}, on_cpu());
      ASSERT_EQ(in_range.size(), near.size());
      EXPECT_EQ(std::memcmp(in_range.ids(), near.ids(), static_cast<size_t>(near.size()) * sizeof(int64_t)), 0);
    }
  }
}

TEST(IndexKind, AToyHasVersions) {
  const auto base = make_floats(Shape::gaussian, 300, 4, 1);
  Index index = make_prefix(2);
  const Index copy = index;
  EXPECT_EQ(copy.search(base.view().slice(0, 1), {.k = 1}, on_cpu()).ids()[0], -1);
  EXPECT_EQ(copy.range_search(base.view().slice(0, 2), {.radius = 9}, on_cpu()).size(), 0);
  index.add(base.view().slice(0, 100), Ownership::copy, on_cpu());
  EXPECT_EQ(copy.size(), 100);
  // A search keeps the version that it began with: here it is followed by an add from inside the search.
  bool grown = false;
  const Resources growing = on_cpu().with_progress([&](const Progress&) {
    if (!grown) index.add(base.view().slice(100, 200), Ownership::copy, on_cpu());
    grown = true;
  });
  const Neighbors found = copy.search(base.view().slice(250, 1), {.k = 300}, growing);
  EXPECT_TRUE(grown);
  EXPECT_GE(found.ids()[99], 0);
  EXPECT_EQ(found.ids()[100], -1);
  EXPECT_EQ(copy.size(), 300);
  EXPECT_EQ(copy.search(base.view().slice(250, 1), {.k = 1}, on_cpu()).ids()[0], 250);
}

TEST(IndexKind, AnyKindRefusesWhatDoesNotFit) {
  const auto base = make_floats(Shape::gaussian, 50, 8, 1);
  Index index = make_prefix(3);
  index.add(base.view(), Ownership::copy, on_cpu());
  const auto refused = [&](const MatrixView& rows) {
    return text_of<InvalidArgument>([&] { index.add(rows, Ownership::copy, on_cpu()); });
  };
  EXPECT_THAT(refused(make_floats(Shape::gaussian, 5, 9, 1).view()), ::testing::HasSubstr("f32 of 9 columns were added"));
  EXPECT_THAT(refused(make_bytes(5, 8, 1).view()), ::testing::HasSubstr("u8 of 8 columns were added"));
  auto broken = make_floats(Shape::gaussian, 5, 8, 1);
  broken.row(2)[7] = NAN;
  EXPECT_THAT(refused(broken.view()), ::testing::HasSubstr("added row 2 "));
  EXPECT_EQ(index.size(), 50);
  EXPECT_THAT(text_of<InvalidArgument>([&] { index.search(first_cols(base.view(), 5), {.k = 2}, on_cpu()); }),
              ::testing::HasSubstr("5 columns and the index has 8"));
  EXPECT_THROW(index.search(base.view(), {.k = 0}, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.range_search(base.view(), {.radius = NAN}, on_cpu()), InvalidArgument);
  Index longer = make_prefix(9);
  EXPECT_THAT(text_of<InvalidArgument>([&] { longer.add(base.view(), Ownership::copy, on_cpu()); }),
              ::testing::HasSubstr("shorter than the prefix"));
  EXPECT_EQ(longer.size(), 0);
}

TEST(IndexKind, AnyKindHasIdsAndLosesRows) {
  const auto base = make_floats(Shape::gaussian, 40, 6, 1);
  Index index = make_prefix(6);
  std::vector<int64_t> ids(40);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 1000 - 7 * static_cast<int64_t>(i);
  index.add(base.view(), {ids.data(), 40, {}}, Ownership::copy, on_cpu());
  EXPECT_EQ(index.search(base.view().slice(9, 1), {.k = 1}, on_cpu()).ids()[0], ids[9]);
  const int64_t gone[] = {ids[9], ids[0], ids[9], 5};
  EXPECT_EQ(index.remove({gone, 4, {}}, on_cpu()), 2);
  EXPECT_EQ(index.size(), 38);
  EXPECT_NE(index.search(base.view().slice(9, 1), {.k = 1}, on_cpu()).ids()[0], ids[9]);
  EXPECT_EQ(index.search(base.view().slice(10, 1), {.k = 1}, on_cpu()).ids()[0], ids[10]);
}

}  // namespace
}  // namespace kith
