// k-means of rows that lie in a GPU's memory.
#include "cluster/start/first_centres.hpp"
#include "cuda/device_data.hpp"
#include "cuda/kmeans_parity.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaKMeansOnDevice : public OnCuda {};
class CudaKMeansSmallOnDevice : public OnCuda {};

TEST_F(CudaKMeansOnDevice, FitsTheSame) {
  const auto data = make_floats(Shape::gaussian, 1500, 10, 1);
  for (const DType dtype : {DType::f32, DType::f16, DType::u8}) {
    for (const int64_t gap : {0, 1}) {
      const TypedRows rows(dtype, data, 25, gap);
      const DeviceMatrix on_device(rows.view());
      for (const KMeansInit init : {KMeansInit::random, KMeansInit::kmeans_plus_plus}) {
        KMeansParams params = random_start(12, 4);
        params.init = init;
        expect_same_fit(fit(rows.view(), params), fit(on_device.view(), params, {}, on_cuda()));
        expect_same_fit(fit(rows.view(), params), fit(on_device.view(), params, {}, Resources()));  // where they are
        params.batch_size = 300;
        params.spherical = true;
        expect_same_fit(fit(rows.view(), params), fit(on_device.view(), params, {}, on_cuda()));
        params.batch_size = 0;
        params.max_points_per_centre = 50;
        expect_same_fit(fit(rows.view(), params), fit(on_device.view(), params, {}, on_cuda()));
      }
    }
  }
}

// Enough values and centres that candidates are drawn in rounds, by backends that have fewer centres than planned.
TEST_F(CudaKMeansOnDevice, StartsTheSameWithManyCentres) {
  const auto data = make_floats(Shape::gaussian, 6000, 256, 4);
  std::vector<float> weights(6000);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.37f * static_cast<float>(i % 4);
  KMeansInput weighted;
  weighted.weights = {weights.data(), 6000, {}};
  KMeansParams params = random_start(700, 2);
  params.init = KMeansInit::kmeans_plus_plus;
  ASSERT_TRUE(choose_start(params, 6000, 256).oversamples());
  const DeviceMatrix on_device(data.view());
  for (const KMeansInput& input : {KMeansInput(), weighted}) {
    const Fitted expected = fit(data.view(), params, input);
    expect_same_fit(expected, fit(data.view(), params, input, on_cuda()));
    expect_same_fit(expected, fit(on_device.view(), params, input, on_cuda()));
  }
}

TEST_F(CudaKMeansOnDevice, ScalesExtremeRowsAndStopsForDirectionsTheSame) {
  const auto data = make_floats(Shape::gaussian, 3000, 11, 5);
  for (const float unit : {1e25f, 1e-24f, 1.0f}) {
    SCOPED_TRACE(unit);
    const TypedRows rows(DType::f32, data, unit, 1);
    const DeviceMatrix on_device(rows.view());
    for (const bool spherical : {false, true}) {
      KMeansParams params = random_start(9, 100);
      params.spherical = spherical;
      const Fitted expected = fit(rows.view(), params);
      EXPECT_GT(expected.iterations, 3);
      expect_same_fit(expected, fit(on_device.view(), params, {}, on_cuda()));
      expect_same_fit(expected, fit(rows.view(), params, {}, on_cuda()));
    }
  }
}

// Sums of few centres: blocks of rows of every size, of which one goes on in the next piece, with weights and without.
TEST_F(CudaKMeansOnDevice, FitsFewCentresInOneOrder) {
  for (const auto& [rows, cols, clusters] : {std::tuple<int64_t, int64_t, int64_t>{5000, 8, 8},
                                             {40000, 3, 16},
                                             {20000, 33, 40},
                                             {70000, 5, 200},
                                             {3000, 64, 64}}) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " to " << clusters);
    const auto data = make_floats(Shape::gaussian, rows, cols, 11);
    const DeviceMatrix on_device(data.view());
    std::vector<float> weights(static_cast<size_t>(rows));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) * 0.31f;
    KMeansInput weighted;
    weighted.weights = {weights.data(), rows, {}};
    for (const bool spherical : {false, true}) {
      KMeansParams params = random_start(clusters, 4);
      params.spherical = spherical;
      for (const KMeansInput& input : {KMeansInput(), weighted}) {
        const Fitted expected = fit(data.view(), params, input);
        expect_same_fit(expected, fit(on_device.view(), params, input, on_cuda()));
        expect_same_fit(expected, fit(data.view(), params, input, with_device_limit(1 << 20)));
      }
    }
  }
}

TEST_F(CudaKMeansOnDevice, PredictsTransformsAndPartiallyFitsTheSame) {
  const auto data = make_floats(Shape::gaussian, 700, 9, 2);
  const DeviceMatrix on_device(data.view());
  KMeans expected(random_start(8, 2));
  KMeans found(random_start(8, 2));
  expected.partial_fit(data.view(), {}, on_cpu());
  found.partial_fit(on_device.view(), {}, on_cuda());
  expect_same_fit(taken(expected), taken(found));
  std::vector<int32_t> labels[2] = {std::vector<int32_t>(700), std::vector<int32_t>(700)};
  std::vector<float> far[2] = {std::vector<float>(700), std::vector<float>(700)};
  expected.predict(data.view(), labels[0].data(), far[0].data(), on_cpu());
  found.predict(on_device.view(), labels[1].data(), far[1].data(), on_cuda());
  EXPECT_EQ(labels[0], labels[1]);
  EXPECT_EQ(far[0], far[1]);
  std::vector<float> all[2] = {std::vector<float>(700 * 8), std::vector<float>(700 * 8)};
  expected.transform(data.view(), {all[0].data(), 700, 8}, on_cpu());
  found.transform(on_device.view(), {all[1].data(), 700, 8}, on_cuda());
  EXPECT_EQ(all[0], all[1]);
}

TEST_F(CudaKMeansSmallOnDevice, NamesTheFirstRowThatIsNotFinite) {
  auto data = make_floats(Shape::gaussian, 2500, 6, 3);
  data.row(1999)[2] = INFINITY;
  data.row(1300)[5] = NAN;
  const DeviceMatrix on_device(data.view());
  const std::string text =
      text_thrown<InvalidArgument>([&] { fit(on_device.view(), random_start(4, 2), {}, on_cuda()); });
  EXPECT_NE(text.find("1300"), std::string::npos);
  EXPECT_EQ(text, text_thrown<InvalidArgument>([&] { fit(data.view(), random_start(4, 2), {}, on_cpu()); }));
}

// By narrow and by wide rows, aligned and not, when rows are assigned, which looks at them by itself.
TEST_F(CudaKMeansSmallOnDevice, NamesTheFirstRowThatIsNotFiniteOfAnyWidth) {
  for (const int64_t cols : {1, 3, 31, 32, 33, 784}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t gap : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << cols << " columns of " << name_of(dtype) << ", gap " << gap);
        auto data = make_floats(Shape::gaussian, 150, cols, 6);
        KMeans model(random_start(3, 1));
        model.fit(TypedRows(dtype, data, 1, gap).view(), {}, on_cpu());
        const auto text = [&](const MatrixView& rows, const Resources& resources) {
          std::vector<int32_t> labels(150);
          return text_thrown<InvalidArgument>([&] { model.predict(rows, labels.data(), nullptr, resources); });
        };
        const TypedRows good(dtype, data, 1, gap);
        EXPECT_EQ(text(DeviceMatrix(good.view()).view(), on_cuda()), "");
        data.row(149)[0] = INFINITY;
        data.row(101)[cols - 1] = NAN;
        const TypedRows bad(dtype, data, 1, gap);
        const std::string found = text(DeviceMatrix(bad.view()).view(), on_cuda());
        EXPECT_NE(found.find("101"), std::string::npos) << found;
        EXPECT_EQ(found, text(bad.view(), on_cpu()));
      }
    }
  }
}

// Labels and distances in device memory, both or one, of rows that lie there or not: by every width of the few centres'
// pass, by products, and by exact search.
TEST_F(CudaKMeansSmallOnDevice, PredictsIntoDeviceMemory) {
  for (const auto& [cols, clusters] : {std::pair<int64_t, int64_t>{1, 1},
                                       {3, 7},
                                       {8, 8},
                                       {9, 256},
                                       {20, 31},
                                       {32, 50},
                                       {41, 9},
                                       {64, 64},
                                       {65, 5},
                                       {133, 8},
                                       {300, 4},
                                       {30, 300},
                                       {8100, 2}}) {
    const int64_t rows = cols > 1000 ? 20 : 1500;
    for (const bool spherical : {false, true}) {
      SCOPED_TRACE(::testing::Message() << cols << " columns to " << clusters << (spherical ? ", spherical" : ""));
      const auto data = make_floats(Shape::gaussian, rows, cols, 7);
      const DeviceMatrix on_device(data.view());
      KMeansParams params = random_start(clusters, 1);
      params.clusters = std::min(clusters, rows);
      params.spherical = spherical;
      KMeans model(params);
      model.fit(data.view(), {}, on_cpu());
      std::vector<int32_t> labels(static_cast<size_t>(rows));
      std::vector<float> far(static_cast<size_t>(rows));
      model.predict(data.view(), labels.data(), far.data(), on_cpu());
      const MemorySpace space = MemorySpace::cuda(0);
      for (const MatrixView& from : {on_device.view(), data.view()}) {
        for (const int wanted : {1, 2, 3}) {
          const DeviceBytes found(labels.size() * 4);
          const DeviceBytes found_far(labels.size() * 4);
          VectorView<int32_t> to{static_cast<int32_t*>(found.data()), rows, space};
          VectorView<float> far_to{static_cast<float*>(found_far.data()), rows, space};
          if ((wanted & 1) == 0) to = {};
          if ((wanted & 2) == 0) far_to = {};
          model.predict(from, to, far_to, on_cuda());
          std::vector<int32_t> mine(labels.size());
          std::vector<float> my_far(labels.size());
          found.read(mine.data());
          found_far.read(my_far.data());
          EXPECT_TRUE((wanted & 1) == 0 || mine == labels);
          EXPECT_TRUE((wanted & 2) == 0 || my_far == far);
        }
      }
    }
  }
}

// Rows about as near to many centres, equal centres, and values whose squares leave f32: by the few centres' pass and
// pair by pair, to the host and to device memory, where rows that are to be scaled are assigned twice.
TEST_F(CudaKMeansSmallOnDevice, PredictsTiesAndExtremesOfFewCentresAsTheCpuDoes) {
  constexpr int64_t kRows = 900;
  for (const int64_t cols : {12, 70}) {
    for (const float unit : {1.0f, 1e-23f, 1e-21f, 1e19f, 3e38f}) {
      SCOPED_TRACE(::testing::Message() << cols << " columns of " << unit);
      auto data = make_floats(Shape::gaussian, kRows, cols, 8);
      for (float& value : data.values) value = unit * std::clamp(std::round(value), -1.0f, 1.0f);
      auto centres = make_floats(Shape::gaussian, 30, cols, 9);
      for (int64_t i = 0; i < 30; ++i) std::copy_n(data.row(i % 13), cols, centres.row(i));
      KMeans model(random_start(30, 1));
      model.set_centres(centres.view());
      std::vector<int32_t> labels[3];
      std::vector<float> far[3];
      for (int i = 0; i < 3; ++i) {
        labels[i].resize(kRows);
        far[i].resize(kRows);
      }
      const DeviceMatrix there(data.view());
      model.predict(data.view(), labels[0].data(), far[0].data(), on_cpu());
      model.predict(there.view(), labels[1].data(), far[1].data(), on_cuda());
      const DeviceBytes found(kRows * sizeof(int32_t));
      const DeviceBytes found_far(kRows * sizeof(float));
      const MemorySpace space = MemorySpace::cuda(0);
      model.predict(there.view(), {static_cast<int32_t*>(found.data()), kRows, space},
                    {static_cast<float*>(found_far.data()), kRows, space}, on_cuda());
      found.read(labels[2].data());
      found_far.read(far[2].data());
      for (const int i : {1, 2}) {
        EXPECT_EQ(labels[0], labels[i]);
        EXPECT_EQ(far[0], far[i]);
      }
    }
  }
}

// Many rows with many centres about as near, so that products are asked again and mark them.
TEST_F(CudaKMeansOnDevice, PredictsRowsWithManyCentresAboutAsNear) {
  for (const Shape shape : {Shape::near_duplicates, Shape::gaussian}) {
    for (const bool spherical : {false, true}) {
      for (const int64_t clusters : {100, 250}) {
        const auto data = make_floats(shape, 6500, 170, 12);
        auto centres = make_floats(shape, clusters, 170, 13);
        for (int64_t c = 0; c < clusters; ++c) {
          // Means of rows without clusters are near each other; some are equal.
          for (int64_t i = 0; i < 170; ++i) centres.row(c)[i] = data.row(c / 2)[i] * 0.02f + data.row(5)[i];
        }
        KMeansParams params = random_start(clusters, 1);
        params.spherical = spherical;
        KMeans model(params);
        model.set_centres(centres.view());
        std::vector<int32_t> labels[2] = {std::vector<int32_t>(6500), std::vector<int32_t>(6500)};
        std::vector<float> far[2] = {std::vector<float>(6500), std::vector<float>(6500)};
        model.predict(data.view(), labels[0].data(), far[0].data(), on_cpu());
        model.predict(DeviceMatrix(data.view()).view(), labels[1].data(), far[1].data(), on_cuda());
        EXPECT_EQ(labels[0], labels[1]) << clusters << (spherical ? ", spherical" : "");
        EXPECT_EQ(far[0], far[1]);
      }
    }
  }
}

TEST_F(CudaKMeansSmallOnDevice, RefusesOutputsThatDoNotFit) {
  const auto data = make_floats(Shape::gaussian, 50, 6, 4);
  KMeans model(random_start(4, 1));
  model.fit(data.view(), {}, on_cpu());
  const DeviceBytes room(50 * 4);
  std::vector<float> far(50);
  const VectorView<int32_t> labels{static_cast<int32_t*>(room.data()), 50, MemorySpace::cuda(0)};
  EXPECT_THROW(model.predict(data.view(), labels, {}, on_cpu()), Unsupported);
  EXPECT_THROW(model.predict(data.view(), labels, {far.data(), 50, {}}, on_cuda()), InvalidArgument);
  EXPECT_THROW(model.predict(data.view().slice(0, 49), labels, {}, on_cuda()), InvalidArgument);
}

TEST_F(CudaKMeansOnDevice, IsNotFittedOnTheCpu) {
  const auto data = make_floats(Shape::gaussian, 50, 6, 4);
  const DeviceMatrix on_device(data.view());
  EXPECT_THROW(fit(on_device.view(), random_start(4, 2), {}, on_cpu()), Unsupported);
}

TEST_F(CudaKMeansSmallOnDevice, OnTheCallersStream) {
  const auto data = make_floats(Shape::gaussian, 500, 16, 5);
  const DeviceMatrix on_device(data.view());
  cudaStream_t stream = nullptr;
  KITH_CUDA_CHECK(cudaStreamCreate(&stream));
  ResourceOptions options = cuda_options();
  options.stream = stream;
  expect_same_fit(fit(data.view(), random_start(11, 2)),
                  fit(on_device.view(), random_start(11, 2), {}, Resources(options)));
  KITH_CUDA_CHECK(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace kith
