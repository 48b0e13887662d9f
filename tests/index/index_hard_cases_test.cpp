// Hard cases through Index, on every kind: one list, empty lists, a list with nearly all rows, equal rows, fewer
// distinct rows than centres, one column, one part or as many as columns, no rows, k above the rows, a mean far from
// the spread, rows added one at a time. A search of all lists is knn() over what reconstruct() gives; of few lists, it
// finds enough.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

Index filled(const char* factory, const MatrixView& rows, Metric metric = Metric::l2) {
  Index index(factory, {.metric = metric});
  index.train(rows, on_cpu());
  index.add(rows, Ownership::copy, on_cpu());
  return index;
}

// All lists are exact; few lists find as many as there are; the same after a remove of every other row.
void expect_sound(const char* factory, const MatrixView& rows, Metric metric = Metric::l2) {
  SCOPED_TRACE(std::string(factory) + " by " + std::string(name_of(metric)));
  Index index = filled(factory, rows, metric);
  const MatrixView queries = rows.slice(0, std::min<int64_t>(rows.rows(), 9));
  expect_exact(index, queries, numbers(rows.rows()));
  const auto finds = [&](int64_t k) {
    const Neighbors found = index.search(queries, taken_by(index, {.k = k, .probes = 1}), on_cpu());
    for (int64_t q = 0; q < queries.rows(); ++q) {
      EXPECT_GE(found.ids(q)[std::min(k, index.size()) - 1], 0);
      if (k > index.size()) {
        EXPECT_EQ(found.ids(q)[index.size()], -1);
      }
    }
  };
  finds(1);
  finds(rows.rows());
  finds(rows.rows() + 3);
  std::vector<int64_t> gone;
  std::vector<int64_t> left;
  for (int64_t i = 0; i < rows.rows(); ++i) (i % 2 == 0 ? gone : left).push_back(i);
  EXPECT_EQ(index.remove(view(gone), on_cpu()), static_cast<int64_t>(gone.size()));
  expect_exact(index, queries, left);
  finds(static_cast<int64_t>(left.size()) + 1);
}

constexpr const char* kKinds[] = {"Flat", "IVF1,Flat", "IVF7,Flat", "IVF7,SQ8", "IVF7,SQ4", "IVF7,SQfp16", "SQ6"};

TEST(IndexHardCases, EveryShapeOfData) {
  for (const Shape shape : reference::kAllShapes) {
    if (shape == Shape::huge) continue;  // beyond f16, and spans beyond f32
    SCOPED_TRACE(name_of(shape));
    const auto rows = make_floats(shape, 300, 8, 1);
    for (const char* const factory : kKinds) {
      for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
        expect_sound(factory, rows.view(), metric);
      }
    }
    expect_sound("IVF7,PQ4x4", rows.view());
    expect_sound("IVF7,PQ4x4", rows.view(), Metric::inner_product);
  }
}

TEST(IndexHardCases, FewerDistinctRowsThanCentres) {
  auto rows = make_floats(Shape::gaussian, 300, 8, 1);
  for (int64_t i = 0; i < 300; ++i) std::copy_n(rows.row(i % 3), 8, rows.row(i));
  for (const char* const factory : {"IVF16,Flat", "IVF16,SQ8", "IVF16,PQ4x4", "PQ2x5"}) {
    expect_sound(factory, rows.view());
    expect_sound(factory, rows.view(), Metric::cosine);
  }
}

TEST(IndexHardCases, OneListHoldsNearlyAllRows) {
  auto rows = make_floats(Shape::gaussian, 1000, 8, 1);
  for (int64_t i = 0; i < 1000; ++i) {
    // Equal ones cannot be told apart, whichever of them centres start from.
    for (int64_t c = 0; c < 8; ++c) rows.row(i)[c] = i % 10 == 0 ? 50 * rows.row(i)[c] : 0.25F;
  }
  for (const char* const factory : {"IVF40,Flat", "IVF40,SQ8", "IVF40,PQ4x4"}) {
    EXPECT_GE(filled(factory, rows.view()).info().longest, 700);
    expect_sound(factory, rows.view());
  }
}

TEST(IndexHardCases, OneColumnOnePartAndAsManyPartsAsColumns) {
  const auto line = make_floats(Shape::gaussian, 300, 1, 1);
  for (const char* const factory : {"Flat", "IVF7,Flat", "IVF7,SQ8", "IVF7,PQ1x4", "PQ1", "PCA1,SQ8", "RR,PQ1"}) {
    const Index index = filled(factory, line.view());
    EXPECT_EQ(index.search(line.view().slice(4, 2), taken_by(index, {.k = 300, .probes = kAll}), on_cpu()).k(), 300);
  }
  expect_sound("IVF7,PQ1x4", line.view());
  expect_sound("PQ1", line.view());
  const auto rows = make_floats(Shape::gaussian, 300, 6, 1);
  for (const char* const factory : {"PQ6", "PQ1", "IVF7,PQ6x4", "IVF7,PQ1x6"}) expect_sound(factory, rows.view());
}

TEST(IndexHardCases, NoRows) {
  const auto rows = make_floats(Shape::gaussian, 300, 6, 1);
  const Matrix<float> none(0, 6);
  for (const char* const factory : {"Flat", "IVF7,Flat", "PQ3x4", "RR,IVF7,SQ8", "IVF7,PQ3x4,RFlat"}) {
    SCOPED_TRACE(factory);
    Index index(factory);
    index.train(rows.view(), on_cpu());
    index.add(none.view(), Ownership::copy, on_cpu());
    EXPECT_EQ(index.size(), 0);
    EXPECT_EQ(index.search(rows.view().slice(0, 2), {.k = 3}, on_cpu()).ids(1)[2], -1);
    EXPECT_EQ(index.range_search(rows.view().slice(0, 2), {.radius = 9.0F}, on_cpu()).size(), 0);
    EXPECT_EQ(index.remove(view({0, 5}), on_cpu()), 0);
    EXPECT_EQ(index.search(none.view(), {.k = 3}, on_cpu()).queries(), 0);
    index.add(rows.view(), Ownership::copy, on_cpu());
    EXPECT_EQ(index.search(none.view(), {.k = 3}, on_cpu()).queries(), 0);
    EXPECT_EQ(index.range_search(none.view(), {.radius = 9.0F}, on_cpu()).size(), 0);
    EXPECT_EQ(index.remove(view(numbers(300)), on_cpu()), 300);
    EXPECT_EQ(index.search(rows.view().slice(0, 2), {.k = 3}, on_cpu()).ids(0)[0], -1);
    index.add(rows.view().slice(0, 1), Ownership::copy, on_cpu());
    EXPECT_EQ(index.search(rows.view().slice(0, 1), {.k = 1}, on_cpu()).ids(0)[0], 300);
  }
  EXPECT_THROW(Index("IVF4,Flat").train(none.view(), on_cpu()), InvalidArgument);
}

TEST(IndexHardCases, RowsAddedOneAtATimeAreRowsAddedTogether) {
  const auto rows = make_floats(Shape::far_mean, 257, 6, 1);
  const auto queries = make_floats(Shape::far_mean, 5, 6, 2);
  for (const char* const factory : {"Flat", "IVF7,Flat", "IVF7,PQ3x4", "RR,SQ8", "IVF7,PQ3x4,RFlat"}) {
    const Index together = filled(factory, rows.view());
    Index one = Index(factory);
    one.train(rows.view(), on_cpu());
    for (int64_t i = 0; i < 257; ++i) one.add(rows.view().slice(i, 1), Ownership::copy, on_cpu());
    for (const int64_t probes : {int64_t{2}, kAll}) {
      expect_same(one.search(queries.view(), taken_by(one, {.k = 40, .probes = probes}), on_cpu()),
                  together.search(queries.view(), taken_by(together, {.k = 40, .probes = probes}), on_cpu()));
    }
  }
}

// What a mask is of: the rows that are left, in the order of add; a list names ids. On every kind.
TEST(IndexHardCases, FiltersAreOfRowsOrOfIds) {
  const auto rows = make_floats(Shape::gaussian, 400, 6, 1);
  for (const char* const factory : {"Flat", "IVF7,Flat", "IVF7,PQ3x4", "PQ3x4", "RR,IVF7,SQ8", "IVF7,PQ3x4,RFlat"}) {
    SCOPED_TRACE(factory);
    Index index(factory);
    index.train(rows.view(), on_cpu());
    index.add(rows.view(), view(numbers(400, 1000)), Ownership::copy, on_cpu());
    index.remove(view({1000, 1001, 1399}), on_cpu());  // row 0 is now 1002
    std::vector<uint8_t> mask(397);
    std::vector<uint8_t> bits(50);
    std::vector<int64_t> ids;
    for (size_t i = 0; i < mask.size(); i += 5) {
      mask[i] = 1;
      bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << (i % 8));
      ids.push_back(1002 + static_cast<int64_t>(i));
    }
    const MatrixView queries = rows.view().slice(0, 7);
    const auto found = [&](const RowFilter& filter) {
      return index.search(queries, taken_by(index, {.k = 90, .filter = filter, .probes = 1, .refine = 5}), on_cpu());
    };
    const Neighbors masked = found(RowFilter::mask(mask.data(), 397));
    for (int64_t q = 0; q < 7; ++q) {
      for (int64_t i = 0; i < 90; ++i) {
        EXPECT_EQ(masked.ids(q)[i] < 0, i >= 80);  // all that are kept, and no others
        if (i < 80) {
          EXPECT_EQ((masked.ids(q)[i] - 1002) % 5, 0);
        }
      }
    }
    expect_same(found(RowFilter::bits(bits.data(), 397)), masked);
    expect_same(found(RowFilter::rows(ids.data(), static_cast<int64_t>(ids.size()))), masked);
    EXPECT_THROW(found(RowFilter::mask(mask.data(), 400)), InvalidArgument);
    const std::vector<int64_t> gone = {1000};
    EXPECT_EQ(found(RowFilter::rows(gone.data(), 1)).ids()[0], -1);  // an unknown id is passed over
    const RangeNeighbors near = index.range_search(
        queries, range_taken_by(index, {.radius = 1e6F, .filter = RowFilter::mask(mask.data(), 397), .probes = kAll}),
        on_cpu());
    EXPECT_EQ(near.size(), 7 * 80);
  }
}

// The caller's space comes back as far as a transform lets it.
TEST(IndexHardCases, ReconstructUndoesEveryTransform) {
  const auto rows = make_floats(Shape::far_mean, 500, 8, 1);
  const auto error = [&](const char* factory) {
    const std::vector<float> back = reconstructed(filled(factory, rows.view()), numbers(500));
    double most = 0;
    for (size_t i = 0; i < back.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(back[i]) - static_cast<double>(rows.values[i])));
    }
    return most;
  };
  double largest = 0;
  for (const float value : rows.values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (const char* const factory : {"RR,Flat", "PCA8,Flat", "PCAR8,Flat", "Pad12,Flat", "Centre,Flat", "RR16,Flat",
                                    "OPQ4,IVF7,Flat", "Centre,Pad9,RR,IVF7,Flat"}) {
    EXPECT_LE(error(factory), 1e-5 * largest) << factory;
  }
  // The nearest vector that is left after columns are dropped; lengths do not come back.
  EXPECT_LE(error("PCA7,Flat"), 20.0);
  const std::vector<float> unit = reconstructed(filled("L2norm,Flat", rows.view()), {0});
  double length = 0;
  for (const float value : unit) length += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(length, 1.0, 1e-6);
}

}  // namespace
}  // namespace kith
