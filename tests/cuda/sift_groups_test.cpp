// The rows of selected groups that thresholds leave, against the product of all pairs; and searches of wide rows, which
// go by them, against the CPU.
#include "cuda/operands.hpp"
#include "cuda/products.hpp"
#include "kernels/matrix/sift_groups_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace kith {
namespace {

class CudaSiftSmall : public OnCuda {};
class CudaSift : public OnCuda {};

constexpr int64_t kSiftTestQueries = 300;
constexpr int64_t kSiftTestRows = 2900;
constexpr int64_t kSiftSelected = 12;
constexpr int64_t kSiftCapacity = 200;

using SiftFound = std::vector<std::set<uint32_t>>;

SiftFound rows_found(const std::vector<uint32_t>& counts, const std::vector<uint32_t>& rows, int64_t capacity) {
  SiftFound found;
  for (size_t query = 0; query < counts.size(); ++query) {
    const auto* const first = rows.data() + query * static_cast<size_t>(capacity);
    if (counts[query] > capacity) {  // nothing is sure
      found.emplace_back();
      continue;
    }
    found.emplace_back(first, first + counts[query]);
    EXPECT_EQ(found.back().size(), counts[query]);  // each once
  }
  return found;
}

// All rows at or below the thresholds.
SiftFound rows_below(const DeviceOperands& data, const std::vector<float>& thresholds) {
  const DeviceBytes limits(thresholds.data(), thresholds.size() * 4);
  const DeviceBytes counts(static_cast<size_t>(kSiftTestQueries) * 4);
  const DeviceBytes rows(static_cast<size_t>(kSiftTestQueries * kSiftTestRows) * 4);
  KITH_CUDA_CHECK(cudaMemset(counts.data(), 0, static_cast<size_t>(kSiftTestQueries) * 4));
  launch_product<ProductCandidates>(
      ProductEngine::mma, data.view(), schedule_product(kSiftTestQueries, kSiftTestRows, 7),
      {as<float>(limits), as<uint32_t>(counts), as<uint32_t>(rows), kSiftTestRows}, nullptr);
  return rows_found(read_back<uint32_t>(counts, kSiftTestQueries),
                    read_back<uint32_t>(rows, kSiftTestQueries * kSiftTestRows), kSiftTestRows);
}

TEST_F(CudaSiftSmall, FindsWhatIsBelowTheThresholdInTheGroups) {
  const int64_t groups = group_count(kSiftTestRows, 1);
  for (const int64_t cols : {3, 64, 65, 300, 777}) {
    SCOPED_TRACE(cols);
    const DeviceOperands data(DType::f32, kSiftTestQueries, kSiftTestRows, cols);
    const DeviceBytes minima(static_cast<size_t>(kSiftTestQueries * groups) * 4);
    launch_product<ProductMinima>(ProductEngine::mma, data.view(), schedule_product(kSiftTestQueries, kSiftTestRows, 7),
                                  {as<float>(minima), groups, 1}, nullptr);
    const std::vector<float> least = read_back<float>(minima, kSiftTestQueries * groups);

    // Each query has some groups, the first ones of many queries the same; one query has none, one is not sure.
    std::mt19937 random(static_cast<uint32_t>(cols));
    std::vector<int32_t> selected;
    std::vector<int32_t> counts;
    std::vector<float> thresholds;
    std::vector<float> lower;
    std::vector<float> upper;
    for (int64_t query = 0; query < kSiftTestQueries; ++query) {
      std::set<int32_t> mine = {5};
      while (std::ssize(mine) < kSiftSelected)
        mine.insert(static_cast<int32_t>(random() % static_cast<uint32_t>(groups)));
      selected.insert(selected.end(), mine.begin(), mine.end());
      counts.push_back(query == 3 ? 0 : query == 4 ? -1 : static_cast<int32_t>(1 + random() % kSiftSelected));
      std::vector<float> sorted(least.begin() + query * groups, least.begin() + (query + 1) * groups);
      std::ranges::sort(sorted);
      const float threshold = sorted[static_cast<size_t>(groups / 2)];
      thresholds.push_back(threshold);
      lower.push_back(threshold - 1e-4f * std::fabs(threshold));
      upper.push_back(threshold + 1e-4f * std::fabs(threshold));
    }
    const DeviceBytes device_selected(selected.data(), selected.size() * 4);
    const DeviceBytes device_counts(counts.data(), counts.size() * 4);
    const DeviceBytes limits(thresholds.data(), thresholds.size() * 4);
    const DeviceBytes found_counts(static_cast<size_t>(kSiftTestQueries) * 4);
    const SiftLayout layout(kSiftTestQueries, groups, kSiftSelected, kSiftCapacity);
    const DeviceBytes memory(static_cast<size_t>(layout.bytes));
    auto* const rows = layout.rows.in(as<std::byte>(memory));
    launch_sift({data.view(),
                 as<int32_t>(device_selected),
                 as<int32_t>(device_counts),
                 kSiftSelected,
                 {as<float>(limits), as<uint32_t>(found_counts), rows, kSiftCapacity},
                 7},
                layout, as<std::byte>(memory), nullptr);
    const std::vector<uint32_t> number = read_back<uint32_t>(found_counts, kSiftTestQueries);
    std::vector<uint32_t> listed(static_cast<size_t>(kSiftTestQueries * kSiftCapacity));
    KITH_CUDA_CHECK(cudaMemcpy(listed.data(), rows, listed.size() * 4, cudaMemcpyDeviceToHost));
    EXPECT_GT(number[4], kSiftCapacity);
    EXPECT_EQ(number[3], 0u);
    const SiftFound found = rows_found(number, listed, kSiftCapacity);
    const SiftFound at_least = rows_below(data, lower);
    const SiftFound at_most = rows_below(data, upper);
    for (int64_t query = 0; query < kSiftTestQueries; ++query) {
      const auto q = static_cast<size_t>(query);
      if (counts[q] < 0) continue;
      const auto restricted = [&](const std::set<uint32_t>& all) {
        std::set<uint32_t> some;
        for (int32_t i = 0; i < counts[q]; ++i) {
          for (int each = 0; each < group_rows(1); ++each) {
            const auto row =
                static_cast<uint32_t>(group_row(selected[static_cast<size_t>(query * kSiftSelected + i)], each, 1));
            if (all.contains(row)) some.insert(row);
          }
        }
        return some;
      };
      const std::set<uint32_t> least_found = restricted(at_least[q]);
      const std::set<uint32_t> most_found = restricted(at_most[q]);
      EXPECT_TRUE(std::ranges::includes(found[q], least_found)) << "query " << query;
      EXPECT_TRUE(std::ranges::includes(most_found, found[q])) << "query " << query;
    }
  }
}

TEST_F(CudaSift, ManyQueriesOfWideRows) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const int64_t cols : {256, 333, 1030}) {
      const Vectors queries = random_vectors(dtype, 1100, cols, 1);
      const Vectors base = random_vectors(dtype, 40000, cols, 2);
      for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
        expect_products_parity(queries, base, {.k = 10, .metric = metric});
      }
    }
  }
}

TEST_F(CudaSift, HardData) {
  for_each_hard_data(30000, 260, 7, [&](const Vectors&, const Vectors& base) {
    const Vectors queries = make_vectors(1030, 260, [&](int64_t i, int64_t j) {
      return base.floats[static_cast<size_t>(i * 17 % 30000 * 260 + j)] + (i % 3 == 0 ? 0.01f : 0.0f);
    });
    expect_parity(queries, base, {.k = 10, .metric = Metric::l2});
    expect_parity(queries, base, {.k = 3, .metric = Metric::cosine});
  });
}

TEST_F(CudaSift, Filters) {
  const Vectors queries = random_vectors(DType::f32, 1500, 300, 1);
  const Vectors base = random_vectors(DType::f32, 40000, 300, 2);
  for (const double share : {0.95, 0.5}) {
    const Filters filters(40000, share, 3);
    expect_parity(queries, base, {.k = 10, .metric = Metric::l2, .filter = filters.by_mask()});
  }
}

}  // namespace
}  // namespace kith
