// Vectors of one, two and three columns on a GPU: the same bytes as on the CPU, where very many rows lie closer
// together than halves tell apart, or in the same direction.
#include "cuda/kmeans_parity.hpp"
#include "cuda/parity.hpp"
#include "reference/data.hpp"

#include <kith/index.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaNarrowSmall : public OnCuda {};
class CudaNarrow : public OnCuda {};
class CudaNarrowTiny : public OnCuda {};  // so little that compute-sanitizer is done with it in seconds

constexpr Metric kWithDirections[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

TEST_F(CudaNarrowSmall, HardData) {
  for (const int64_t cols : {1, 2}) {
    for_each_hard_data(20000, cols, 3, [](const Vectors& queries, const Vectors& base) {
      for (const Metric metric : kWithDirections) {
        expect_parity(queries, base, {.k = 10, .metric = metric});
        expect_parity(queries, base, {.k = 200, .metric = metric});
      }
    });
  }
}

TEST_F(CudaNarrowSmall, EveryDtypeAndFilter) {
  const Filters few(30000, 0.1, 5);
  const Filters most(30000, 0.9, 6);
  for (const int64_t cols : {1, 2}) {
    for (const DType dtype : kAllDtypes) {
      const Stored base(dtype, 30000, cols, 1, dtype != DType::u8);
      const Stored queries(dtype == DType::f16 ? DType::f32 : dtype, 130, cols, 2, dtype != DType::u8);
      for (const Metric metric : kWithDirections) {
        for (const RowFilter& filter : {RowFilter(), few.by_rows(), most.by_mask()}) {
          KnnParams params{.k = 12, .metric = metric};
          params.filter = filter;
          SCOPED_TRACE(::testing::Message() << name_of(dtype) << " " << cols << " " << name_of(metric));
          expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()),
                            knn(queries.view(), base.view(), params, on_cuda()));
        }
      }
    }
  }
}

// Enough rows that failed queries are searched among fewer of them, where any fail.
TEST_F(CudaNarrow, ManyRowsAndQueries) {
  for (const int64_t cols : {1, 2, 3}) {
    Vectors base = make_vectors(
        150000, cols,
        [&, noise = make_floats(Shape::gaussian, 150000, cols, 1)](int64_t i, int64_t j) { return noise.row(i)[j]; });
    for (int64_t i = 0; i < 150000; i += 7000) std::fill_n(base.row(i), cols, 0.0f);
    Vectors queries = random_vectors(DType::f32, 1500, cols, 2);
    std::fill_n(queries.row(5), cols, 0.0f);
    std::fill_n(queries.row(6), cols, 1e6f);
    std::fill_n(queries.row(7), cols, -3e18f);
    for (const Metric metric : kWithDirections) {
      for (const int64_t k : {10, 100}) expect_parity(queries, base, {.k = k, .metric = metric});
    }
    // Copies of 500 different rows, and their multiples.
    const Vectors repeated = make_vectors(100000, cols, [&](int64_t i, int64_t j) {
      return base.row(1 + i % 500)[j] * std::ldexp(1.0f, static_cast<int>(i % 3));
    });
    for (const Metric metric : {Metric::l2, Metric::cosine})
      expect_parity(queries, repeated, {.k = 10, .metric = metric});
  }
}

TEST_F(CudaNarrowSmall, KMeansOfOneColumn) {
  const auto data = make_floats(Shape::gaussian, 20000, 1, 4);
  for (const int64_t clusters : {2, 256, 257, 512, 3000}) {
    expect_fit_parity(data.view(), random_start(clusters, 4));
    expect_fit_parity(TypedRows(DType::f16, data).view(), random_start(clusters, 2));
  }
  KMeansParams spherical = random_start(300, 3);
  spherical.spherical = true;
  expect_fit_parity(data.view(), spherical);
}

TEST_F(CudaNarrowSmall, Lists) {
  for (const int64_t cols : {1, 2, 3, 8, 130}) {
    auto base = make_floats(Shape::gaussian, 40000, cols, 5);
    auto queries = make_floats(Shape::gaussian, 1100, cols, 6);
    for (int64_t i = 0; i < 40000; i += 4321) std::fill_n(base.row(i), cols, 0.0f);
    std::fill_n(queries.row(3), cols, 0.0f);
    for (const char* const factory : {"IVF60,Flat", "IVF60,SQ8", "IVF9,SQfp16"}) {
      for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
        Index index(factory, {.metric = metric});
        index.train(base.view(), on_cpu());
        index.add(base.view(), Ownership::copy, on_cpu());
        const std::string what =
            std::string(factory) + " " + std::string(name_of(metric)) + ", columns " + std::to_string(cols);
        for (const int64_t k : {10, 100}) {
          expect_same(index.search(queries.view(), {.k = k, .probes = 8}, on_cpu()),
                      index.search(queries.view(), {.k = k, .probes = 8}, on_cuda()), what);
        }
        if (metric != Metric::cosine) continue;
        expect_same(index.search(queries.view().slice(0, 40), {.k = 5, .probes = 2}, on_cpu()),
                    index.search(queries.view().slice(0, 40), {.k = 5, .probes = 2}, on_cuda()), what);
      }
    }
  }
}

TEST_F(CudaNarrowTiny, ExactSearch) {
  for (const int64_t cols : {1, 2, 3}) {
    const Vectors base = random_vectors(DType::f32, 4300, cols, 1);
    const Vectors queries = random_vectors(DType::f32, 70, cols, 2);
    for (const Metric metric : {Metric::l2, Metric::cosine}) expect_parity(queries, base, {.k = 3, .metric = metric});
  }
}

TEST_F(CudaNarrowTiny, KMeansOfOneColumn) {
  expect_fit_parity(make_floats(Shape::gaussian, 1500, 1, 4).view(), random_start(300, 2));
}

TEST_F(CudaNarrowTiny, Lists) {
  for (const int64_t cols : {1, 3, 130}) {
    auto base = make_floats(Shape::gaussian, 1800, cols, 5);
    const auto queries = make_floats(Shape::gaussian, 40, cols, 6);
    for (int64_t i = 0; i < 1200; ++i) std::copy_n(base.row(1500), cols, base.row(i));
    std::fill_n(base.row(1700), cols, 0.0f);
    for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
      Index index("IVF4,Flat", {.metric = metric});
      index.train(base.view(), on_cpu());
      index.add(base.view(), Ownership::copy, on_cpu());
      expect_same(index.search(queries.view(), {.k = 5, .probes = 2}, on_cpu()),
                  index.search(queries.view(), {.k = 5, .probes = 2}, on_cuda()), std::to_string(cols));
    }
  }
}

// Most vectors of their lists have very many equal ones before them: a search for few neighbours never scans these.
TEST_F(CudaNarrowSmall, ListsOfEqualVectors) {
  for (const int64_t cols : {1, 6, 140}) {
    auto base = make_floats(Shape::gaussian, 30000, cols, 7);
    const auto queries = make_floats(Shape::gaussian, 300, cols, 8);
    for (int64_t i = 0; i < 30000; ++i) {
      if (i % 10 != 4) std::copy_n(base.row(4 + 10 * (i % 5)), cols, base.row(i));
    }
    const Filters filter(30000, 0.4, 9);
    for (const char* const factory : {"IVF12,Flat", "IVF12,SQ8"}) {
      for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
        Index index(factory, {.metric = metric});
        index.train(base.view(), on_cpu());
        index.add(base.view().slice(0, 28000), Ownership::copy, on_cpu());
        index.add(base.view().slice(28000, 2000), Ownership::copy, on_cpu());
        const std::string what =
            std::string(factory) + " " + std::string(name_of(metric)) + ", columns " + std::to_string(cols);
        for (const int64_t k : {1, 20, 256, 257}) {
          expect_same(index.search(queries.view(), {.k = k, .probes = 3}, on_cpu()),
                      index.search(queries.view(), {.k = k, .probes = 3}, on_cuda()), what);
        }
        expect_same(index.search(queries.view(), {.k = 20, .filter = filter.by_mask(), .probes = 3}, on_cpu()),
                    index.search(queries.view(), {.k = 20, .filter = filter.by_mask(), .probes = 3}, on_cuda()), what);
        expect_same(index.search(queries.view().slice(0, 2), {.k = 9, .probes = 2}, on_cpu()),
                    index.search(queries.view().slice(0, 2), {.k = 9, .probes = 2}, on_cuda()), what);
      }
    }
  }
}

}  // namespace
}  // namespace kith
