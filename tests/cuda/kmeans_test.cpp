// k-means on the GPU against the CPU, bit for bit: many pieces and tiles, hard data, limits.
#include "cuda/kmeans_parity.hpp"
#include "io/temporary_directory.hpp"

#include <kith/vector_file.hpp>

#include <algorithm>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaKMeans : public OnCuda {};

TEST_F(CudaKMeans, HardData) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(name_of(shape));
    const auto data = make_floats(shape, 3000, 24, 1);
    for (const bool spherical : {false, true}) {
      KMeansParams params = random_start(50, 4);
      params.spherical = spherical;
      params.tol = 0;
      expect_fit_parity(data.view(), params);
    }
  }
}

TEST_F(CudaKMeans, ShapesAroundTilesAndBlocks) {
  for (const int64_t rows : {1023, 1024, 1025, 2048, 5000}) {
    const auto data = make_floats(Shape::gaussian, rows, 33, 2);
    for (const int64_t clusters : {1, 2, 127, 128, 129, 255, 256, 257, 1000}) {
      expect_fit_parity(data.view(), random_start(clusters, 2));
    }
  }
}

TEST_F(CudaKMeans, ManyColumns) {
  for (const int64_t cols : {128, 129, 512, 784, 1500}) {
    const auto data = make_floats(Shape::gaussian, 3000, cols, 3);
    expect_fit_parity(data.view(), random_start(200, 3));
  }
}

// Enough runs that keys come with the sums, whose rows are cut between the halves of a warp.
TEST_F(CudaKMeans, ManyColumnsAndRuns) {
  for (const int64_t cols : {300, 528, 800, 1100, 1536}) {
    const auto data = make_floats(Shape::gaussian, 30000, cols, 3);
    expect_fit_parity(data.view(), random_start(cols == 300 ? 500 : 8200, 2));
  }
}

// Half of all rows have one centre: their sums and keys are computed apart.
TEST_F(CudaKMeans, LongRuns) {
  for (const int64_t cols : {24, 128, 200, 300, 1100}) {
    auto data = make_floats(Shape::gaussian, 9000, cols, 6);
    for (int64_t i = 1; i < 4500; ++i) std::copy_n(data.row(0), cols, data.row(2 * i));
    for (const DType dtype : {DType::f32, DType::f16, DType::u8}) {
      expect_fit_parity(TypedRows(dtype, data, 30, 3).view(), random_start(cols == 1100 ? 2100 : 300, 3));
    }
  }
}

TEST_F(CudaKMeans, LargeWithEveryDtype) {
  const auto data = make_floats(Shape::gaussian, 100000, 32, 4);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8}) {
    expect_fit_parity(TypedRows(dtype, data, 30).view(), random_start(700, 5));
  }
}

TEST_F(CudaKMeans, AsManyCentresAsRowsAndDuplicates) {
  const auto data = make_floats(Shape::near_duplicates, 3000, 5, 5);
  expect_fit_parity(data.view(), random_start(3000, 3));
  expect_fit_parity(data.view(), random_start(600, 4));
}

TEST_F(CudaKMeans, EveryStart) {
  const auto data = make_floats(Shape::gaussian, 6000, 12, 6);
  KMeansParams params = random_start(40, 5);
  params.n_init = 3;
  expect_fit_parity(data.view(), params);
  params.init = KMeansInit::kmeans_plus_plus;
  expect_fit_parity(data.view(), params);
  params.n_init = 1;
  params.init = KMeansInit::given;
  KMeansInput input;
  const auto given = make_floats(Shape::gaussian, 40, 12, 7);
  input.centres = given.view();
  expect_fit_parity(data.view(), params, input);
  params.max_points_per_centre = 20;
  expect_fit_parity(data.view(), params, input);
  params.compute_labels = false;
  expect_fit_parity(data.view(), params, input);
}

TEST_F(CudaKMeans, ALimitThatMakesRowsComeAgainInEveryPass) {
  const auto data = make_floats(Shape::gaussian, 60000, 40, 8);
  std::vector<float> weights(60000);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7);
  KMeansInput input;
  input.weights = {weights.data(), 60000, {}};
  for (const int64_t limit : {64 << 20, 24 << 20, 16 << 20, 8 << 20}) {
    SCOPED_TRACE(limit);
    expect_fit_parity(data.view(), random_start(300, 4), {}, with_device_limit(limit));
    expect_fit_parity(data.view(), random_start(300, 4), input, with_device_limit(limit));
  }
}

TEST_F(CudaKMeans, AFileLargerThanTheDeviceLimit) {
  const testing::TemporaryDirectory directory;
  const auto data = make_floats(Shape::gaussian, 50000, 33, 13);
  write_vectors(directory.path("x.fbin"), data.view());
  const VectorFile file(directory.path("x.fbin"));
  KMeansParams params = random_start(60, 3);
  for (const KMeansInit init : {KMeansInit::random, KMeansInit::kmeans_plus_plus}) {
    params.init = init;
    const Fitted expected = fit(data.view(), params);
    expect_same_fit(expected, fit(file, params));
    for (const int64_t limit : {kNoLimit, int64_t{6} << 20}) {
      expect_same_fit(expected, fit(file, params, {}, with_device_limit(limit)));
    }
  }
}

TEST_F(CudaKMeans, TooSmallALimitIsOutOfMemoryWithTheBytes) {
  const auto data = make_floats(Shape::gaussian, 5000, 16, 9);
  try {
    fit(data.view(), random_start(20, 2), {}, with_device_limit(5000));
    FAIL() << "5000 bytes were enough";
  } catch (const OutOfMemory& error) {
    EXPECT_GT(error.bytes_needed(), 5000);
    expect_fit_parity(data.view(), random_start(20, 2), {}, with_device_limit(error.bytes_needed()));
  }
}

TEST_F(CudaKMeans, MiniBatchesWithWeights) {
  const auto data = make_floats(Shape::far_mean, 20000, 20, 10);
  std::vector<float> weights(20000);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.1f * static_cast<float>(i % 11);
  KMeansInput input;
  input.weights = {weights.data(), 20000, {}};
  KMeansParams params = random_start(150, 3);
  params.batch_size = 3000;
  expect_fit_parity(data.view(), params, input);
  params.spherical = true;
  expect_fit_parity(data.view(), params);
}

TEST_F(CudaKMeans, PredictsInPieces) {
  const auto data = make_floats(Shape::gaussian, 50000, 24, 11);
  KMeans model(random_start(64, 2));
  model.fit(data.view(), {}, on_cpu());
  std::vector<int32_t> expected(50000);
  std::vector<int32_t> found(50000);
  std::vector<float> far(50000);
  std::vector<float> found_far(50000);
  model.predict(data.view(), expected.data(), far.data(), on_cpu());
  for (const int64_t limit : {kNoLimit, int64_t{6} << 20}) {
    model.predict(data.view(), found.data(), found_far.data(), with_device_limit(limit));
    EXPECT_EQ(expected, found);
    EXPECT_EQ(far, found_far);
  }
}

TEST_F(CudaKMeans, CanBeCancelled) {
  const auto data = make_floats(Shape::gaussian, 20000, 24, 12);
  ResourceOptions options = cuda_options();
  // Asked for in the middle, by the sink: at the latest between the first start and the second.
  const CancelToken token = options.cancel;
  bool heard = false;
  options.progress = [&](const Progress& progress) {
    EXPECT_FALSE(heard) << "went on with " << progress.stage;
    heard = progress.stage == "kmeans";
    if (heard) token.request();
  };
  KMeansParams params = random_start(30, 5);
  params.n_init = 2;
  EXPECT_THROW(fit(data.view(), params, {}, Resources(options)), Cancelled);
  EXPECT_TRUE(heard);
}

}  // namespace
}  // namespace kith
