// k-means on the GPU against the CPU, bit for bit, on shapes small enough for compute-sanitizer.
#include "cluster/steps/kmeans_backend.hpp"
#include "cuda/kmeans_parity.hpp"

#include <tuple>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

class CudaKMeansSmall : public OnCuda {};

TEST_F(CudaKMeansSmall, OddShapes) {
  for (const auto& [rows, cols, clusters] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                             {1, 5, 1},
                                             {7, 3, 7},
                                             {130, 1, 5},
                                             {257, 17, 129},
                                             {300, 300, 3},
                                             {40, 784, 6},
                                             {1025, 6, 20}}) {
    const auto data = make_floats(Shape::gaussian, rows, cols, 1);
    KMeansParams params = random_start(clusters, 2);
    expect_fit_parity(data.view(), params);
    params.init = KMeansInit::kmeans_plus_plus;
    expect_fit_parity(data.view(), params);
  }
}

TEST_F(CudaKMeansSmall, EveryDtype) {
  for (const int64_t cols : {19, 71}) {  // few columns, and more than registers hold, of few centres
    const auto data = make_floats(Shape::gaussian, 300, cols, 2);
    int64_t gap = 0;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8}) {
      const TypedRows rows(dtype, data, 20, gap++ % 3);
      KMeansParams params = random_start(cols == 19 ? 9 : 5, 2);
      expect_fit_parity(rows.view(), params);
      params.spherical = true;
      expect_fit_parity(rows.view(), params);
    }
  }
}

// Keys around f32's least and largest numbers, of centres that move: their guesses must hold.
TEST_F(CudaKMeansSmall, TinyAndHugeKeys) {
  const auto data = make_floats(Shape::gaussian, 400, 6, 9);
  for (const float unit : {1e-23f, 1e-22f, 1e-21f, 1e18f}) {
    SCOPED_TRACE(unit);
    for (const bool spherical : {false, true}) {
      KMeansParams params = random_start(40, 5);
      params.spherical = spherical;
      params.tol = 0;
      expect_fit_parity(TypedRows(DType::f32, data, unit).view(), params);
    }
  }
}

TEST_F(CudaKMeansSmall, WeightsAndEmptyClusters) {
  auto data = make_floats(Shape::gaussian, 300, 8, 3);
  for (int64_t i = 0; i < 200; ++i) std::copy_n(data.row(i % 4), 8, data.row(i));  // many equal rows: empty centres
  std::vector<float> weights(300);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 5) * 0.37f;
  KMeansInput input;
  input.weights = {weights.data(), 300, {}};
  for (const bool spherical : {false, true}) {
    KMeansParams params = random_start(40, 2);
    params.spherical = spherical;
    expect_fit_parity(data.view(), params);
    expect_fit_parity(data.view(), params, input);
  }
}

TEST_F(CudaKMeansSmall, MiniBatches) {
  const auto data = make_floats(Shape::gaussian, 500, 7, 4);
  KMeansParams params = random_start(6, 2);
  params.batch_size = 90;
  expect_fit_parity(data.view(), params);
}

TEST_F(CudaKMeansSmall, PartialFitPredictAndTransform) {
  const auto data = make_floats(Shape::gaussian, 420, 11, 5);
  std::vector<std::vector<float>> distances;
  std::vector<std::vector<int32_t>> labels;
  std::vector<Fitted> models;
  std::vector<std::vector<float>> transformed;
  for (const Resources& resources : {on_cpu(), on_cuda()}) {
    KMeans model(random_start(13, 1));
    for (int64_t first = 0; first < 420; first += 140) model.partial_fit(data.view().slice(first, 140), {}, resources);
    models.push_back(taken(model));
    distances.emplace_back(420);
    labels.emplace_back(420);
    model.predict(data.view(), labels.back().data(), distances.back().data(), resources);
    transformed.emplace_back(420 * 13);
    model.transform(data.view(), {transformed.back().data(), 420, 13}, resources);
  }
  expect_same_fit(models[0], models[1]);
  EXPECT_EQ(labels[0], labels[1]);
  EXPECT_EQ(distances[0], distances[1]);
  EXPECT_EQ(transformed[0], transformed[1]);
}

TEST_F(CudaKMeansSmall, TransformsNothingAndRowsThatAreNotFiniteAsTheCpuDoes) {
  auto data = make_floats(Shape::gaussian, 90, 5, 10);
  for (const bool spherical : {false, true}) {
    KMeansParams params = random_start(7, 1);
    params.spherical = spherical;
    KMeans model(params);
    data.row(81)[2] = 1;
    model.fit(data.view(), {}, on_cpu());
    std::vector<float> expected(90 * 7);
    std::vector<float> found(90 * 7);
    model.transform(data.view(), {expected.data(), 90, 7}, on_cpu());
    model.transform(data.view(), {found.data(), 90, 7}, on_cuda());
    EXPECT_EQ(expected, found);
    model.transform(data.view().slice(0, 0), {found.data(), 0, 7}, on_cuda());
    EXPECT_EQ(expected, found);
    data.row(81)[2] = NAN;
    const auto text = [&](const Resources& resources) {
      return text_thrown<InvalidArgument>([&] { model.transform(data.view(), {found.data(), 90, 7}, resources); });
    };
    EXPECT_NE(text(on_cuda()).find("81"), std::string::npos);
    EXPECT_EQ(text(on_cuda()), text(on_cpu()));
  }
}

// One pass of each implementation of the products, and of none.
TEST_F(CudaKMeansSmall, EveryEngine) {
  const DeviceInfo device = cuda_devices().front();
  for (const bool spherical : {false, true}) {
    for (const std::tuple<int64_t, int64_t, int64_t>& size :
         {std::tuple<int64_t, int64_t, int64_t>{300, 40, 300},
          {129, 100, 2},
          {5, 8100, 3},
          {1, 70, 1},
          {1025, 67, 17},
          {300, 131, 257}}) {
      const int64_t rows = std::get<0>(size);
      const int64_t cols = std::get<1>(size);
      const int64_t clusters = std::get<2>(size);
      const auto data = make_floats(Shape::gaussian, rows, cols, 6);
      const auto centres = make_floats(Shape::gaussian, clusters, cols, 7);
      const KMeansShape shape({rows, cols, DType::f32}, clusters);
      KMeansRequest request;
      request.spherical = spherical;
      struct Found {
        std::vector<int32_t> labels;
        std::vector<float> keys;
        std::vector<double> sums;
        double objective = 0;
      };
      const Resources cpu = on_cpu();
      const Resources cuda = on_cuda();
      const auto run = [&](KMeansBackend& backend) {
        Found found;
        found.labels.resize(static_cast<size_t>(rows));
        found.keys.resize(static_cast<size_t>(rows));
        ProgressMeter meter("test", rows, cpu);
        backend.set_rows({rows, found.labels.data(), found.keys.data(), nullptr});
        backend.set_centres(centres.view());
        backend.begin_pass({.adds_up = true});
        backend.scan(data.view(), 0, meter);
        found.objective = backend.objective();
        backend.get_rows();
        const double* const sums = backend.sums().sums;
        found.sums.assign(sums, sums + clusters * cols);
        return found;
      };
      const DataSample sample{std::vector<float>(static_cast<size_t>(cols), 0.1f), 3.0f};
      const PlanBudget budget{kNoLimit, device.memory_free, cpu.threads()};
      const Found expected = run(*make_kmeans_cpu(shape, request, plan_kmeans_cpu(shape, request, budget), sample, cpu));
      for (const ProductEngine engine : {ProductEngine::automatic, ProductEngine::mma, ProductEngine::wgmma}) {
        if (engine == ProductEngine::wgmma && device.compute_capability != 90) continue;
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " to " << clusters << ", engine "
                                        << static_cast<int>(engine) << (spherical ? ", spherical" : ""));
        const KMeansPlan plan = plan_kmeans_cuda(shape, request, device, budget, engine);
        const bool few = engine == ProductEngine::automatic && !spherical && clusters <= 8;
        EXPECT_EQ(plan.cuda()->search.is_few(), few);
        EXPECT_EQ(plan.cuda()->search.has_products(), cols <= 8000 && !few);
        EXPECT_EQ(plan.cuda()->lists_rows, engine == ProductEngine::automatic && clusters <= 256);  // or sorts them
        const Found found = run(*make_kmeans_cuda(shape, request, plan, sample, cuda));
        EXPECT_EQ(found.labels, expected.labels);
        EXPECT_EQ(found.keys, expected.keys);
        EXPECT_EQ(found.sums, expected.sums);
        EXPECT_EQ(found.objective, expected.objective);
      }
    }
  }
}

// Several passes over pieces of which the next comes while one is worked on, as under a small limit.
TEST_F(CudaKMeansSmall, PiecesThatComeAhead) {
  const DeviceInfo device = cuda_devices().front();
  for (const int64_t rows : {1025, 3000, 4096}) {
    const auto data = make_floats(Shape::gaussian, rows, 7, 11);
    const auto centres = make_floats(Shape::gaussian, 9, 7, 12);
    KMeansShape shape({rows, 7, DType::f32}, 9);
    const KMeansRequest request;
    for (const bool in_memory : {true, false}) {
      shape.in_memory = in_memory;
      const Resources cpu = on_cpu();
      const Resources cuda = on_cuda();
      const auto run = [&](KMeansBackend& backend) {
        std::vector<int32_t> labels(static_cast<size_t>(rows));
        std::vector<float> keys(static_cast<size_t>(rows));
        std::vector<double> found;
        auto moved = make_floats(Shape::gaussian, 9, 7, 12);
        const MutableMatrixView target(moved.row(0), 9, 7);
        ProgressMeter meter("test", rows, cpu);
        ViewSource source(data.view());
        backend.set_rows({rows, labels.data(), keys.data(), nullptr});
        backend.set_centres(target);
        for (const bool adds_up : {true, true, false, true}) {
          backend.begin_pass({.adds_up = adds_up});
          backend.scan_all(source, kSumBlock, meter);
          found.push_back(backend.objective());
          if (adds_up) found.push_back(backend.move_to_means(target));
        }
        backend.begin_pass({.adds_up = true});  // by pieces that are handed over, after some have come ahead
        for (int64_t first = 0; first < rows; first += kSumBlock) {
          backend.scan(data.view().slice(first, std::min(kSumBlock, rows - first)), first, meter);
        }
        found.push_back(backend.objective());
        backend.get_rows();
        found.insert(found.end(), labels.begin(), labels.end());
        found.insert(found.end(), keys.begin(), keys.end());
        return found;
      };
      const DataSample sample{std::vector<float>(7, 0.1f), 3.0f};
      const PlanBudget budget{kNoLimit, device.memory_free, cpu.threads()};
      KMeansPlan plan = plan_kmeans_cuda(shape, request, device, budget);
      plan.piece_rows = kSumBlock;
      auto& on_gpu = std::get<KMeansCudaPlan>(plan.on);
      on_gpu.rows_stay = on_gpu.operands_stay = false;
      on_gpu.rows_ahead = true;
      EXPECT_EQ(run(*make_kmeans_cuda(shape, request, plan, sample, cuda)),
                run(*make_kmeans_cpu(shape, request, plan_kmeans_cpu(shape, request, budget), sample, cpu)));
    }
  }
}

// With a tolerance of 0 the values are looked at where they are rounded, else before.
TEST_F(CudaKMeansSmall, NamesTheFirstRowThatIsNotFinite) {
  auto data = make_floats(Shape::gaussian, 300, 8, 8);
  data.row(70)[3] = NAN;
  data.row(200)[0] = INFINITY;
  for (const double tol : {0.0, 1e-4}) {
    for (const KMeansInit init : {KMeansInit::random, KMeansInit::kmeans_plus_plus}) {
      for (const int64_t batch : {0, 50}) {
        KMeansParams params = random_start(4, 2);
        params.tol = tol;
        params.init = init;
        params.batch_size = batch;
        const auto text = [&](const Resources& resources) {
          return text_thrown<InvalidArgument>([&] { fit(data.view(), params, {}, resources); });
        };
        EXPECT_NE(text(on_cuda()).find("70"), std::string::npos);
        EXPECT_EQ(text(on_cuda()), text(on_cpu()));
      }
    }
  }
}

}  // namespace
}  // namespace kith
