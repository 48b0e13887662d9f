// Range search on the GPU against the CPU, bit for bit: every metric and dtype, radii that hold nothing, a few or all
// rows, filters, indexes, limits.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/index.hpp>

#include "io/temporary_directory.hpp"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace kith {
namespace {

class CudaRangeSmall : public OnCuda {};
class CudaRange : public OnCuda {};

// A result in the device's memory, brought to the host.
RangeNeighbors on_host(const RangeNeighbors& found) {
  EXPECT_EQ(found.space(), MemorySpace::cuda(0));
  RangeNeighbors copy(found.queries(), found.size(), Resources());
  const auto bring = [](void* to, const void* from, int64_t bytes) {
    if (bytes > 0) KITH_CUDA_CHECK(cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost));
  };
  bring(copy.offsets(), found.offsets(), (found.queries() + 1) * 8);
  bring(copy.ids(), found.ids(), found.size() * 8);
  bring(copy.distances(), found.distances(), found.size() * 4);
  return copy;
}

// Memory that no limit counts.
std::shared_ptr<void> device_memory(int64_t count, int64_t bytes_each) {
  const auto memory = std::make_shared<DeviceBytes>(static_cast<size_t>(count * bytes_each));
  return {memory, memory->data()};
}

// On the host, and in the device's memory, which is the caller's.
void expect_range_parity(const MatrixView& queries, const MatrixView& base, const RangeParams& params,
                         const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << queries.rows() << " queries (" << name_of(queries.dtype()) << "), "
                                    << base.rows() << " rows (" << name_of(base.dtype()) << "), " << base.cols()
                                    << " columns, radius " << params.radius << ", " << name_of(params.metric));
  const RangeNeighbors expected = range_search(queries, base, params, on_cpu());
  expect_same_bytes(expected, range_search(queries, base, params, cuda));
  RangeParams staying = params;
  staying.result_space = MemorySpace::cuda(0);
  staying.allocate = device_memory;
  expect_same_bytes(expected, on_host(range_search(queries, base, staying, cuda)));
}

// The distance of the first query's n-th neighbour: a radius with something on its edge.
float radius_of(const MatrixView& queries, const MatrixView& base, Metric metric, int64_t n) {
  return knn(queries.slice(0, 1), base, {n, metric}, on_cpu()).distances(0)[n - 1];
}

TEST_F(CudaRangeSmall, RadiiForNothingAFewAndAll) {
  for (const int64_t rows : {1, 200, 4500}) {  // directly, and by products
    const int64_t cols = rows == 200 ? 1 : 13;
    const Vectors queries = random_vectors(DType::f32, 5, cols, 1);
    const Vectors base = random_vectors(DType::f32, rows, cols, 2);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      for (const int64_t n : {(rows + 19) / 20, rows}) {
        expect_range_parity(queries.view(), base.view(), {radius_of(queries.view(), base.view(), metric, n), metric});
      }
      for (const float radius : {-1.0f, INFINITY}) {
        expect_range_parity(queries.view(), base.view(), {radius, metric});
      }
    }
  }
}

TEST_F(CudaRange, RadiiAtTheEnds) {
  const Vectors queries = random_vectors(DType::f32, 9, 6, 26);
  const Vectors base = random_vectors(DType::f32, 5000, 6, 27);
  for (const Metric metric : kAllMetrics) {
    for (const float radius : {-INFINITY, -1e-30f, -0.0f, 0.0f, 1e-45f, 3e38f}) {
      expect_range_parity(queries.view(), base.view(), {radius, metric});
      expect_range_parity(base.view().slice(7, 9), base.view(), {radius, metric});  // at distance 0 of themselves
    }
  }
}

// All rows of queries that are more than a word tells apart, for some of which products have found fewer.
TEST_F(CudaRange, StaysOnTheDeviceHoweverManyThereAre) {
  for (const auto& [query_count, rows, cols] :
       {std::tuple<int64_t, int64_t, int64_t>{70, 30000, 8}, {300, 6000, 40}, {2, 200000, 3}, {16, 20000, 47}}) {
    const Vectors queries = random_vectors(DType::f32, query_count, cols, 31);
    const Vectors base = random_vectors(DType::f32, rows, cols, 32);
    const DeviceMatrix there(base);
    const DeviceMatrix queries_there(queries);
    for (const int64_t n : {int64_t{5}, rows / 9, rows}) {
      const float radius = radius_of(queries.view(), base.view(), Metric::l2, n);
      SCOPED_TRACE(::testing::Message() << query_count << " queries, " << rows << " rows, radius " << radius);
      RangeParams params{radius, Metric::l2};
      const RangeNeighbors expected = range_search(queries.view(), base.view(), params, on_cpu());
      params.result_space = MemorySpace::cuda(0);
      expect_same_bytes(expected, on_host(range_search(queries_there.view(), there.view(), params, Resources())));
    }
  }
}

// Memory that the caller gives, and a limit that leaves the device no room: the host puts the result together.
TEST_F(CudaRange, FillsTheCallersMemoryOnTheDevice) {
  const Vectors queries = random_vectors(DType::f32, 40, 16, 33);
  const Vectors base = random_vectors(DType::f32, 20000, 16, 34);
  RangeParams params{1e6f, Metric::l2};
  const RangeNeighbors expected = range_search(queries.view(), base.view(), params, on_cpu());
  params.result_space = MemorySpace::cuda(0);
  for (const int64_t limit : {kNoLimit, int64_t{8} << 20}) {
    int64_t bytes = 0;
    params.allocate = [&](int64_t count, int64_t bytes_each) -> std::shared_ptr<void> {
      bytes += count * bytes_each;
      return device_memory(count, bytes_each);
    };
    ResourceOptions options = cuda_options();
    options.device_memory_limit = limit;
    expect_same_bytes(expected, on_host(range_search(queries.view(), base.view(), params, Resources(options))));
    EXPECT_EQ(bytes, 41 * 8 + 40 * 20000 * 12) << limit;
  }
  EXPECT_THROW(range_search(queries.view(), base.view(), params, on_cpu()), Unsupported);
}

TEST_F(CudaRangeSmall, NoQueriesAndNoRows) {
  const Vectors some = random_vectors(DType::f32, 9, 4, 3);
  const Vectors none = random_vectors(DType::f32, 0, 4, 3);
  expect_range_parity(none.view(), some.view(), {1, Metric::l2});
  expect_range_parity(some.view(), none.view(), {1, Metric::l2});
}

TEST_F(CudaRange, EveryMetricAndDtypeDirectly) {
  for (const DType dtype : kAllDtypes) {
    for (const Metric metric : kEveryMetric) {
      const Stored queries(dtype, 4, 19, 4, metric != Metric::chi_square);
      const Stored base(dtype, 150, 19, 5, metric != Metric::chi_square);
      expect_range_parity(queries.view(), base.view(), {radius_of(queries.view(), base.view(), metric, 30), metric});
    }
  }
  const Stored bits(DType::u8, 150, 6, 6, false);
  expect_range_parity(bits.view(), bits.view(), {20, Metric::hamming});
}

TEST_F(CudaRange, EveryMetricAndDtypeThroughProducts) {
  for (const DType dtype : kAllDtypes) {
    for (const Metric metric : kAllMetrics) {
      for (const DType query_dtype : {dtype, DType::f32}) {
        const Stored queries(query_dtype, 60, 48, 7, true);
        const Stored base(dtype, 9000, 48, 8, true);
        for (const int64_t n : {3, 300}) {
          expect_range_parity(queries.view(), base.view(), {radius_of(queries.view(), base.view(), metric, n), metric});
        }
      }
    }
  }
}

// Lists of candidates hold 2,048: with more a piece is searched in slices, and with still more directly.
TEST_F(CudaRange, MoreThanTheListsHold) {
  const Vectors queries = random_vectors(DType::f32, 40, 8, 9);
  const Vectors base = random_vectors(DType::f32, 150000, 8, 10);
  for (const Metric metric : kAllMetrics) {
    for (const int64_t n : {2000, 2100, 9000, 60000, 150000}) {
      expect_range_parity(queries.view(), base.view(), {radius_of(queries.view(), base.view(), metric, n), metric});
    }
  }
}

TEST_F(CudaRange, ManyQueries) {
  const Vectors queries = random_vectors(DType::u8, 9000, 16, 11);
  const Vectors base = random_vectors(DType::u8, 20000, 16, 12);
  for (const int64_t n : {1, 20, 1000}) {
    expect_range_parity(queries.view(), base.view(),
                        {radius_of(queries.view(), base.view(), Metric::sqeuclidean, n), Metric::sqeuclidean});
  }
}

TEST_F(CudaRange, HardData) {
  for_each_hard_data(9000, 12, 13, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : kAllMetrics) {
      for (const int64_t n : {1, 50, 4000}) {
        expect_range_parity(queries.view(), base.view(), {radius_of(queries.view(), base.view(), metric, n), metric});
      }
    }
  });
}

TEST_F(CudaRange, FiltersIndexesAndDeviceMemory) {
  const Vectors queries = random_vectors(DType::f32, 30, 20, 14);
  const Vectors base = random_vectors(DType::f32, 13000, 20, 15);
  const DeviceMatrix device_queries(queries);
  const DeviceMatrix device_base(base);
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::l1}) {
    Index index("Flat", {.metric = metric});
    index.add(base.view().slice(0, 5001), Ownership::borrow, on_cuda());
    index.add(base.view().slice(5001, 7999), Ownership::borrow, on_cuda());
    for (const int64_t n : {40, 5000}) {
      const float radius = radius_of(queries.view(), base.view(), metric, n);
      for (const double share : {0.0, 0.03, 0.6, 0.98, 1.0}) {
        SCOPED_TRACE(::testing::Message() << name_of(metric) << ", " << share << " of the rows, radius " << radius);
        const Filters filters(13000, share, 16);
        const RangeParams params{radius, metric, true, filters.by_bits()};
        const RangeNeighbors expected = range_search(queries.view(), base.view(), params, on_cpu());
        expect_same_bytes(expected, range_search(queries.view(), base.view(), params, on_cuda()));
        expect_same_bytes(expected, range_search(device_queries.view(), device_base.view(), params, Resources()));
        expect_same_bytes(expected,
                          on_host(index.range_search(
                              device_queries.view(),
                              {.radius = radius, .filter = filters.by_mask(), .result_space = MemorySpace::cuda(0)})));
        expect_same_bytes(expected, index.range_search(device_queries.view(),
                                                       {.radius = radius, .filter = filters.by_rows()}, on_cuda()));
        const RangeNeighbors one =
            index.range_search(queries.view().slice(0, 1), {.radius = radius, .filter = filters.by_mask()}, on_cuda());
        ASSERT_EQ(one.size(), expected.offsets()[1]);
        for (int64_t i = 0; i < one.size(); ++i) ASSERT_EQ(one.ids()[i], expected.ids()[i]);
      }
    }
  }
}

TEST_F(CudaRange, NotFiniteAndNegativeAreRefusedAndNansNeverInRange) {
  Vectors base = random_vectors(DType::f32, 9000, 8, 17);
  base.row(4321)[3] = NAN;
  const Vectors queries = random_vectors(DType::f32, 4, 8, 18);
  for (const Metric metric : {Metric::l2, Metric::linf}) {
    EXPECT_NE(text_thrown<InvalidArgument>([&] {
                range_search(queries.view(), base.view(), {1, metric}, on_cuda());
              }).find("base row 4321"),
              std::string::npos);
    expect_range_parity(queries.view(), base.view(), {INFINITY, metric, false});
    expect_range_parity(queries.view(), base.view(), {1, metric, false});
  }
  EXPECT_NE(text_thrown<InvalidArgument>([&] {
              range_search(queries.view(), queries.view(), {1, Metric::chi_square}, on_cuda());
            }).find("below zero"),
            std::string::npos);
}

// What stays on the device, and is all in range, is found without products, which look at the values elsewhere.
TEST_F(CudaRange, NotFiniteIsRefusedWhereAllIsInRange) {
  const Vectors good = random_vectors(DType::f32, 20000, 8, 41);
  Vectors bad = good;
  bad.row(4321)[3] = INFINITY;
  const DeviceMatrix device_good(good);
  const DeviceMatrix device_bad(bad);
  RangeParams params{1e6f, Metric::l2};
  params.result_space = MemorySpace::cuda(0);
  params.allocate = device_memory;
  const auto text = [&](const MatrixView& queries, const MatrixView& base) {
    return text_thrown<InvalidArgument>([&] { range_search(queries, base, params, on_cuda()); });
  };
  EXPECT_NE(text(device_good.view().slice(0, 40), device_bad.view()).find("base row 4321"), std::string::npos);
  EXPECT_NE(text(device_bad.view().slice(4300, 40), device_good.view()).find("query row 21"), std::string::npos);
}

TEST_F(CudaRange, EveryLimitGivesTheSameBytes) {
  const Vectors queries = random_vectors(DType::f32, 300, 16, 19);
  const Vectors base = random_vectors(DType::f32, 30000, 16, 20);
  for (const Metric metric : {Metric::cosine, Metric::l1}) {
    const float radius = radius_of(queries.view(), base.view(), metric, 100);
    for (const int64_t limit : {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20, int64_t{64} << 20}) {
      ResourceOptions options = cuda_options();
      options.device_memory_limit = limit;
      expect_range_parity(queries.view(), base.view(), {radius, metric}, Resources(options));
    }
  }
}

TEST_F(CudaRange, MoreThanTheHostLimitHoldsIsAnErrorThatSaysSo) {
  const Vectors queries = random_vectors(DType::f32, 100, 4, 21);
  const Vectors base = random_vectors(DType::f32, 20000, 4, 22);
  ResourceOptions options = cuda_options();
  options.threads = 2;
  options.host_memory_limit = int64_t{8} << 20;
  try {
    range_search(queries.view(), base.view(), {100, Metric::l2}, Resources(options));
    FAIL() << "two million rows need more than 8 MiB";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("2000000 rows"), std::string::npos) << error.what();
    options.host_memory_limit = error.bytes_needed();
    expect_range_parity(queries.view(), base.view(), {100, Metric::l2}, Resources(options));
  }
}

TEST_F(CudaRange, FilesAreSearchedUnderALimit) {
  const testing::TemporaryDirectory directory;
  const Vectors queries = random_vectors(DType::f32, 100, 4, 23);
  const Vectors base = random_vectors(DType::f32, 20000, 4, 24);
  write_vectors(directory.path("base.fbin"), base.view());
  write_vectors(directory.path("queries.fbin"), queries.view());
  const RangeNeighbors expected = range_search(queries.view(), base.view(), {0.8f, Metric::l2}, on_cpu());
  ResourceOptions options = cuda_options();
  options.host_memory_limit = int64_t{8} << 20;
  int64_t seen = 0;
  range_search(
      VectorFile(directory.path("queries.fbin")), VectorFile(directory.path("base.fbin")),
      [&](int64_t first, const RangeView& part) {
        const int64_t before = expected.offsets()[first];
        for (int64_t q = 1; q <= part.queries; ++q) {
          ASSERT_EQ(expected.offsets()[first + q], before + part.offsets[q]);
        }
        for (int64_t i = 0; i < part.size(); ++i) {
          ASSERT_EQ(expected.ids()[before + i], part.ids[i]);
          ASSERT_EQ(expected.distances()[before + i], part.distances[i]);
        }
        seen += part.queries;
      },
      {0.8f, Metric::l2}, Resources(options));
  EXPECT_EQ(seen, 100);
}

TEST_F(CudaRange, CancelStopsTheSearch) {
  const Vectors vectors = random_vectors(DType::f32, 9000, 16, 25);
  ResourceOptions options = cuda_options();
  options.cancel.request();
  EXPECT_THROW(range_search(vectors.view(), vectors.view(), {0.5f, Metric::l2}, Resources(options)), Cancelled);
}

}  // namespace
}  // namespace kith
