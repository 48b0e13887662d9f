// A Graph index searched on a GPU gives the bytes of the CPU: metrics, dtypes, codes behind it, few and many queries,
// beams and widths, duplicates, filters, removed rows, rows behind the graph, and wherever queries and results lie.
#include "cuda/device_data.hpp"
#include "cuda/index_parity.hpp"
#include "cuda/parity.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"

#include <kith/error.hpp>
#include <kith/index.hpp>

#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Matrix;
using reference::Shape;

class CudaGraphIndexSmall : public OnCuda {};

Index graph_index(const MatrixView& rows, const char* factory = "Graph16", Metric metric = Metric::l2) {
  Index index(factory, {.metric = metric});
  if (!index.trained()) index.train(rows, on_cpu());
  index.add(rows, Ownership::copy, on_cpu());
  return index;
}

TEST_F(CudaGraphIndexSmall, EveryMetric) {
  const auto rows = reference::without_sign(reference::make_kind("low_rank_24", 9000, 1));
  const MatrixView queries = rows.view().slice(0, 70);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine, Metric::l1,
                              Metric::linf, Metric::chi_square}) {
    const Index index = graph_index(rows.view(), "Graph16", metric);
    const std::string what(name_of(metric));
    expect_as_on_cpu(index, queries, {.k = 10, .beam = 40}, what);
    expect_as_on_cpu(index, queries, {.k = 1, .refine = 1, .beam = 16}, what);
    expect_as_on_cpu(index, queries.slice(0, 1), {.k = 10, .beam = 40}, what + ", one query");
  }
}

TEST_F(CudaGraphIndexSmall, AnyBatchBeamAndWidth) {
  const auto rows = reference::make_kind("low_rank_24", 9000, 1);
  const auto queries = make_floats(Shape::gaussian, 5000, rows.cols, 2);
  for (const char* const factory : {"Graph16", "Graph32", "Graph64", "Graph128"}) {
    const Index index = graph_index(rows.view(), factory);
    for (const int64_t count : {1, 2, 7, 130, 1500, 5000}) {
      expect_as_on_cpu(index, queries.view().slice(0, count), {.k = 10, .beam = 24},
                       std::string(factory) + " " + std::to_string(count) + " queries");
    }
    for (const int64_t beam : {1, 2, 33, 64, 130}) {
      for (const int64_t width : {1, 3, 64}) {
        expect_as_on_cpu(index, queries.view().slice(0, 20), {.k = 5, .beam = beam, .width = width},
                         std::string(factory) + " beam " + std::to_string(beam) + " width " + std::to_string(width));
      }
    }
    expect_as_on_cpu(index, queries.view().slice(0, 20), {.k = 100, .beam = 16}, "k above the beam");
    expect_as_on_cpu(index, queries.view().slice(0, 20), {.k = 3, .refine = 40, .beam = 16}, "more than the beam");
    expect_as_on_cpu(index, queries.view().slice(0, 20), {}, "defaults");
    expect_as_on_cpu(index, queries.view().slice(0, 20), {.recall = 1}, "exact");
  }
}

TEST_F(CudaGraphIndexSmall, ColumnsDtypesAndCodes) {
  for (const int64_t cols : {1, 3, 16, 17, 100, 129, 960, 2048}) {
    const auto points = make_floats(Shape::gaussian, 4300, std::min<int64_t>(cols, 12), 1);
    const auto basis = make_floats(Shape::gaussian, points.cols, cols, 2);
    Matrix<float> rows(4300, cols);
    for (int64_t i = 0; i < 4300; ++i) {
      for (int64_t j = 0; j < points.cols; ++j) {
        for (int64_t c = 0; c < cols; ++c) rows.row(i)[c] += points.row(i)[j] * basis.row(j)[c];
      }
    }
    const Index index = graph_index(rows.view());
    expect_as_on_cpu(index, rows.view().slice(0, 30), {.beam = 20}, std::to_string(cols) + " columns");
  }
  const auto bytes = make_bytes(6000, 24, 3);
  const auto queries = make_bytes(40, 24, 4);
  const auto floats = make_floats(Shape::gaussian, 6000, 24, 5);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    expect_as_on_cpu(graph_index(bytes.view(), "Graph32", metric), queries.view(), {.beam = 30}, "u8");
    for (const char* const factory : {"Graph16,SQ8", "Graph16,SQfp16", "PCA12,Graph16,RFlat"}) {
      expect_as_on_cpu(graph_index(floats.view(), factory, metric), floats.view().slice(0, 40), {.beam = 30}, factory);
    }
  }
  // Far outside: queries of words.
  Matrix<float> far(20, 24);
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t c = 0; c < 24; ++c) far.row(i)[c] = floats.row(i)[c] * static_cast<float>(10 << i);
  }
  expect_as_on_cpu(graph_index(floats.view()), far.view(), {.beam = 30}, "far queries");
}

TEST_F(CudaGraphIndexSmall, CodesOfFourBits) {
  for (const int64_t cols : {3, 32, 33, 100, 129, 960}) {
    const auto points = make_floats(Shape::gaussian, 4300, std::min<int64_t>(cols, 12), 1);
    const auto basis = make_floats(Shape::gaussian, points.cols, cols, 2);
    Matrix<float> rows(4300, cols);
    for (int64_t i = 0; i < 4300; ++i) {
      for (int64_t j = 0; j < points.cols; ++j) {
        for (int64_t c = 0; c < cols; ++c) rows.row(i)[c] += points.row(i)[j] * basis.row(j)[c];
      }
    }
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      Index index = graph_index(rows.view().slice(0, 4200), "Graph16x4", metric);
      if (metric != Metric::inner_product) index.add(rows.view().slice(4200, 100), Ownership::copy, on_cpu());
      const std::string what = "four bits of " + std::to_string(cols) + " columns, " + std::string(name_of(metric));
      expect_as_on_cpu(index, rows.view().slice(0, 30), {.beam = 20}, what);
      expect_as_on_cpu(index, rows.view().slice(0, 1), {.beam = 20}, what + ", one query");
      expect_as_on_cpu(index, rows.view().slice(0, 2000), {.beam = 20}, what + ", many queries");
    }
    // Far outside: queries of words.
    Matrix<float> far(20, cols);
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t c = 0; c < cols; ++c) far.row(i)[c] = rows.row(i)[c] * static_cast<float>(10 << i);
    }
    expect_as_on_cpu(graph_index(rows.view(), "Graph32x4"), far.view(), {.beam = 30}, "four bits, far queries");
  }
  const auto bytes = make_bytes(6000, 48, 3);
  const auto queries = make_bytes(1200, 48, 4);
  for (const char* const factory : {"Graph32x4", "Graph16x4,SQ8", "Graph64x4"}) {
    expect_as_on_cpu(graph_index(bytes.view(), factory), queries.view(), {.beam = 30}, factory);
  }
  std::vector<uint8_t> mask(6000);
  for (size_t i = 0; i < mask.size(); i += 3) mask[i] = 1;
  const RowFilter filter = RowFilter::mask(mask.data(), 6000);
  expect_as_on_cpu(graph_index(bytes.view(), "Graph32x4"), queries.view(), {.filter = filter, .beam = 30},
                   "four bits with a filter");
}

TEST_F(CudaGraphIndexSmall, HardRows) {
  for (const Shape shape : reference::kAllShapes) {
    const auto rows = make_floats(shape, 4500, 6, 1);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      expect_as_on_cpu(graph_index(rows.view(), "Graph16", metric), rows.view().slice(0, 20), {.beam = 40},
                       std::string(name_of(shape)) + " " + std::string(name_of(metric)));
    }
  }
  // Thousands of equal rows, at few places.
  auto rows = make_floats(Shape::gaussian, 9000, 8, 1);
  for (int64_t i = 0; i < 9000; ++i) std::memcpy(rows.row(i), rows.row(i % 11), 8 * sizeof(float));
  const Index equal = graph_index(rows.view());
  expect_as_on_cpu(equal, rows.view().slice(0, 20), {.k = 10, .beam = 10}, "equal rows");
  expect_as_on_cpu(equal, rows.view().slice(0, 20), {.k = 100, .beam = 10}, "equal rows");
  for (int64_t i = 0; i < 6000; ++i) std::memcpy(rows.row(i), rows.row(0), 8 * sizeof(float));
  const auto others = make_floats(Shape::gaussian, 3000, 8, 2);
  for (int64_t i = 0; i < 3000; ++i) std::memcpy(rows.row(6000 + i), others.row(i), 8 * sizeof(float));
  expect_as_on_cpu(graph_index(rows.view()), rows.view().slice(5990, 30), {.k = 10, .beam = 20}, "6,000 equal rows");
}

// Walks of bytes write results themselves, and few queries have sixteen warps each where steps are wide.
TEST_F(CudaGraphIndexSmall, BytesOfAnyWidthAndBatch) {
  for (const int64_t cols : {1, 2, 3, 5, 17, 100, 129, 768, 2048}) {
    const auto rows = make_bytes(5200, cols, 1, cols < 20 ? 40 : 255);
    const auto queries = make_bytes(1000, cols, 2, cols < 20 ? 40 : 255);
    const Index index = graph_index(rows.view(), cols % 2 == 0 ? "Graph32" : "Graph16",
                                    cols % 3 == 0 ? Metric::sqeuclidean : Metric::l2);
    const std::string what = std::to_string(cols) + " columns of bytes";
    for (const int64_t count : {1, 7, 100, 1000}) {
      for (const int64_t width : {2, 8}) {
        expect_as_on_cpu(index, queries.view().slice(0, count), {.k = 10, .beam = 24, .width = width},
                         what + ", " + std::to_string(count) + " queries, width " + std::to_string(width));
      }
    }
    expect_as_on_cpu(index, queries.view().slice(0, 9), {.k = 30, .beam = 11, .width = 8}, what + ", k above the beam");
    expect_as_on_cpu(index, queries.view().slice(0, 9), {.k = 1, .refine = 1, .beam = 20, .width = 8}, what + ", one");
  }
  const auto wide = make_bytes(9000, 24, 3);
  for (const char* const factory : {"Graph64", "Graph128"}) {
    const Index index = graph_index(wide.view(), factory);
    for (const int64_t width : {1, 8, 16, 64}) {
      expect_as_on_cpu(index, wide.view().slice(0, 30), {.k = 5, .beam = 15, .width = width},
                       std::string(factory) + " of bytes, width " + std::to_string(width));
    }
  }
  const auto unsigned_rows = make_bytes(9000, 30, 4);
  Matrix<int8_t> with_sign(9000, 30);
  for (size_t i = 0; i < with_sign.values.size(); ++i) {
    with_sign.values[i] = static_cast<int8_t>(unsigned_rows.values[i] - 128);
  }
  const Index index = graph_index(with_sign.view());
  for (const int64_t count : {1, 100, 1000}) {
    expect_as_on_cpu(index, with_sign.view().slice(0, count), {.beam = 40, .width = 8}, "i8");
  }
  // As many places as a walk can look at for its results, and more.
  for (const int64_t k : {32, 33}) {
    expect_as_on_cpu(index, with_sign.view().slice(0, 9), {.k = k, .beam = kMostWalkResults / 32 * k, .width = 8},
                     "i8, k = " + std::to_string(k));
  }
}

TEST_F(CudaGraphIndexSmall, BytesWithManyRowsAtAPlaceAndEqualDistances) {
  // Few different rows, thousands of times each, and distances that many share.
  for (const uint32_t largest : {1U, 2U, 4U, 8U}) {
    const auto rows = make_bytes(9000, 5, 1, largest);
    const auto queries = make_bytes(200, 5, 2, largest);
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean}) {
      const Index index = graph_index(rows.view(), "Graph16", metric);
      const std::string what = "bytes up to " + std::to_string(largest);
      for (const int64_t k : {1, 10, 100}) {
        expect_as_on_cpu(index, queries.view(), {.k = k, .beam = 10}, what + ", k = " + std::to_string(k));
        expect_as_on_cpu(index, queries.view().slice(0, 3), {.k = k, .refine = 1, .beam = 10, .width = 8}, what);
      }
    }
  }
  // Squares that differ, and roots, or squares as floats, that do not.
  Matrix<uint8_t> rows(6000, 1200);
  Matrix<uint8_t> queries(40, 1200);
  const auto fine_rows = make_bytes(6000, 400, 1, 3);
  const auto fine_queries = make_bytes(40, 400, 2, 3);
  for (int64_t i = 0; i < 6000; ++i) std::memcpy(rows.row(i), fine_rows.row(i), 400);
  for (int64_t i = 0; i < 40; ++i) {
    std::memcpy(queries.row(i), fine_queries.row(i), 400);
    std::memset(queries.row(i) + 400, 255, 800);
  }
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean}) {
    const Index index = graph_index(rows.view(), "Graph32", metric);
    expect_as_on_cpu(index, queries.view(), {.k = 20, .beam = 40}, "distances that round alike");
    expect_as_on_cpu(index, queries.view(), {.k = 20, .beam = 40, .width = 8}, "distances that round alike, width 8");
  }
}

TEST_F(CudaGraphIndexSmall, BytesBehindTheGraphAndFilters) {
  const auto rows = make_bytes(9000, 24, 1, 30);
  const auto queries = make_bytes(120, 24, 2, 30);
  Index index = graph_index(rows.view().slice(0, 8800));
  index.add(rows.view().slice(8800, 200), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().unlinked, 200);
  std::vector<uint8_t> mask(9000);
  for (size_t i = 0; i < mask.size(); i += 2) mask[i] = 1;
  const RowFilter filter = RowFilter::mask(mask.data(), 9000);
  for (const int64_t width : {2, 8}) {
    expect_as_on_cpu(index, queries.view(), {.beam = 30, .width = width}, "bytes, some behind the graph");
    expect_as_on_cpu(index, queries.view(), {.filter = filter, .beam = 20, .width = width}, "bytes with a filter");
  }
  const int64_t gone[] = {3, 77, 8900};
  index.remove({gone, 3, {}}, on_cpu());
  expect_as_on_cpu(index, queries.view(), {.beam = 30, .width = 8}, "bytes, some removed");
}

TEST_F(CudaGraphIndexSmall, PlacesThatWereForgottenComeAgain) {
  // Walks that see most of the graph, so that tables of seen places forget some: with 16, 8, 4 and 2 warps for a query.
  const auto rows = make_bytes(9000, 16, 1, 20);
  const auto queries = make_bytes(600, 16, 2, 20);
  for (const char* const factory : {"Graph32", "Graph32x4"}) {
    const Index index = graph_index(rows.view(), factory);
    for (const int64_t count : {20, 140, 300, 600}) {
      for (const int64_t beam : {40, 150}) {
        expect_as_on_cpu(
            index, queries.view().slice(0, count), {.beam = beam, .width = 8},
            std::string(factory) + ", " + std::to_string(count) + " queries, beam " + std::to_string(beam));
      }
    }
  }
}

TEST_F(CudaGraphIndexSmall, FewRows) {
  for (const int64_t count : {1, 2, 15, 300, 4095, 4096}) {
    const auto rows = make_floats(Shape::gaussian, count, 8, 1);
    expect_as_on_cpu(graph_index(rows.view(), "Graph32"), rows.view().slice(0, std::min<int64_t>(count, 5)), {.k = 13},
                     std::to_string(count) + " rows");
  }
}

TEST_F(CudaGraphIndexSmall, FiltersRemovedRowsAndRowsBehindTheGraph) {
  const auto rows = reference::make_kind("low_rank_24", 12000, 1);
  const auto queries = make_floats(Shape::gaussian, 150, rows.cols, 2);
  Index index = graph_index(rows.view().slice(0, 11000));
  const auto search_all = [&](const std::string& what) {
    expect_as_on_cpu(index, queries.view(), {.beam = 30}, what);
    for (const int64_t of : {2, 3, 5, 20, 1000}) {
      std::vector<uint8_t> mask(static_cast<size_t>(index.size()));
      for (size_t i = 0; i < mask.size(); i += static_cast<size_t>(of)) mask[i] = 1;
      const RowFilter filter = RowFilter::mask(mask.data(), static_cast<int64_t>(mask.size()));
      expect_as_on_cpu(index, queries.view(), {.filter = filter, .beam = 30}, what + ", one of " + std::to_string(of));
      expect_as_on_cpu(index, queries.view().slice(0, 1), {.k = 3, .filter = filter, .beam = 16}, what + ", one query");
    }
    // Kept rows that lie together: walks that do not come there have failed.
    std::vector<uint8_t> half(static_cast<size_t>(index.size()));
    for (size_t i = 0; i < half.size(); ++i) half[i] = rows.row(static_cast<int64_t>(i))[0] > 0 ? 1 : 0;
    const RowFilter filter = RowFilter::mask(half.data(), static_cast<int64_t>(half.size()));
    expect_as_on_cpu(index, queries.view(), {.filter = filter, .beam = 20}, what + ", half");
  };
  search_all("all linked");
  index.add(rows.view().slice(11000, 700), Ownership::copy, on_cpu());
  index.add(rows.view().slice(11700, 1), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().size, 11701);
  search_all("some behind the graph");
  std::vector<int64_t> gone;
  for (int64_t i = 0; i < 11701; i += 9) gone.push_back(i);
  index.remove({gone.data(), static_cast<int64_t>(gone.size()), {}}, on_cpu());
  search_all("some removed");
}

TEST_F(CudaGraphIndexSmall, OnItsDeviceWithLimitsAndErrors) {
  const auto rows = reference::make_kind("low_rank_24", 9000, 1);
  const auto queries = make_floats(Shape::gaussian, 50, rows.cols, 2);
  const Index here = graph_index(rows.view());
  const Index index = here.to(Device::cuda(0));
  const Neighbors found = index.search(queries.view(), {.k = 10}, Resources());
  const Neighbors expected = here.search(queries.view(), {.k = 10}, on_cpu());
  EXPECT_EQ(std::memcmp(found.ids(), expected.ids(), 500 * sizeof(int64_t)), 0);
  EXPECT_GT(index.bytes().device, 9000 * (16 * 4 + rows.cols * 5));
  auto bad = make_floats(Shape::gaussian, 50, rows.cols, 2);
  bad.row(31)[5] = std::numeric_limits<float>::quiet_NaN();
  bad.row(40)[5] = std::numeric_limits<float>::infinity();
  for (int turn = 0; turn < 2; ++turn) {
    try {
      (void)index.search(bad.view(), {.k = 10}, on_cuda());
      ADD_FAILURE() << "a NaN was searched for";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("31"), std::string::npos) << error.what();
    }
    try {
      (void)index.range_search(bad.view(), {.radius = 3.0F}, on_cuda());
      ADD_FAILURE() << "what is near NaN was looked for";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("31"), std::string::npos) << error.what();
    }
    const Neighbors again = index.search(queries.view(), {.k = 10}, on_cuda());
    EXPECT_EQ(std::memcmp(again.ids(), expected.ids(), 500 * sizeof(int64_t)), 0);
  }
  // A limit that is named is enough.
  ResourceOptions options;
  options.device = Device::cuda(0);
  options.device_memory_limit = 1000;
  const Index fresh = graph_index(rows.view());
  try {
    (void)fresh.search(queries.view(), {.k = 10}, Resources(options));
    ADD_FAILURE() << "1,000 bytes were enough";
  } catch (const OutOfMemory& error) {
    options.device_memory_limit = error.bytes_needed();
    const Neighbors within = fresh.search(queries.view(), {.k = 10}, Resources(options));
    EXPECT_EQ(std::memcmp(within.ids(), expected.ids(), 500 * sizeof(int64_t)), 0);
  }
  const RangeNeighbors in_range = index.range_search(queries.view(), {.radius = 3.0F}, on_cuda());
  const RangeNeighbors in_range_cpu = here.range_search(queries.view(), {.radius = 3.0F}, on_cpu());
  ASSERT_EQ(in_range.size(), in_range_cpu.size());
  EXPECT_EQ(std::memcmp(in_range.ids(), in_range_cpu.ids(), static_cast<size_t>(in_range.size()) * 8), 0);
}

}  // namespace
}  // namespace kith
