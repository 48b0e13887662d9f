// The coarse path of the product engine: many queries among few rows. Its kernels against those of the other paths, and
// whole searches against the CPU, bit for bit.
#include "cuda/operands.hpp"
#include "cuda/parity.hpp"
#include "cuda/products.hpp"

#include <kith/index.hpp>

#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace kith {
namespace {

class CudaCoarseSmall : public OnCuda {};
class CudaCoarse : public OnCuda {};

void expect_coarse_parity(const Vectors& queries, const Vectors& base, const KnnParams& params,
                          const ProductsRun& run = {}) {
  SCOPED_TRACE(::testing::Message() << queries.shape.rows << " queries (" << name_of(queries.dtype) << "), "
                                  << base.shape.rows << " rows (" << name_of(base.dtype) << "), " << base.shape.cols
                                  << " columns, k " << params.k << ", " << name_of(params.metric));
  const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
  const bool tiles = queries.dtype == DType::f32 && base.dtype == DType::f32 && base.shape.cols <= 128;
  for (const ProductEngine engine : engines_here()) {
    for (const CoarsePath path : {CoarsePath::always, CoarsePath::always_by_tiles}) {
      if (path == CoarsePath::always_by_tiles && !tiles) continue;
      SCOPED_TRACE(::testing::Message() << (engine == ProductEngine::mma ? "mma" : "wgmma")
                                      << (path == CoarsePath::always ? "" : ", tiles of rows"));
      const CudaChoice choice{.engine = CudaEngine::product, .product = engine, .coarse = path};
      expect_same_bytes(expected, search_as(choice, queries, base, params, run));
    }
  }
}

// What a coarse search says of queries that it was not sure of.
std::string coarse_said(const Vectors& queries, const Vectors& base, const KnnParams& params,
                        CoarsePath path = CoarsePath::always) {
  ResourceOptions options = cuda_options();
  std::string text;
  options.log = [&](LogLevel, std::string_view line) { text += line; };
  ProductsRun run;
  run.resources = Resources(options);
  expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()),
                    search_as({.engine = CudaEngine::product, .coarse = path}, queries, base, params, run));
  return text;
}

std::vector<float> part_minima(ProductEngine engine, const ProductOperands& operands, int rows_per_part) {
  const int64_t count = operands.query_count * part_count(operands.row_count, rows_per_part);
  const DeviceBytes values(static_cast<size_t>(count) * 4);
  launch_product<ProductParts>(engine, operands, schedule_product(operands.query_count, operands.row_count, 7),
                               {as<float>(values), rows_per_part}, nullptr);
  return read_back<float>(values, count);
}

std::vector<float> group_minima(ProductEngine engine, const ProductOperands& operands, int tiles_per_group) {
  const int64_t stride = group_count(operands.row_count, tiles_per_group);
  const DeviceBytes values(static_cast<size_t>(operands.query_count * stride) * 4);
  launch_product<ProductMinima>(engine, operands, schedule_product(operands.query_count, operands.row_count, 7),
                                {as<float>(values), stride, tiles_per_group}, nullptr);
  return read_back<float>(values, operands.query_count * stride);
}

TEST_F(CudaCoarseSmall, PartsOfATileHaveTheMinimaOfItsGroups) {
  for (const DType dtype : {DType::f32, DType::u8}) {
    const DeviceOperands data(dtype, 131, 700, 40);
    for (const ProductEngine engine : engines_here()) {
      const std::vector<float> groups = group_minima(engine, data.view(), 1);
      for (const int rows : {2, 8}) {
        const std::vector<float> parts = part_minima(engine, data.view(), rows);
        const size_t each = static_cast<size_t>(kGroupRowsPerTile / rows);
        ASSERT_EQ(parts.size(), groups.size() * each);
        for (size_t i = 0; i < groups.size(); ++i) {
          const auto first = parts.begin() + static_cast<std::ptrdiff_t>(i * each);
          ASSERT_EQ(*std::min_element(first, first + static_cast<std::ptrdiff_t>(each)), groups[i]) << i << " " << rows;
        }
      }
    }
  }
}

TEST_F(CudaCoarseSmall, MarksAreTheCandidates) {
  for (const DType dtype : {DType::f32, DType::u8}) {
    for (const int64_t rows : {1, 130, 700}) {
      const int64_t queries = 131;
      const DeviceOperands data(dtype, queries, rows, 40);
      // A threshold amid the values of every query, nothing for some and everything for others.
      std::vector<float> thresholds = group_minima(ProductEngine::mma, data.view(), 1);
      const auto stride = static_cast<size_t>(group_count(rows, 1));
      for (size_t q = 0; q < static_cast<size_t>(queries); ++q) {
        const float amid = std::min(thresholds[q * stride + q % 4], 1e30f);  // a group may have no row
        thresholds[q] = q % 5 == 0 ? -INFINITY : q % 5 == 1 ? 1e30f : amid;
      }
      const DeviceBytes limits(thresholds.data(), static_cast<size_t>(queries) * 4);
      const DeviceBytes counts(static_cast<size_t>(queries) * 4);
      const DeviceBytes found(static_cast<size_t>(queries * rows) * 4);
      const DeviceBytes words(static_cast<size_t>(queries * mark_words(rows)) * 4);
      for (const ProductEngine engine : engines_here()) {
        const ProductSchedule schedule = schedule_product(queries, rows, 7);
        KITH_CUDA_CHECK(cudaMemset(counts.data(), 0, static_cast<size_t>(queries) * 4));
        KITH_CUDA_CHECK(cudaMemset(words.data(), 0xA5, static_cast<size_t>(queries * mark_words(rows)) * 4));
        launch_product<ProductCandidates>(engine, data.view(), schedule,
                                          {as<float>(limits), as<uint32_t>(counts), as<uint32_t>(found), rows},
                                          nullptr);
        launch_product<ProductMarks>(engine, data.view(), schedule, {as<float>(limits), as<uint32_t>(words)}, nullptr);
        const std::vector<uint32_t> candidate_counts = read_back<uint32_t>(counts, queries);
        const std::vector<uint32_t> candidates = read_back<uint32_t>(found, queries * rows);
        const std::vector<uint32_t> marks = read_back<uint32_t>(words, queries * mark_words(rows));
        for (int64_t q = 0; q < queries; ++q) {
          const auto first = candidates.begin() + q * rows;
          std::vector<int64_t> expected(first, first + candidate_counts[static_cast<size_t>(q)]);
          std::vector<int64_t> marked;
          for (int64_t word = 0; word < mark_words(rows); ++word) {
            for (int bit = 0; bit < 32; ++bit) {
              if ((marks[static_cast<size_t>(q * mark_words(rows) + word)] >> bit & 1) == 0) continue;
              marked.push_back(marked_row(word, bit));
            }
          }
          std::sort(expected.begin(), expected.end());
          std::sort(marked.begin(), marked.end());
          ASSERT_EQ(marked, expected) << "query " << q << " of " << name_of(dtype) << ", " << rows << " rows";
          if (q % 5 == 1) {
            ASSERT_EQ(static_cast<int64_t>(marked.size()), rows);
          }
        }
      }
    }
  }
}

// The window of the exact k-th minimum is the least, that of one a little farther the most.
TEST_F(CudaCoarseSmall, WindowsOfTheKthMinimum) {
  const DeviceOperands data(DType::f32, 21, 300, 24);
  const std::vector<QueryOperand> query_bounds = [&] {
    std::vector<QueryOperand> bounds(21);
    KITH_CUDA_CHECK(
        cudaMemcpy(bounds.data(), data.query_bounds(), bounds.size() * sizeof(QueryOperand), cudaMemcpyDeviceToHost));
    return bounds;
  }();
  BaseBounds base;
  KITH_CUDA_CHECK(cudaMemcpy(&base, data.base_bounds(), sizeof base, cudaMemcpyDeviceToHost));
  const DeviceBytes thresholds(21 * 4);
  const DeviceBytes key_limits(21 * 4);
  for (const int64_t groups : {1, 100, 128, 129, 500, 1000, 1024, 3000, 9000}) {
    const Vectors minima = random_vectors(DType::f32, 21, groups, 33);
    const DeviceBytes values(minima.floats.data(), static_cast<size_t>(21 * groups) * 4);
    KnnWindowTask task;
    task.kind = KeyKind::squared_l2;
    task.cols = 24;
    task.queries = 21;
    task.minima = as<float>(values);
    task.groups = groups;
    task.query_bounds = data.query_bounds();
    task.base_bounds = data.base_bounds();
    task.thresholds = as<float>(thresholds);
    task.key_limits = as<uint32_t>(key_limits);
    for (const int64_t k : {int64_t{1}, groups / 3 + 1, groups}) {
      task.k = k;
      launch_kth_windows(task, nullptr);
      const std::vector<float> found = read_back<float>(thresholds, 21);
      for (size_t q = 0; q < 21; ++q) {
        const auto first = minima.floats.begin() + static_cast<std::ptrdiff_t>(q) * groups;
        std::vector<float> sorted(first, first + groups);
        std::sort(sorted.begin(), sorted.end());
        const MeasuredWindow measured = measured_window({KeyKind::squared_l2, false, 24}, base, query_bounds[q]);
        const auto threshold = [&](int64_t place) {
          return candidate_window(measured.problem, measured.query, base.rows, sorted[static_cast<size_t>(place)])
              .threshold;
        };
        const float least = threshold(k - 1);
        EXPECT_GE(found[q], least - 1e-6f * std::abs(least)) << groups << " " << k;
        if (k + k / 64 >= groups) continue;  // whatever lies beyond them all
        const float most = threshold(k + k / 64);
        EXPECT_LE(found[q], most + 1e-6f * std::abs(most)) << groups << " " << k;
      }
    }
    task.k = groups + 1;
    launch_kth_windows(task, nullptr);
    for (const uint32_t limit : read_back<uint32_t>(key_limits, 21)) EXPECT_EQ(limit, 0u) << "nothing is sure";
  }
}

TEST_F(CudaCoarseSmall, RowsAroundTiles) {
  for (const int64_t rows : {1, 31, 33, 127, 129, 257, 700}) {
    for (const int64_t k : {int64_t{1}, std::min<int64_t>(rows, 9)}) {
      expect_coarse_parity(random_vectors(DType::f32, 3, 20, 1), random_vectors(DType::f32, rows, 20, 2), {.k = k});
      expect_coarse_parity(random_vectors(DType::u8, 3, 20, 1), random_vectors(DType::u8, rows, 20, 2), {.k = k});
    }
  }
}

TEST_F(CudaCoarseSmall, ColumnsAroundWhatStaysInRegisters) {
  for (const int64_t cols : {1, 3, 4, 60, 100, 127, 128, 129, 132, 200}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
      const KnnParams params{.k = 17, .metric = metric};
      expect_coarse_parity(random_vectors(DType::f32, 5, cols, 7), random_vectors(DType::f32, 600, cols, 8), params);
      expect_coarse_parity(random_vectors(DType::f32, 5, cols, 7, 1), random_vectors(DType::f32, 600, cols, 8, 2),
                           params);  // rows that are not aligned
      expect_coarse_parity(random_vectors(DType::u8, 5, cols, 7, 3), random_vectors(DType::u8, 600, cols, 8, 1),
                           params);
    }
  }
}

// Rows of several tiles, the last of them short; columns that fill one unit of a row, or end within one.
TEST_F(CudaCoarseSmall, TilesOfRows) {
  for (const int64_t rows : {383, 384, 385, 1300}) {
    for (const int64_t cols : {4, 31, 33, 100, 128}) {
      for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
        expect_coarse_parity(random_vectors(DType::f32, 37, cols, 7), random_vectors(DType::f32, rows, cols, 8),
                             {.k = 40, .metric = metric});
      }
    }
  }
}

// Values of all magnitudes, subnormals and zeros among them: widened as the CPU widens them.
TEST_F(CudaCoarseSmall, TilesOfRowsWithValuesOfAllMagnitudes) {
  for (const float scale : {1e-44f, 1e-38f, 1e-20f, 1.0f, 1e15f}) {
    const auto values = [&](uint32_t seed) {
      Vectors vectors = random_vectors(DType::f32, seed == 1 ? 40 : 900, 36, seed);
      for (size_t i = 0; i < vectors.floats.size(); ++i) {
        const float power = std::ldexp(1.0f, -static_cast<int>(i * 7 % 23));
        vectors.floats[i] = i % 11 == 0 ? 0.0f : vectors.floats[i] * power * scale;
      }
      return vectors;
    };
    for (const Metric metric : {Metric::sqeuclidean, Metric::l2, Metric::inner_product}) {
      expect_coarse_parity(values(1), values(2), {.k = 50, .metric = metric});
    }
  }
}

// Whole numbers, so that many candidates are at one distance: the smaller row comes first.
TEST_F(CudaCoarseSmall, TilesOfRowsWithEqualDistances) {
  const auto values = [](uint32_t seed, int64_t rows) {
    Vectors vectors = random_vectors(DType::f32, rows, 36, seed);
    for (float& value : vectors.floats) value = std::round(value * 2);
    return vectors;
  };
  for (const int64_t k : {5, 40, 90}) {
    for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
      expect_coarse_parity(values(1, 60), values(2, 1300), {.k = k, .metric = metric});
    }
  }
}

TEST_F(CudaCoarseSmall, EveryMetricAndPairOfDtypes) {
  for (const DType query_dtype : {DType::f32, DType::u8}) {
    for (const DType base_dtype : {DType::f32, DType::u8}) {
      for (const Metric metric : kAllMetrics) {
        expect_coarse_parity(random_vectors(query_dtype, 5, 36, 5), random_vectors(base_dtype, 600, 36, 6),
                             {.k = 30, .metric = metric});
      }
    }
  }
}

TEST_F(CudaCoarse, QueriesAroundTilesAndAWarpForEach) {
  const Vectors base = random_vectors(DType::f32, 1500, 40, 3);
  for (const int64_t queries : {1, 127, 129, 257, 2047, 2049}) {
    expect_coarse_parity(random_vectors(DType::f32, queries, 40, 4), base, {.k = 40});
  }
}

// From one to all, the lengths at which a warp sorts with another network among them.
TEST_F(CudaCoarse, AnyK) {
  const Vectors queries = random_vectors(DType::f32, 2100, 16, 11);
  for (const int64_t rows : {1000, 4096}) {
    const Vectors base = random_vectors(DType::f32, rows, 16, 12);
    for (const int64_t k : {1, 2, 27, 31, 33, 57, 64, 100, 128, 140, 150, 250, 400, 999, 1000}) {
      expect_coarse_parity(queries, base, {.k = k, .metric = Metric::sqeuclidean});
    }
  }
}

TEST_F(CudaCoarse, HardData) {
  for_each_hard_data(3000, 24, 13, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : kAllMetrics) {
      expect_coarse_parity(queries, base, {.k = 20, .metric = metric});
      expect_coarse_parity(queries, base, {.k = 200, .metric = metric});
    }
  });
}

TEST_F(CudaCoarse, OrdinaryDataIsSearchedByProductsAlone) {
  for (const DType dtype : {DType::f32, DType::u8}) {
    for (const Metric metric : kAllMetrics) {
      for (const int64_t k : {1, 10, 100, 300}) {
        const Vectors queries = random_vectors(dtype, 2500, 64, 22);
        const Vectors base = random_vectors(dtype, 4096, 64, 23);
        for (const CoarsePath path : {CoarsePath::always, CoarsePath::always_by_tiles}) {
          EXPECT_EQ(coarse_said(queries, base, {k, metric}, path), "")
              << name_of(dtype) << " " << name_of(metric) << " " << k;
        }
      }
    }
  }
}

TEST_F(CudaCoarse, EqualRowsAreLeftToOtherPaths) {
  const Vectors queries = make_vectors(5, 16, [](int64_t, int64_t) { return 0.25f; });
  const Vectors equal = make_vectors(3000, 16, [](int64_t, int64_t) { return 0.5f; });
  for (const CoarsePath path : {CoarsePath::always, CoarsePath::always_by_tiles}) {
    EXPECT_NE(coarse_said(queries, equal, {.k = 10}, path).find("5 of 5 queries"), std::string::npos);
  }
}

TEST_F(CudaCoarse, EveryBudgetAndPieceGivesTheSameBytes) {
  const Vectors queries = random_vectors(DType::f32, 700, 32, 18);
  const Vectors base = random_vectors(DType::f32, 20000, 32, 19);
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    const KnnParams params{.k = 25, .metric = metric};
    for (const int64_t budget : {int64_t{12} << 20, int64_t{24} << 20, int64_t{96} << 20}) {
      expect_coarse_parity(queries, base, params, {.device_bytes = budget});
    }
    for (const int64_t chunk : {1111, 7001}) expect_coarse_parity(queries, base, params, {.base_chunk = chunk});
  }
}

// As a plan chooses it by itself, in an index and from arrays: every dtype, and rows that a filter leaves out. Queries
// of f32 are so many that candidates are re-ranked by tiles of rows.
TEST_F(CudaCoarse, AsPlanned) {
  for (const DType dtype : kAllDtypes) {
    const int64_t count = dtype == DType::f32 ? 2100 : 1100;
    const Stored queries(dtype, count, 48, 41, dtype != DType::u8);
    const Stored base(dtype, 2500, 48, 42, dtype != DType::u8);
    for (const Metric metric : kAllMetrics) {
      for (const double share : {1.0, 0.9, 0.3}) {
        SCOPED_TRACE(::testing::Message() << name_of(dtype) << ", " << name_of(metric) << ", keeps " << share);
        const Filters filters(2500, share, 43);
        const KnnParams params{60, metric, true, share < 1 ? filters.by_mask() : RowFilter()};
        const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
        expect_same_bytes(expected, knn(queries.view(), base.view(), params, on_cuda()));
        Index index("Flat", {.metric = metric, .prepare = true});
        index.add(base.view(), Ownership::borrow, on_cuda());
        const DeviceMatrix device_queries(queries.view());
        DeviceResult result(count, 60);
        SearchParams search;
        search.k = params.k;
        search.filter = params.filter;
        index.search(device_queries.view(), result.view, search, on_cuda());
        expect_same_bytes(expected, result.on_host());
      }
    }
  }
}

}  // namespace
}  // namespace kith
