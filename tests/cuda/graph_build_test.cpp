// A graph for walks that a GPU builds is the CPU's, byte for byte: metrics, dtypes, degrees, few rows, duplicates,
// clusters that nothing joins, places that everybody chooses, and rows that are cut into cells.
#include "cuda/device_memory.hpp"
#include "cuda/parity.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "graph/search/build/extend_walk_graph.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"

#include <kith/error.hpp>
#include <kith/index.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Matrix;
using reference::Shape;

class CudaGraphBuild : public OnCuda {};

template <typename T>
void expect_same(const T* made, const T* expected, int64_t count, const std::string& what) {
  int64_t differ = 0;
  for (int64_t i = 0; i < count; ++i) differ += std::memcmp(&made[i], &expected[i], sizeof(T)) != 0 ? 1 : 0;
  EXPECT_EQ(differ, 0) << "of " << count << ": " << what;
}

void expect_built_alike(const MatrixView& rows, const WalkGraphParams& params, const std::string& what) {
  const auto expected = build_walk_graph(rows, params, on_cpu());
  const auto made = build_walk_graph(rows, params, on_cuda());
  ASSERT_EQ(made->order.places(), expected->order.places()) << what;
  ASSERT_EQ(made->cells, expected->cells) << what;
  ASSERT_EQ(made->entries.size(), expected->entries.size()) << what;
  ASSERT_EQ(made->codes.size(), expected->codes.size()) << what;
  EXPECT_EQ(made->coder.step(), expected->coder.step()) << what;
  EXPECT_EQ(made->coder.offsets(), expected->coder.offsets()) << what;
  const int64_t places = expected->order.places();
  expect_same(made->order.rows().data(), expected->order.rows().data(), rows.rows(), what + ": rows of places");
  expect_same(made->order.offsets().data(), expected->order.offsets().data(), places + 1, what + ": places");
  expect_same(made->codes.data(), expected->codes.data(), expected->codes.size(), what + ": codes");
  expect_same(made->centres.data(), expected->centres.data(), expected->centres.size(), what + ": centres");
  expect_same(made->edges.flat(), expected->edges.flat(), places * params.degree, what + ": edges");
  expect_same(made->entry_offsets.data(), expected->entry_offsets.data(), expected->cells + 1,
              what + ": cells of entries");
  expect_same(made->entries.data(), expected->entries.data(), expected->entries.size(), what + ": entries");
  EXPECT_EQ(made->counts.clipped, expected->counts.clipped) << what;
  EXPECT_EQ(made->counts.parts, expected->counts.parts) << what;
  EXPECT_EQ(made->counts.lost, expected->counts.lost) << what;
}

TEST_F(CudaGraphBuild, MetricsAndDegrees) {
  const auto rows = reference::without_sign(reference::make_kind("low_rank_24", 6000, 1));
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
    for (const int64_t degree : {16, 32, 48, 64, 128}) {
      if (degree > 32 && metric != Metric::l2) continue;
      expect_built_alike(rows.view(), {metric, degree},
                         std::string(name_of(metric)) + " " + std::to_string(degree) + " neighbours");
    }
  }
}

TEST_F(CudaGraphBuild, FewRowsAndOddSizes) {
  for (const int64_t count : {1, 2, 3, 17, 33, 97, 300, 601, 4095, 4097}) {
    const auto rows = make_floats(Shape::gaussian, count, 9, 1);
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
      expect_built_alike(rows.view(), {metric, 32}, std::to_string(count) + " rows");
    }
  }
}

TEST_F(CudaGraphBuild, DtypesAndColumns) {
  const auto bytes = make_bytes(5000, 40, 3);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    expect_built_alike(bytes.view(), {metric, 32}, "u8");
    const MatrixView as_signed(bytes.view().data(), DType::i8, {5000, 40, 40});
    expect_built_alike(as_signed, {metric, 32}, "i8");
  }
  // Halves from 1/4 to 8, of either sign.
  std::vector<uint16_t> halves(5000 * 40);
  for (size_t i = 0; i < halves.size(); ++i) {
    const uint32_t drawn = bytes.row(0)[i];
    halves[i] = static_cast<uint16_t>((drawn & 1U) << 15 | (13 + drawn / 2 % 5) << 10 | drawn * 4U);
  }
  expect_built_alike({halves.data(), DType::f16, {5000, 40, 40}}, {Metric::l2, 32}, "f16");
  for (const int64_t cols : {1, 15, 16, 17, 130, 1030}) {
    const auto rows = make_floats(Shape::gaussian, 3000, cols, 2);
    expect_built_alike(rows.view(), {Metric::l2, 16}, std::to_string(cols) + " columns");
  }
}

TEST_F(CudaGraphBuild, CodesOfFourBits) {
  const auto rows = reference::without_sign(reference::make_kind("low_rank_24", 6000, 1));
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    expect_built_alike(rows.view(), {.metric = metric, .degree = 32, .bits = WalkBits::four},
                       "four bits, " + std::string(name_of(metric)));
  }
  const auto bytes = make_bytes(5000, 40, 3);
  expect_built_alike(bytes.view(), {.degree = 32, .bits = WalkBits::four}, "four bits of u8");
  for (const int64_t cols : {2, 33, 130}) {
    const auto some = make_floats(Shape::gaussian, 4500, cols, 2);
    expect_built_alike(some.view(), {.degree = 16, .bits = WalkBits::four},
                       "four bits of " + std::to_string(cols) + " columns");
  }
}

TEST_F(CudaGraphBuild, HardRows) {
  for (const Shape shape : reference::kAllShapes) {
    const auto rows = make_floats(shape, 4500, 6, 1);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      expect_built_alike(rows.view(), {metric, 16},
                         std::string(name_of(shape)) + " " + std::string(name_of(metric)));
    }
  }
  // Clusters that nothing joins.
  for (const int64_t size : {10, 150}) {
    auto rows = make_floats(Shape::gaussian, 9000, 12, 1);
    const auto centres = make_floats(Shape::gaussian, 9000 / size, 12, 2);
    for (int64_t i = 0; i < 9000; ++i) {
      for (int64_t c = 0; c < 12; ++c) rows.row(i)[c] = rows.row(i)[c] * 0.02F + centres.row(i / size)[c];
    }
    expect_built_alike(rows.view(), {Metric::l2, 16}, "clusters of " + std::to_string(size));
  }
  // Thousands of equal rows.
  auto rows = make_floats(Shape::gaussian, 9000, 8, 1);
  for (int64_t i = 0; i < 6000; ++i) std::memcpy(rows.row(i), rows.row(i % 11), 8 * sizeof(float));
  expect_built_alike(rows.view(), {Metric::l2, 16}, "equal rows");
  // A row that is the nearest of all others, which lie on the axes: it is offered more than a place looks at.
  Matrix<float> star(1601, 800);
  for (int64_t i = 0; i < 1600; ++i) star.row(i)[i / 2] = (i % 2 == 0 ? 1.0F : -1.0F) * (1 + static_cast<float>(i) / 1e4F);
  expect_built_alike(star.view(), {Metric::l2, 32}, "a star");
}

TEST_F(CudaGraphBuild, ManyRows) {
  // Cut into cells by knn_graph().
  const auto rows = reference::make_kind("low_rank_24", 120000, 1);
  expect_built_alike(rows.view(), {Metric::l2, 32}, "120,000 rows");
  expect_built_alike(rows.view().slice(0, 60000), {Metric::inner_product, 32}, "60,000 rows by products");
  expect_built_alike(rows.view().slice(0, 40000), {Metric::cosine, 64}, "40,000 rows by cosine");
}

// The rows from `first` on are linked into a graph of those before.
void expect_grown_alike(const MatrixView& rows, int64_t first, int64_t degree, const std::string& what) {
  const auto before = build_walk_graph(rows.slice(0, first), {Metric::l2, degree}, on_cpu());
  const int64_t more = rows.rows() - first;
  HostArray<std::byte> codes(more * before->coder.place_bytes(), "codes", on_cpu());
  before->coder.encode_all(rows.slice(first, more), codes.data(), on_cpu());
  const auto expected = extend_walk_graph(*before, codes.data(), more, 0, 0, on_cpu());
  const auto made = extend_walk_graph(*before, codes.data(), more, 0, 0, on_cuda());
  ASSERT_EQ(made->order.places(), expected->order.places()) << what;
  const int64_t places = expected->order.places();
  expect_same(made->order.rows().data(), expected->order.rows().data(), rows.rows(), what + ": rows of places");
  expect_same(made->order.offsets().data(), expected->order.offsets().data(), places + 1, what + ": places");
  expect_same(made->codes.data(), expected->codes.data(), expected->codes.size(), what + ": codes");
  int64_t differ = 0;
  for (int64_t place = 0; place < places; ++place) {
    differ += std::equal(made->edges.of(place), made->edges.of(place) + degree, expected->edges.of(place)) ? 0 : 1;
  }
  EXPECT_EQ(differ, 0) << "lists of " << places << ": " << what;
  EXPECT_EQ(made->counts.lost, expected->counts.lost) << what;
  EXPECT_EQ(made->counts.clipped, expected->counts.clipped) << what;
}

TEST_F(CudaGraphBuild, Growth) {
  const auto rows = reference::make_kind("low_rank_24", 9000, 1);
  for (const int64_t degree : {16, 32, 48, 128}) {
    expect_grown_alike(rows.view(), 7500, degree, "degree " + std::to_string(degree));
  }
  expect_grown_alike(rows.view().slice(0, 5001), 5000, 32, "one row");
  expect_grown_alike(rows.view().slice(0, 5033), 5000, 32, "33 rows");
  const auto bytes = make_bytes(6000, 40, 3);
  expect_grown_alike(bytes.view(), 5000, 32, "u8");
  for (const int64_t cols : {2, 17, 130}) {
    const auto some = make_floats(Shape::gaussian, 5000, cols, 2);
    expect_grown_alike(some.view(), 4200, 16, std::to_string(cols) + " columns");
  }
  // Rows that look like others, of the graph and of those that come.
  auto equal = make_floats(Shape::gaussian, 6000, 8, 1);
  for (int64_t i = 4500; i < 6000; i += 2) std::memcpy(equal.row(i), equal.row(i % 700), 8 * sizeof(float));
  expect_grown_alike(equal.view(), 5000, 16, "equal rows");
  // The last place of the graph is the nearest of all that come, which offer themselves to it.
  Matrix<float> star(6201, 1100);
  for (int64_t i = 0; i < 5000; ++i) star.row(i)[i % 1100] = 30 + static_cast<float>(i) / 1e3F;
  for (int64_t i = 5001; i < 6201; ++i) {
    star.row(i)[(i - 5001) / 2 % 1100] = (i % 2 == 0 ? 1.0F : -1.0F) * (1 + static_cast<float>(i) / 1e5F);
  }
  expect_grown_alike(star.view(), 5001, 32, "a star");
}

// What a build leaves on the GPU is linked into there, and stays the graph's.
TEST_F(CudaGraphBuild, ArraysThatStay) {
  const auto rows = reference::make_kind("low_rank_24", 9000, 1);
  auto repeated = reference::make_kind("low_rank_24", 9000, 2);
  for (int64_t i = 5100; i < 9000; i += 3) std::memcpy(repeated.row(i), repeated.row(i % 700), 24 * sizeof(float));
  for (const MatrixView& all : {rows.view(), repeated.view()}) {
    WalkArraysOnGpu arrays;
    auto here = build_walk_graph(all.slice(0, 5000), {Metric::l2, 32}, on_cpu());
    auto there = build_walk_graph(all.slice(0, 5000), {Metric::l2, 32}, on_cuda(), &arrays);
    for (int64_t first = 5000; first < all.rows(); first += 1000) {
      ASSERT_TRUE(arrays.there());
      const int64_t places = here->order.places();
      HostArray<uint32_t> lists(places * 32, "lists", on_cpu());
      HostArray<std::byte> codes(places * here->coder.place_bytes(), "codes", on_cpu());
      ASSERT_EQ(arrays.edges.bytes(), lists.bytes());
      ASSERT_EQ(arrays.codes.bytes(), codes.bytes());
      copy_to_host(arrays.edges.data(), lists.bytes(), arrays.device, lists.data());
      copy_to_host(arrays.codes.data(), codes.bytes(), arrays.device, codes.data());
      expect_same(codes.data(), here->codes.data(), codes.size(), "codes there");
      int64_t differ = 0;
      for (int64_t place = 0; place < places; ++place) {
        const uint32_t* const list = here->edges.of(place);
        differ += std::equal(list, list + 32, lists.data() + place * 32) ? 0 : 1;
        differ += std::equal(list, list + 32, there->edges.of(place)) ? 0 : 1;
      }
      ASSERT_EQ(differ, 0) << first << " rows";
      HostArray<std::byte> more(1000 * here->coder.place_bytes(), "codes", on_cpu());
      here->coder.encode_all(all.slice(first, 1000), more.data(), on_cpu());
      here = extend_walk_graph(*here, more.data(), 1000, 0, 0, on_cpu());
      there = extend_walk_graph(*there, more.data(), 1000, 0, 0, on_cuda(), &arrays);
    }
    EXPECT_EQ(there->counts.lost, here->counts.lost);
  }
}

TEST_F(CudaGraphBuild, IndexesAreEqual) {
  const auto rows = reference::make_kind("low_rank_24", 9000, 1);
  for (const char* const factory : {"Graph32", "Graph32x4", "Graph16,SQ8", "PCA12,Graph16"}) {
    Index here(factory, {});
    Index there(factory, {});
    if (!here.trained()) {
      here.train(rows.view(), on_cpu());
      there.train(rows.view(), on_cpu());
    }
    here.add(rows.view(), Ownership::copy, on_cpu());
    there.add(rows.view(), Ownership::copy, on_cuda());
    EXPECT_EQ(here.info().recalls, there.info().recalls) << factory;
    EXPECT_EQ(here.info().beam, there.info().beam) << factory;
    const Neighbors expected = here.search(rows.view().slice(0, 100), {.k = 10, .beam = 24}, on_cpu());
    const Neighbors found = there.search(rows.view().slice(0, 100), {.k = 10, .beam = 24}, on_cuda());
    EXPECT_EQ(std::memcmp(found.ids(), expected.ids(), 1000 * sizeof(int64_t)), 0) << factory;
    EXPECT_EQ(std::memcmp(found.distances(), expected.distances(), 1000 * sizeof(float)), 0) << factory;
  }
}

TEST_F(CudaGraphBuild, ALimitThatIsNamedIsEnough) {
  const auto rows = reference::make_kind("low_rank_24", 9000, 1);
  ResourceOptions options;
  options.device = Device::cuda(0);
  options.device_memory_limit = 1000;
  Index index("Graph32", {});
  try {
    index.add(rows.view(), Ownership::copy, Resources(options));
    ADD_FAILURE() << "1,000 bytes were enough";
  } catch (const OutOfMemory& error) {
    options.device_memory_limit = error.bytes_needed();
    index.add(rows.view(), Ownership::copy, Resources(options));
    EXPECT_EQ(index.size(), 9000);
  }
}

}  // namespace
}  // namespace kith
