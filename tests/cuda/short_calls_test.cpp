// Calls of one to four queries on a GPU go ways of their own, and give the same bytes as on the CPU and as in batches:
// exact search of rows on the device, indexes and lists; whatever the data, shapes, filters and memory, and from
// several threads at once.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "reference/data.hpp"
#include "reference/taken_params.hpp"

#include <kith/index.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaShortCallsSmall : public OnCuda {};

// Rows on the device, with results on the host and there.
void expect_short_knn(const MatrixView& queries, const MatrixView& base, const KnnParams& params) {
  const DeviceMatrix rows(base);
  const DeviceMatrix asked(queries);
  const Neighbors expected = knn(queries, base, params, on_cpu());
  expect_same_bytes(expected, knn(queries, rows.view(), params, on_cuda()));
  const DeviceResult found(queries.rows(), params.k);
  knn(asked.view(), rows.view(), found.view, params, on_cuda());
  expect_same_bytes(expected, found.on_host());
}

TEST_F(CudaShortCallsSmall, RowsOnTheDevice) {
  for (const int64_t rows : {1, 63, 64, 65, 1000, 70001}) {
    for (const int64_t cols : {1, 16, 17, 30, 128, 200}) {
      const Vectors base = random_vectors(DType::f32, rows, cols, 1, cols == 30 ? 3 : 0);
      for (const int64_t count : {1, 2, 3, 4, 5}) {
        const Vectors queries = random_vectors(DType::f32, count, cols, 2);
        for (const int64_t k : {1, 10, 100, 256, 257}) {
          if (rows > 1000 && (count > 2 || cols == 200)) continue;
          SCOPED_TRACE(::testing::Message() << rows << " x " << cols << ", " << count << " queries, k " << k);
          expect_short_knn(queries.view(), base.view(), {k, Metric::l2});
        }
      }
    }
  }
}

TEST_F(CudaShortCallsSmall, EveryMetricAndType) {
  for (const DType dtype : kAllDtypes) {
    const Stored base(dtype, 5000, 40, 1, dtype != DType::u8);
    const Stored queries(dtype, 4, 40, 2, dtype != DType::u8);
    for (const Metric metric : kAllMetrics) {
      SCOPED_TRACE(::testing::Message() << name_of(dtype) << " " << name_of(metric));
      for (const int64_t count : {1, 2, 4}) {
        expect_short_knn(queries.view().slice(0, count), base.view(), {20, metric});
      }
    }
  }
}

TEST_F(CudaShortCallsSmall, HardData) {
  for_each_hard_data(20000, 48, 5, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : kAllMetrics) {
      const DeviceMatrix rows(base);
      Index index("Flat", {.metric = metric});
      index.add(base.view(), Ownership::borrow, on_cuda());
      for (const int64_t first : {0, 7, 19}) {
        const MatrixView query = queries.view().slice(first, 1);
        const KnnParams params{30, metric};
        const Neighbors expected = knn(query, base.view(), params, on_cpu());
        expect_same_bytes(expected, knn(query, rows.view(), params, on_cuda()));
        expect_same(expected, index.search(query, {.k = 30}, on_cuda()), "index");
      }
    }
  });
}

TEST_F(CudaShortCallsSmall, FiltersOfRowsOnTheDevice) {
  const Vectors base = random_vectors(DType::f32, 30000, 64, 1);
  const Vectors queries = random_vectors(DType::f32, 3, 64, 2);
  const DeviceMatrix rows(base);
  for (const double share : {0.0, 0.001, 0.5, 0.99}) {
    const Filters filters(30000, share, 3);
    for (const RowFilter& filter : {filters.by_mask(), filters.by_bits(), filters.by_rows()}) {
      for (const Metric metric : kAllMetrics) {
        const KnnParams params{25, metric, true, filter};
        Index index("Flat", {.metric = metric});
        index.add(base.view(), Ownership::borrow, on_cuda());
        for (const int64_t count : {1, 3}) {
          const MatrixView some = queries.view().slice(0, count);
          const Neighbors expected = knn(some, base.view(), params, on_cpu());
          expect_same_bytes(expected, knn(some, rows.view(), params, on_cuda()));
          expect_same(expected, index.search(some, {.k = 25, .filter = filter}, on_cuda()), "index");
        }
      }
    }
  }
}

// One query by a copy of the rows in bytes, which the first such search makes.
TEST_F(CudaShortCallsSmall, IndexesWithACopyInBytes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t cols : {1, 15, 16, 17, 100, 128, 768, 1536}) {
      for (const int64_t rows : {5000, 33000}) {
        if (cols > 200 && (rows > 5000 || dtype == DType::bf16)) continue;
        const Stored base(dtype, rows, cols, 1, true);
        const Stored queries(dtype, 3, cols, 2, true);
        for (const Metric metric : kAllMetrics) {
          SCOPED_TRACE(::testing::Message()
                       << rows << " x " << cols << " " << name_of(dtype) << " " << name_of(metric));
          Index index("Flat", {.metric = metric});
          index.add(base.view(), Ownership::borrow, on_cuda());
          const int64_t before = index.info().bytes.device;
          for (const int64_t k : {1, 10, 100, 256, 300}) {
            const Neighbors expected = knn(queries.view(), base.view(), {k, metric}, on_cpu());
            for (const int64_t q : {0, 2}) {
              const MatrixView query = queries.view().slice(q, 1);
              const DeviceMatrix asked(query);
              const DeviceResult there(1, k);
              const Neighbors found = index.search(query, {.k = k}, on_cuda());
              index.search(asked.view(), there.view, {.k = k}, on_cuda());
              const Neighbors brought = there.on_host();
              for (int64_t i = 0; i < k; ++i) {
                ASSERT_EQ(expected.ids(q)[i], found.ids(0)[i]) << "k " << k << ", place " << i;
                ASSERT_EQ(expected.distances(q)[i], found.distances(0)[i]) << "k " << k << ", place " << i;
                ASSERT_EQ(expected.ids(q)[i], brought.ids(0)[i]) << "k " << k << ", place " << i;
                ASSERT_EQ(expected.distances(q)[i], brought.distances(0)[i]) << "k " << k << ", place " << i;
              }
            }
          }
          EXPECT_GE(index.info().bytes.device, before + rows * cols);
        }
      }
    }
  }
}

// Rows that come after the copy was made, and rows that are gone.
TEST_F(CudaShortCallsSmall, IndexesThatChange) {
  const auto base = make_floats(Shape::gaussian, 12000, 64, 1);
  const auto queries = make_floats(Shape::gaussian, 1, 64, 2);
  Index index("Flat");
  index.add(base.view().slice(0, 8000), Ownership::copy, on_cuda());
  const auto expect = [&] {
    expect_same_bytes(index.search(queries.view(), {.k = 20}, on_cpu()),
                      index.search(queries.view(), {.k = 20}, on_cuda()));
  };
  expect();
  index.add(base.view().slice(8000, 500), Ownership::copy, on_cuda());
  expect();
  index.add(base.view().slice(8500, 3500), Ownership::copy, on_cuda());
  expect();
  const Neighbors found = index.search(queries.view(), {.k = 5}, on_cpu());
  index.remove({found.ids(0), 5, {}}, on_cuda());
  expect();
}

// Values that are not finite are refused as in batches, queries before rows.
TEST_F(CudaShortCallsSmall, ValuesThatAreNotFinite) {
  for (const Metric metric : kAllMetrics) {
    Vectors base = random_vectors(DType::f32, 5000, 32, 1);
    Vectors queries = random_vectors(DType::f32, 2, 32, 2);
    const auto refused = [&] {
      const DeviceMatrix rows(base);
      const DeviceMatrix asked(queries);
      return text_thrown<InvalidArgument>([&] { (void)knn(asked.view(), rows.view(), {5, metric}, on_cuda()); });
    };
    const auto expected = [&] {
      return text_thrown<InvalidArgument>([&] { (void)knn(queries.view(), base.view(), {5, metric}, on_cpu()); });
    };
    EXPECT_EQ(refused(), "");
    base.row(4321)[31] = std::numeric_limits<float>::infinity();
    base.row(4000)[0] = std::nanf("");
    EXPECT_EQ(refused(), expected());
    EXPECT_NE(refused(), "");
    queries.row(1)[7] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(refused(), expected());
  }
}

// Lists: one and few queries answer as in a batch of all.
TEST_F(CudaShortCallsSmall, ListsAnswerAsInBatches) {
  const auto base = make_floats(Shape::gaussian, 6000, 32, 1);
  const auto queries = make_floats(Shape::gaussian, 40, 32, 2);
  const Filters filters(6000, 0.02, 3);
  const RowFilter filter = filters.by_mask();
  for (const char* const factory : {"IVF50,Flat", "IVF50,SQ8", "IVF50,PQ8", "IVF50,SQfp16", "IVF7,RQ2x6", "PQ4", "SQ8",
                                    "IVF50,PQ8,RFlat", "IVF300,Flat"}) {
    for (const Metric metric : kAllMetrics) {
      const std::string what = std::string(factory) + " " + std::string(name_of(metric));
      Index index(factory, {.metric = metric});
      index.train(base.view(), on_cpu());
      index.add(base.view().slice(0, 5000), Ownership::copy, on_cpu());
      index.add(base.view().slice(5000, 1000), Ownership::copy, on_cpu());
      for (const int64_t probes : {1, 5, 33, 1000}) {
        for (const int64_t k : {1, 10, 200}) {
          for (const bool filtered : {false, true}) {
            SearchParams params = taken_by(index, {.k = k, .probes = probes});
            if (filtered) params.filter = filter;
            const Neighbors expected = index.search(queries.view(), params, on_cpu());
            for (const int64_t first : {0, 17}) {
              for (const int64_t count : {1, 3}) {
                const MatrixView some = queries.view().slice(first, count);
                const DeviceMatrix asked(some);
                const DeviceResult there(count, k);
                const Neighbors found = index.search(some, params, on_cuda());
                index.search(asked.view(), there.view, params, on_cuda());
                const Neighbors brought = there.on_host();
                for (int64_t q = 0; q < count; ++q) {
                  for (int64_t i = 0; i < k; ++i) {
                    ASSERT_EQ(expected.ids(first + q)[i], found.ids(q)[i]) << what << ", k " << k << ", place " << i;
                    ASSERT_EQ(expected.ids(first + q)[i], brought.ids(q)[i]) << what << ", k " << k << ", place " << i;
                    ASSERT_EQ(expected.distances(first + q)[i], found.distances(q)[i]) << what;
                    ASSERT_EQ(expected.distances(first + q)[i], brought.distances(q)[i]) << what;
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

// Several threads, each with queries of its own, on one index and on its own stream.
TEST_F(CudaShortCallsSmall, ThreadsAtOnce) {
  const auto base = make_floats(Shape::gaussian, 20000, 64, 1);
  const auto queries = make_floats(Shape::gaussian, 64, 64, 2);
  for (const char* const factory : {"Flat", "IVF64,Flat", "IVF64,PQ8"}) {
    Index index(factory);
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cuda());
    const Neighbors expected = index.search(queries.view(), taken_by(index, {.k = 10, .probes = 8}), on_cpu());
    std::vector<int> wrong(8);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        const Resources resources = on_cuda();
        for (int turn = 0; turn < 40; ++turn) {
          const int64_t query = (thread * 11 + turn * 7) % 64;
          const Neighbors found =
              index.search(queries.view().slice(query, 1), taken_by(index, {.k = 10, .probes = 8}), resources);
          for (int64_t i = 0; i < 10; ++i) {
            if (found.ids(0)[i] != expected.ids(query)[i] || found.distances(0)[i] != expected.distances(query)[i]) {
              ++wrong[static_cast<size_t>(thread)];
            }
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int count : wrong) EXPECT_EQ(count, 0) << factory;
  }
}

// Ever less memory, down to what is refused: what is found stays the same.
TEST_F(CudaShortCallsSmall, WithLittleMemory) {
  const auto base = make_floats(Shape::gaussian, 20000, 64, 1);
  const auto queries = make_floats(Shape::gaussian, 2, 64, 2);
  const DeviceMatrix rows(base.view());
  const Neighbors expected = knn(queries.view(), base.view(), {10, Metric::l2}, on_cpu());
  bool refused = false;
  for (int64_t limit = int64_t{4} << 20; limit > 16; limit = limit * 2 / 3) {
    ResourceOptions options = cuda_options();
    options.device_memory_limit = limit;
    try {
      expect_same_bytes(expected, knn(queries.view(), rows.view(), {10, Metric::l2}, Resources(options)));
      EXPECT_FALSE(refused) << limit;
    } catch (const OutOfMemory&) {
      refused = true;
    }
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace kith
