// Rows much longer than the others, which exact search on a GPU sets apart (kernels/matrix/operand_bounds.hpp): the same bytes as
// on the CPU, and ordinary queries do not pay for them.
#include "cuda/parity.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <string>
#include <vector>

namespace kith {
namespace {

class CudaFarRowsSmall : public OnCuda {};
class CudaFarRows : public OnCuda {};

// Every `each`-th row is so many times as long.
Vectors with_far_rows(int64_t rows, int64_t cols, int64_t each, float factor, uint32_t seed) {
  const Vectors noise = random_vectors(DType::f32, rows, cols, seed);
  return make_vectors(rows, cols, [&](int64_t i, int64_t j) {
    return noise.floats[static_cast<size_t>(i * cols + j)] * (i % each == each / 2 ? factor : 1.0f);
  });
}

TEST(FarRows, TheirTermsAreBelowWhatTheirValuesMayBe) {
  for (const float ordinary : {1e-3f, 1.0f, 300.0f}) {
    for (double row = double{kFarRow} * ordinary; row < 1e18 * ordinary; row *= 1.37) {
      const float term = far_term(row, ordinary);
      EXPECT_GE(term, far_floor(ordinary));
      EXPECT_GT(term, 0);
      for (double query = 0; query <= double{kFarQuery} * ordinary; query += 0.1 * ordinary) {
        // The nearest that such a row can be to such a query, less what rounding may have moved the query by.
        const double least = ((row - query) * (row - query) - query * query) / 2 - query * query * 0x1p-10;
        EXPECT_LT(term, least) << row << " " << query;
      }
    }
  }
}

TEST_F(CudaFarRowsSmall, SameAsOnTheCpu) {
  for (const float factor : {5.0f, 7.0f, 100.0f, 1e4f, 1e30f}) {
    for (const int64_t each : {5000, 100, 3}) {
      const Vectors base = with_far_rows(5000, 19, each, factor, 3);
      const Vectors queries = with_far_rows(60, 19, 20, factor, 4);
      for (const int64_t k : {1, 10}) {
        expect_parity(queries, base, {.k = k, .metric = Metric::l2});
        expect_parity(queries, base, {.k = k, .metric = Metric::sqeuclidean});
      }
      expect_parity(base, base, {.k = 5, .metric = Metric::l2});
    }
  }
}

TEST_F(CudaFarRows, ManyShapes) {
  for (const int64_t cols : {1, 2, 33, 200, 1100}) {
    for (const int64_t rows : {4096, 4097, 20001}) {
      const Vectors base = with_far_rows(rows, cols, 1000, 1e3f, static_cast<uint32_t>(cols));
      const Vectors queries = with_far_rows(400, cols, 100, 50.0f, 7);
      for (const int64_t k : {1, 10, 100, 700}) expect_parity(queries, base, {.k = k, .metric = Metric::l2});
    }
  }
}

// Fewer ordinary rows than neighbours are wanted: far ones are among these.
TEST_F(CudaFarRows, AreFoundWhereNothingElseIs) {
  const Vectors base = with_far_rows(6000, 24, 2, 1e3f, 3);
  const Vectors queries = random_vectors(DType::f32, 30, 24, 5);
  expect_parity(queries, base, {.k = 3100, .metric = Metric::l2});
  expect_parity(with_far_rows(30, 24, 1, 1e3f, 9), base, {.k = 20, .metric = Metric::sqeuclidean});
}

TEST_F(CudaFarRows, InRangeAndFiltered) {
  const Vectors base = with_far_rows(9000, 30, 500, 40.0f, 3);
  const Vectors queries = with_far_rows(50, 30, 10, 40.0f, 4);
  for (const float radius : {3.5f, 60.0f, 140.0f}) {
    const RangeParams params{.radius = radius, .metric = Metric::l2};
    expect_same_bytes(range_search(queries.view(), base.view(), params, on_cpu()),
                      range_search(queries.view(), base.view(), params, on_cuda()));
  }
  const Filters filters(9000, 0.3, 5);
  KnnParams params{.k = 12, .metric = Metric::l2};
  params.filter = filters.by_mask();
  expect_parity(queries, base, params);
}

// None of them is searched directly: what the log would say.
TEST_F(CudaFarRows, OrdinaryQueriesDoNotPayForThem) {
  for (const int64_t each : {200000, 20000, 1000}) {
    const Vectors base = with_far_rows(200000, 64, each, 1e3f, 3);
    const Vectors queries = random_vectors(DType::f32, 500, 64, 5);
    std::vector<std::string> told;
    const Resources cuda = on_cuda().with_log([&](LogLevel, std::string_view text) { told.emplace_back(text); });
    expect_parity(queries, base, {.k = 10, .metric = Metric::l2}, cuda);
    for (const std::string& line : told) EXPECT_EQ(line.find("searched directly"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace kith
