#include <kith/error.hpp>
#include <kith/kmeans.hpp>

#include "cluster/fitted.hpp"
#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

TEST(KMeansFile, TheSameBytesAsFromMemoryUnderAnyLimit) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 19500, 64, 1);  // 5 MB, no multiple of a block
  write_vectors(directory.path("x.fbin"), rows.view());
  const VectorFile file(directory.path("x.fbin"));
  std::vector<float> weights;
  for (int i = 0; i < 19500; ++i) weights.push_back(static_cast<float>(1 + i % 3));
  KMeansInput input;
  input.weights = {weights.data(), 19500, {}};
  for (const int64_t batch : {0, 500}) {
    for (const int64_t most : {0, 40}) {
      KMeansParams params;
      params.clusters = 16;
      params.iterations = 4;
      params.batch_size = batch;
      params.max_points_per_centre = most;
      const Fitted truth = fit(rows.view(), params, input);
      for (const int64_t limit : {kNoLimit, int64_t{9} << 18}) {
        const Resources resources = cpu_resources(2, limit);
        EXPECT_EQ(fit(file, params, input, resources), truth) << batch << " " << most << " " << limit;
        EXPECT_EQ(resources.host_memory()->used(), 0);
      }
    }
  }
}

TEST(KMeansFile, PredictHandsOutEveryRowOnce) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_bytes(5000, 20, 2);
  write_vectors(directory.path("x.u8bin"), rows.view());
  KMeansParams params;
  params.clusters = 12;
  KMeans model(params);
  model.fit(rows.view(), {}, cpu_resources(2));
  std::vector<int32_t> labels(5000);
  std::vector<float> distances(5000);
  model.predict(rows.view(), labels.data(), distances.data(), cpu_resources(2));
  std::vector<int32_t> from_file;
  std::vector<float> file_distances;
  model.predict(
      VectorFile(directory.path("x.u8bin")),
      [&](int64_t first, int64_t count, const int32_t* l, const float* d) {
        ASSERT_EQ(first, static_cast<int64_t>(from_file.size()));
        from_file.insert(from_file.end(), l, l + count);
        file_distances.insert(file_distances.end(), d, d + count);
      },
      cpu_resources(2, 300000));
  EXPECT_EQ(from_file, labels);
  EXPECT_EQ(file_distances, distances);
}

TEST(KMeansFile, TooSmallALimitSaysWhatWouldDo) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 5000, 32, 3);
  write_vectors(directory.path("x.fbin"), rows.view());
  const VectorFile file(directory.path("x.fbin"));
  KMeansParams params;
  params.clusters = 100;
  params.init = KMeansInit::random;
  int64_t needed = 0;
  try {
    fit(file, params, {}, cpu_resources(1, 100000));
    FAIL() << "a limit of 100,000 bytes was enough";
  } catch (const OutOfMemory& error) {
    needed = error.bytes_needed();
  }
  // The number is what the refused step wanted; the results' memory comes before it.
  const int64_t results = 5000 * 4 + 100 * 32 * 4 + 100 * 8 + 4096;
  EXPECT_EQ(fit(file, params, {}, cpu_resources(1, needed + results)), fit(rows.view(), params));
}

}  // namespace
}  // namespace kith
