// Filtered searches on the GPU against the CPU, bit for bit: every form and share, base rows on the host, on the device
// and in an index, by products and directly, with masked and with listed rows.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/index.hpp>

#include <vector>

namespace kith {
namespace {

class CudaFilterSmall : public OnCuda {};
class CudaFilter : public OnCuda {};

// Two blocks, the second of which begins at no multiple of anything.
Index index_of(const MatrixView& base, Metric metric, bool prepare, const Resources& resources = on_cuda()) {
  Index index("Flat", {.metric = metric, .prepare = prepare});
  const int64_t first = base.rows() * 3 / 7;
  index.add(base.slice(0, first), Ownership::borrow, resources);
  index.add(base.slice(first, base.rows() - first), Ownership::borrow, resources);
  return index;
}

void expect_filter_parity(const MatrixView& queries, const MatrixView& base, int64_t k, Metric metric,
                          const Filters& filters) {
  SCOPED_TRACE(::testing::Message() << queries.rows() << " queries (" << name_of(queries.dtype()) << "), " << base.rows()
                                  << " rows (" << name_of(base.dtype()) << "), " << base.cols() << " columns, k " << k
                                  << ", " << name_of(metric) << ", " << filters.rows.size() << " rows");
  const KnnParams params{k, metric, true, filters.by_mask()};
  const Neighbors expected = knn(queries, base, params, on_cpu());
  const DeviceMatrix device_queries(queries);
  const DeviceMatrix device_base(base);
  for (const RowFilter& filter : {filters.by_mask(), filters.by_bits(), filters.by_rows()}) {
    SCOPED_TRACE(::testing::Message() << "form " << static_cast<int>(filter.form()));
    const KnnParams same{k, metric, true, filter};
    expect_same_bytes(expected, knn(queries, base, same, on_cuda()));
    DeviceResult result(queries.rows(), k);
    knn(device_queries.view(), device_base.view(), result.view, same, on_cuda());
    expect_same_bytes(expected, result.on_host());
  }
  for (const bool prepare : {false, true}) {
    SCOPED_TRACE(prepare ? "prepared" : "not prepared");
    const Index index = index_of(base, metric, prepare);
    expect_same_bytes(expected, index.search(queries, {.k = k, .filter = filters.by_rows()}, on_cuda()));
    DeviceResult result(queries.rows(), k);
    index.search(device_queries.view(), result.view, {.k = k, .filter = filters.by_bits()}, on_cuda());
    expect_same_bytes(expected, result.on_host());
  }
}

TEST_F(CudaFilterSmall, EveryFormShareAndPlace) {
  for (const int64_t rows : {1, 90, 4500}) {  // directly, and by products
    for (const double share : rows == 90 ? std::vector{0.0, 0.1, 1.0} : std::vector{0.01, 0.97}) {
      expect_filter_parity(random_vectors(DType::f32, 3, 9, 1).view(), random_vectors(DType::f32, rows, 9, 2).view(), 7,
                           Metric::cosine, Filters(rows, share, 3));
    }
  }
}

TEST_F(CudaFilterSmall, BytesAndOtherMetrics) {
  const Vectors queries = random_vectors(DType::u8, 3, 17, 4);
  const Vectors base = random_vectors(DType::u8, 4500, 17, 5, 3);
  for (const Metric metric : {Metric::inner_product, Metric::hamming}) {
    for (const double share : {0.02, 0.97}) {
      expect_filter_parity(queries.view(), base.view(), 6, metric, Filters(4500, share, 6));
    }
  }
}

TEST_F(CudaFilter, EveryMetricDtypeAndShareThroughProducts) {
  for (const DType dtype : kAllDtypes) {
    for (const Metric metric : kEveryMetric) {
      const Stored queries(dtype, 70, 40, 7, metric != Metric::chi_square);
      const Stored base(dtype, 13000, 40, 8, metric != Metric::chi_square);
      for (const double share : {0.05, 0.6, 0.98}) {
        expect_filter_parity(queries.view(), base.view(), 9, metric, Filters(13000, share, 9));
      }
    }
  }
}

TEST_F(CudaFilter, LargeKThroughProducts) {
  const Vectors base = random_vectors(DType::f32, 120000, 8, 17);
  for (const double share : {0.7, 0.98}) {
    expect_filter_parity(random_vectors(DType::f32, 20, 8, 18).view(), base.view(), 1400, Metric::sqeuclidean,
                         Filters(120000, share, 19));
  }
}

TEST_F(CudaFilter, AnyKAndNumberOfQueries) {
  const Vectors base = random_vectors(DType::f32, 40000, 24, 10);
  for (const int64_t queries : {1, 300}) {
    for (const int64_t k : {1, 33, 400, 2000}) {
      for (const double share : {0.001, 0.5, 0.99}) {
        expect_filter_parity(random_vectors(DType::f32, queries, 24, 11).view(), base.view(), k, Metric::sqeuclidean,
                             Filters(40000, share, 12));
      }
    }
  }
}

TEST_F(CudaFilter, HardData) {
  for_each_hard_data(9000, 12, 13, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : kAllMetrics) {
      for (const double share : {0.2, 0.97}) {
        expect_filter_parity(queries.view(), base.view(), 12, metric, Filters(9000, share, 14));
      }
    }
  });
}

TEST_F(CudaFilter, QueriesOfAnotherDtypeThanThePreparedOnes) {
  const Vectors base = random_vectors(DType::u8, 9000, 16, 15);
  const Vectors queries = random_vectors(DType::f32, 20, 16, 16);
  for (const double share : {0.1, 0.99}) {
    expect_filter_parity(queries.view(), base.view(), 5, Metric::l2, Filters(9000, share, 17));
  }
}

TEST_F(CudaFilter, RowsLeftOutAreNotLookedAtAndKeptOnesAreNamed) {
  Vectors base = random_vectors(DType::f32, 9000, 8, 18);
  base.row(8765)[3] = NAN;
  const Vectors queries = random_vectors(DType::f32, 4, 8, 19);
  const DeviceMatrix device_base(base);
  for (const int64_t last : {60, 9000}) {  // directly, and by products
    std::vector<uint8_t> mask(9000, 0);
    std::fill_n(mask.begin(), last, uint8_t{1});
    mask[7] = mask[8765] = 0;
    const KnnParams params{3, Metric::l2, true, RowFilter::mask(mask.data(), 9000)};
    const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
    expect_same_bytes(expected, knn(queries.view(), base.view(), params, on_cuda()));
    expect_same_bytes(expected, knn(queries.view(), device_base.view(), params, on_cuda()));
    mask[8765] = 1;
    for (const MatrixView& rows : {base.view(), device_base.view()}) {
      EXPECT_NE(text_thrown<InvalidArgument>([&] { knn(queries.view(), rows, params, on_cuda()); }).find("row 8765"),
                std::string::npos);
    }
  }
}

TEST_F(CudaFilter, EveryLimitGivesTheSameBytes) {
  const Vectors queries = random_vectors(DType::f32, 40, 32, 20);
  const Vectors base = random_vectors(DType::f32, 60000, 32, 21);
  for (const double share : {0.1, 0.99}) {
    const Filters filters(60000, share, 22);
    const KnnParams params{15, Metric::cosine, true, filters.by_bits()};
    const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
    for (const int64_t device_limit : {int64_t{100} << 10, int64_t{24} << 20}) {
      for (const int64_t host_limit : {int64_t{1} << 20, int64_t{128} << 20}) {
        ResourceOptions options = cuda_options();
        options.device_memory_limit = device_limit;
        options.host_memory_limit = host_limit;
        expect_same_bytes(expected, knn(queries.view(), base.view(), params, Resources(options)));
      }
    }
    // In several pieces of a prepared base.
    ResourceOptions options = cuda_options();
    options.device_memory_limit = int64_t{64} << 20;
    const Resources limited(options);
    const Index index = index_of(base.view(), Metric::cosine, true, limited);
    for (const int64_t count : {1, 40}) {
      const Neighbors found =
          index.search(queries.view().slice(0, count), {.k = 15, .filter = filters.by_rows()}, limited);
      for (int64_t q = 0; q < count; ++q) {
        for (int64_t i = 0; i < 15; ++i) ASSERT_EQ(found.ids(q)[i], expected.ids(q)[i]);
      }
    }
  }
}

// The next piece comes while one is searched.
TEST_F(CudaFilter, ManyPiecesFromTheHost) {
  const Vectors base = random_vectors(DType::f32, 150000, 100, 26);
  const Vectors queries = random_vectors(DType::f32, 30, 100, 27);
  const Filters most(150000, 0.95, 28);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = int64_t{48} << 20;
  for (const RowFilter& filter : {RowFilter(), most.by_bits()}) {
    const KnnParams params{10, Metric::cosine, true, filter};
    const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
    const Resources limited(options);
    for (int i = 0; i < 3; ++i) expect_same_bytes(expected, knn(queries.view(), base.view(), params, limited));
  }
  // A row in the last piece, while others are on their way.
  Vectors bad = base;
  bad.row(149990)[7] = NAN;
  EXPECT_NE(text_thrown<InvalidArgument>([&] {
              knn(queries.view(), bad.view(), {10, Metric::l2}, Resources(options));
            }).find("base row 149990"),
            std::string::npos);
  bad.row(3)[7] = NAN;
  EXPECT_NE(text_thrown<InvalidArgument>([&] {
              knn(queries.view(), bad.view(), {10, Metric::l2}, Resources(options));
            }).find("base row 3 "),
            std::string::npos);
}

// Rows by number pass through pinned memory where they are many.
TEST_F(CudaFilter, ManyRowsFromTheHost) {
  const Vectors base = random_vectors(DType::f32, 90000, 130, 23, 2);
  const Vectors queries = random_vectors(DType::f32, 10, 130, 24);
  const Filters filters(90000, 0.9, 25);
  const KnnParams params{10, Metric::l2, true, filters.by_mask()};
  expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()),
                    knn(queries.view(), base.view(), params, on_cuda()));
}

}  // namespace
}  // namespace kith
