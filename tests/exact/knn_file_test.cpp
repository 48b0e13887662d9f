#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

reference::Result search_files(const std::string& queries, const std::string& base, const KnnParams& params,
                               const Resources& resources) {
  reference::Result result;
  knn(
      VectorFile(queries), VectorFile(base),
      [&](int64_t first, const NeighborsView& part) {
        EXPECT_EQ(first * params.k, static_cast<int64_t>(result.ids.size()));
        EXPECT_EQ(part.k, params.k);
        result.ids.insert(result.ids.end(), part.ids, part.ids + part.queries * part.k);
        result.distances.insert(result.distances.end(), part.distances, part.distances + part.queries * part.k);
      },
      params, resources);
  return result;
}

TEST(KnnFile, GivesTheSameAnswersUnderAnyLimit) {
  const testing::TemporaryDirectory directory;
  const auto queries = make_floats(Shape::gaussian, 90, 32, 1);
  const auto base = make_floats(Shape::gaussian, 9000, 32, 2);  // 1.1 MB
  write_vectors(directory.path("q.fbin"), queries.view());
  write_vectors(directory.path("b.npy"), base.view());
  for (const KnnParams& params : {KnnParams{10, Metric::l2}, KnnParams{10000, Metric::inner_product}}) {
    const reference::Result truth = reference::knn(queries, base, params);
    for (const int64_t limit : {kNoLimit, params.k == 10 ? int64_t{250000} : int64_t{16000000}}) {
      ResourceOptions options;
      options.threads = 2;
      options.device = Device::cpu();
      options.host_memory_limit = limit;
      const Resources resources(options);
      const reference::Result found =
          search_files(directory.path("q.fbin"), directory.path("b.npy"), params, resources);
      EXPECT_EQ(found.ids, truth.ids);
      EXPECT_EQ(found.distances, truth.distances);
      EXPECT_EQ(resources.host_memory()->used(), 0);
    }
  }
}

TEST(KnnFile, AnEmptyBaseGivesPadding) {
  const testing::TemporaryDirectory directory;
  const auto queries = make_floats(Shape::gaussian, 2, 4, 1);
  write_vectors(directory.path("q.fbin"), queries.view());
  write_vectors(directory.path("b.fbin"), MatrixView(static_cast<const float*>(nullptr), 0, 4));
  const reference::Result found =
      search_files(directory.path("q.fbin"), directory.path("b.fbin"), {3, Metric::l2}, Resources());
  EXPECT_EQ(found.ids, std::vector<int64_t>(6, -1));
}

}  // namespace
}  // namespace kith
