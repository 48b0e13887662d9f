// The GPU against the CPU, bit for bit, on shapes small enough for compute-sanitizer: every dtype, metric and edge.
#include "cuda/parity.hpp"

#include <kith/index.hpp>

namespace kith {
namespace {

class CudaKnnSmall : public OnCuda {};

TEST_F(CudaKnnSmall, ColumnsAroundTheSlab) {
  for (const int64_t cols : {1, 3, 15, 16, 17, 31, 100}) {
    for (const Metric metric : kAllMetrics) {
      expect_parity(random_vectors(DType::f32, 5, cols, 1), random_vectors(DType::f32, 70, cols, 2),
                    {.k = 7, .metric = metric});
    }
  }
}

TEST_F(CudaKnnSmall, QueriesAndRowsAroundTheTile) {
  for (const int64_t queries : {1, 15, 16, 17, 33}) {
    for (const int64_t rows : {1, 2, 31, 32, 33, 65}) {
      expect_parity(random_vectors(DType::f32, queries, 9, 3), random_vectors(DType::f32, rows, 9, 4), {.k = 5});
    }
  }
}

TEST_F(CudaKnnSmall, EveryPairOfDtypesAndMetric) {
  for (const DType query_dtype : {DType::f32, DType::u8}) {
    for (const DType base_dtype : {DType::f32, DType::u8}) {
      for (const Metric metric : kAllMetrics) {
        expect_parity(random_vectors(query_dtype, 6, 21, 5), random_vectors(base_dtype, 300, 21, 6),
                      {.k = 11, .metric = metric});
      }
    }
  }
}

TEST_F(CudaKnnSmall, AnyK) {
  const Vectors queries = random_vectors(DType::f32, 3, 6, 7);
  const Vectors base = random_vectors(DType::f32, 513, 6, 8);
  for (const int64_t k : {1, 2, 255, 256, 257, 512, 513, 514, 700}) expect_parity(queries, base, {.k = k});
}

TEST_F(CudaKnnSmall, NoQueries) {
  const Vectors base = random_vectors(DType::f32, 10, 4, 9);
  expect_parity(random_vectors(DType::f32, 0, 4, 9), base, {.k = 3});
}

TEST_F(CudaKnnSmall, RowsApart) {
  for (const Metric metric : kAllMetrics) {
    expect_parity(random_vectors(DType::f32, 4, 19, 10, 3), random_vectors(DType::u8, 90, 19, 11, 5),
                  {.k = 8, .metric = metric});
  }
}

TEST_F(CudaKnnSmall, TiesGoToTheSmallerRow) {
  const Vectors equal = make_vectors(200, 8, [](int64_t, int64_t j) { return static_cast<float>(j); });
  const Vectors few_values =
      make_vectors(200, 2, [](int64_t i, int64_t j) { return static_cast<float>((i * 7 + j) % 3); });
  for (const Metric metric : kAllMetrics) {
    expect_parity(random_vectors(DType::f32, 3, 8, 12), equal, {.k = 50, .metric = metric});
    expect_parity(random_vectors(DType::f32, 3, 2, 13), few_values, {.k = 99, .metric = metric});
  }
}

TEST_F(CudaKnnSmall, ZeroVectorsHugeAndTinyValues) {
  const float scales[] = {0.0f, 1e19f, 1e-20f, 3e38f, 1e-45f, 1.0f, -1e19f};
  const Vectors hard =
      make_vectors(70, 18, [&](int64_t i, int64_t j) { return scales[i % 7] * (j % 3 == 0 ? 1.0f : 0.5f); });
  for (const Metric metric : kAllMetrics) expect_parity(hard, hard, {.k = 70, .metric = metric});
}

TEST_F(CudaKnnSmall, UncheckedNansComeLast) {
  Vectors base = random_vectors(DType::f32, 80, 17, 14);
  base.row(3)[16] = NAN;
  base.row(70)[0] = INFINITY;
  base.row(71)[5] = -INFINITY;
  Vectors queries = random_vectors(DType::f32, 3, 17, 15);
  queries.row(1)[2] = NAN;
  for (const Metric metric : kAllMetrics)
    expect_parity(queries, base, {.k = 81, .metric = metric, .check_finite = false});
}

TEST_F(CudaKnnSmall, NamesTheFirstRowThatIsNotFinite) {
  const Vectors good = random_vectors(DType::f32, 90, 20, 16);
  Vectors bad = good;
  bad.row(81)[3] = NAN;
  bad.row(17)[19] = -INFINITY;
  for (const Metric metric : kAllMetrics) {
    const KnnParams params{.k = 2, .metric = metric};
    const auto text = [&](const Vectors& queries, const Vectors& base, const Resources& resources) {
      return text_thrown<InvalidArgument>([&] { knn(queries.view(), base.view(), params, resources); });
    };
    EXPECT_NE(text(good, bad, on_cuda()).find("17"), std::string::npos);
    EXPECT_EQ(text(good, bad, on_cuda()), text(good, bad, on_cpu()));
    EXPECT_NE(text(bad, good, on_cuda()).find("17"), std::string::npos);
    EXPECT_EQ(text(bad, good, on_cuda()), text(bad, good, on_cpu()));
  }
}

TEST_F(CudaKnnSmall, ATinyLimitGivesTheSameBytes) {
  const Vectors queries = random_vectors(DType::f32, 70, 12, 17);
  const Vectors base = random_vectors(DType::f32, 400, 12, 18);
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    for (const int64_t limit : {int64_t{20000}, int64_t{30000}, int64_t{100000}}) {
      ResourceOptions options = cuda_options();
      options.device_memory_limit = limit;
      expect_parity(queries, base, {.k = 9, .metric = metric}, Resources(options));
    }
  }
}

TEST_F(CudaKnnSmall, TooTinyALimitIsOutOfMemoryWithTheBytes) {
  const Vectors vectors = random_vectors(DType::f32, 40, 12, 19);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 500;
  try {
    knn(vectors.view(), vectors.view(), {.k = 9}, Resources(options));
    FAIL() << "500 bytes were enough";
  } catch (const OutOfMemory& error) {
    EXPECT_GT(error.bytes_needed(), 500);
    options.device_memory_limit = error.bytes_needed();
    expect_parity(vectors, vectors, {.k = 9}, Resources(options));
  }
}

TEST_F(CudaKnnSmall, AnIndexIsTheSame) {
  const Vectors queries = random_vectors(DType::u8, 20, 30, 20);
  const Vectors base = random_vectors(DType::f32, 150, 30, 21);
  for (const Metric metric : kAllMetrics) {
    for (const bool prepare : {false, true}) {
      Index index("Flat", {.metric = metric, .prepare = prepare});
      index.add(base.view().slice(0, 100), Ownership::copy, on_cuda());
      index.add(base.view().slice(100, 50), Ownership::borrow, on_cuda());
      SCOPED_TRACE(::testing::Message() << name_of(metric) << (prepare ? " prepared" : ""));
      expect_same_bytes(knn(queries.view(), base.view(), {.k = 13, .metric = metric}, on_cpu()),
                        index.search(queries.view(), {.k = 13}, on_cuda()));
    }
  }
}

}  // namespace
}  // namespace kith
