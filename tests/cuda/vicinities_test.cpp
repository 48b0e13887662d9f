// Queries that products are not sure of, searched among fewer rows (exact/vicinities_cuda.hpp): the same bytes as on
// the CPU, however the rows lie.
#include "cuda/device_data.hpp"
#include "cuda/products.hpp"

#include <string>
#include <vector>

namespace kith {
namespace {

class CudaVicinities : public OnCuda {};
class CudaVicinitiesSmall : public OnCuda {};

// Every failed query is looked at; its vicinity is searched as a search of its own, or directly.
constexpr ApartSteps kAlwaysWithin = {0, 0, 0};
constexpr ApartSteps kAlwaysDirectly = {0, 0, 1e30};

void expect_apart_parity(const Vectors& queries, const Vectors& base, const KnnParams& params,
                         const ProductsRun& run = {}) {
  SCOPED_TRACE(::testing::Message() << queries.shape.rows << " queries, " << base.shape.rows << " rows, "
                                    << base.shape.cols << " columns, k " << params.k << ", " << name_of(params.metric));
  const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
  for (const ApartSteps& apart : {kAlwaysWithin, kAlwaysDirectly}) {
    CudaChoice choice{CudaEngine::product};
    choice.apart = apart;
    expect_same_bytes(expected, search_as(choice, queries, base, params, run));
  }
}

struct Kind {
  const char* name;
  Fill fill;
};

// Calls use(queries, base) for rows that bounds for all of them cannot tell apart.
template <typename Use>
void for_each_crowd(int64_t rows, int64_t queries, int64_t cols, uint32_t seed, const Use& use) {
  const Vectors noise = random_vectors(DType::f32, rows, cols, seed);
  const Vectors centres = random_vectors(DType::f32, 64, cols, seed + 1);
  const auto value = [&](int64_t i, int64_t j) { return noise.floats[static_cast<size_t>(i * cols + j)]; };
  const auto centre = [&](int64_t i, int64_t j) { return centres.floats[static_cast<size_t>(i * cols + j)]; };
  const Kind kinds[] = {
      {"3 clusters", [&](int64_t i, int64_t j) { return 100 * centre(i % 3, j) + value(i, j); }},
      {"40 tight clusters", [&](int64_t i, int64_t j) { return centre(i * 7 % 40, j) + 1e-3f * value(i, j); }},
      {"clusters of clusters",
       [&](int64_t i, int64_t j) { return 100 * centre(i % 5, j) + centre(i % 50 + 7, j) + 1e-3f * value(i, j); }},
      {"half of the rows equal", [&](int64_t i, int64_t j) { return i % 2 == 0 ? centre(0, j) : value(i, j); }},
      {"300 rows, many times", [&](int64_t i, int64_t j) { return value(i * 31 % 300, j); }},
      {"equal rows in clusters", [&](int64_t i, int64_t j) { return centre(i % 9, j) + 1e-4f * value(i % 90, j); }},
      {"four decades",
       [&](int64_t i, int64_t j) { return value(i, j) * std::pow(10.0f, 4 * static_cast<float>(i * 13 % 101) / 101); }},
      {"a line", [&](int64_t i, int64_t j) { return value(i, 0) * centre(0, j); }},
      {"far rows and clusters",
       [&](int64_t i, int64_t j) { return (centre(i % 4, j) + 1e-3f * value(i, j)) * (i % 500 == 77 ? 1e4f : 1.0f); }},
  };
  for (const auto& [name, fill] : kinds) {
    SCOPED_TRACE(name);
    use(make_vectors(queries, cols, [&, &at = fill](int64_t i, int64_t j) { return at(i * 997 % rows, j); }),
        make_vectors(rows, cols, fill));
  }
}

TEST_F(CudaVicinitiesSmall, HardData) {
  for (const int64_t cols : {1, 5, 64}) {
    for_each_hard_data(5000, cols, 11, [&](const Vectors& queries, const Vectors& base) {
      for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
        expect_apart_parity(queries, base, {.k = 10, .metric = metric});
      }
    });
  }
}

TEST_F(CudaVicinities, Crowds) {
  for (const int64_t cols : {1, 3, 17, 100, 300}) {
    for_each_crowd(9000, 700, cols, static_cast<uint32_t>(cols), [&](const Vectors& queries, const Vectors& base) {
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product}) {
        expect_apart_parity(queries, base, {.k = 10, .metric = metric});
      }
      for (const int64_t k : {1, 100, 2500}) expect_apart_parity(queries, base, {.k = k, .metric = Metric::l2});
    });
  }
}

TEST_F(CudaVicinities, ManyQueriesByThePlanItself) {
  for_each_crowd(60000, 12000, 48, 5, [&](const Vectors& queries, const Vectors& base) {
    expect_parity(queries, base, {.k = 10, .metric = Metric::l2});
  });
  for_each_crowd(40000, 6000, 96, 6, [&](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : {Metric::cosine, Metric::inner_product}) {
      expect_parity(queries, base, {.k = 5, .metric = metric});
    }
  });
}

TEST_F(CudaVicinities, Filters) {
  for_each_crowd(30000, 5000, 40, 8, [&](const Vectors& queries, const Vectors& base) {
    for (const double share : {0.9, 0.3}) {
      const Filters filters(30000, share, 3);
      const KnnParams params{.k = 10, .metric = Metric::l2, .filter = filters.by_mask()};
      expect_parity(queries, base, params);
    }
  });
}

// Their rows are more than one tile of the direct engine, which searches so few queries.
TEST_F(CudaVicinities, FewFarQueriesAmongManyRows) {
  const auto far = [](const Vectors& noise, int64_t each, float factor) {
    const int64_t cols = noise.shape.cols;
    return make_vectors(noise.shape.rows, cols, [&](int64_t i, int64_t j) {
      return noise.floats[static_cast<size_t>(i * cols + j)] * (i % each == 0 ? factor : 1.0f);
    });
  };
  const Vectors base = far(random_vectors(DType::f32, 400000, 20, 1), 4000, 1e4f);
  const Vectors queries = far(random_vectors(DType::f32, 48, 20, 2), 1, 1e3f);
  for (const int64_t k : {1, 10}) expect_apart_parity(queries, base, {.k = k, .metric = Metric::l2});
}

TEST_F(CudaVicinities, SearchesOfTheirOwnWithLittleMemory) {
  for_each_crowd(50000, 600, 64, 12, [&](const Vectors& queries, const Vectors& base) {
    for (const int64_t mebibytes : {36, 60}) {
      ResourceOptions options = cuda_options();
      options.device_memory_limit = mebibytes << 20;
      expect_apart_parity(queries, base, {.k = 10, .metric = Metric::l2}, {int64_t{20} << 20, 0, Resources(options)});
    }
  });
}

// Failures of several batches wait for each other where the rows are there from the start.
TEST_F(CudaVicinities, RowsOnTheDevice) {
  for_each_crowd(40000, 20000, 48, 13, [&](const Vectors& queries, const Vectors& base) {
    const DeviceMatrix device_queries(queries);
    const DeviceMatrix device_base(base);
    const Filters filters(40000, 0.6, 3);
    for (const Metric metric : {Metric::l2, Metric::cosine}) {
      for (const RowFilter& filter : {RowFilter(), filters.by_mask()}) {
        const KnnParams params{.k = 5, .metric = metric, .filter = filter};
        expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()),
                          knn(device_queries.view(), device_base.view(), params, on_cuda()));
      }
    }
  });
}

TEST_F(CudaVicinities, LittleMemoryBeyondThePlan) {
  for_each_crowd(20000, 3000, 40, 9, [&](const Vectors& queries, const Vectors& base) {
    const Neighbors expected = knn(queries.view(), base.view(), {.k = 10}, on_cpu());
    for (const int64_t mebibytes : {16, 48, 200}) {
      ResourceOptions options = cuda_options();
      options.device_memory_limit = mebibytes << 20;
      expect_same_bytes(expected, knn(queries.view(), base.view(), {.k = 10}, Resources(options)));
    }
  });
}

}  // namespace
}  // namespace kith
