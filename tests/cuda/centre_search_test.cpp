// The search for nearest centres by itself, without k-means: what the assignment to inverted lists would call.
#include "cluster/search/centre_search_cuda.hpp"
#include "cuda/device_data.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/error.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/assign/few_centres_cuda.hpp"
#include "kernels/distance/distance_task.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

class CudaCentreSearchSmall : public OnCuda {};

struct Nearest {
  std::vector<int32_t> labels;
  std::vector<float> keys;

  explicit Nearest(int64_t rows) : labels(static_cast<size_t>(rows), kNoLabel), keys(static_cast<size_t>(rows)) {}
};

Nearest by_cpu(KeyKind kind, const Matrix<float>& rows, const Matrix<float>& centres) {
  const Resources resources = on_cpu();
  ProgressMeter meter("test", 1, resources);
  PackedRows packed(kind, PanelFormat::f32, choose_origin(kind, centres.view()), centres.rows, resources);
  packed.pack(centres.view(), {}, meter, resources);
  Nearest found(rows.rows);
  NearestCentre(kind, PanelFormat::f32, rows.cols, resources)
      .assign(packed, centres.view(), rows.view(), found.labels.data(), found.keys.data());
  return found;
}

// Lists whose centres stay as they are: rows come in batches, of which each is seen once.
TEST_F(CudaCentreSearchSmall, LabelsBatchesOfRows) {
  const DeviceInfo device = cuda_devices().front();
  const DeviceGuard guard(0);
  const Resources resources = on_cuda();
  for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::inner_product}) {
    for (const Shape data : {Shape::gaussian, Shape::near_duplicates}) {
      const auto rows = make_floats(data, 700, 24, 1);
      auto centres = make_floats(data, 300, 24, 2);
      if (kind == KeyKind::inner_product) {  // of length 1
        for (int64_t c = 0; c < centres.rows; ++c) {
          float* const centre = centres.row(c);
          const double norm = std::sqrt(std::inner_product(centre, centre + 24, centre, 0.0));
          for (int i = 0; i < 24; ++i) centre[i] = static_cast<float>(centre[i] / norm);
        }
      }
      const Nearest expected = by_cpu(kind, rows, centres);
      for (const bool once : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(kind) << (once ? ", once" : ""));
        const CentreSearchShape shape{256, 0, centres.rows, 24, DType::f32, kind, once};
        const CentreSearchPlan plan = plan_centre_search(shape, device, {kNoLimit, device.memory_free, 1});
        const bool product = kind == KeyKind::inner_product;
        ASSERT_EQ(plan.form == AssignForm::tiles, once && !product);
        ASSERT_EQ(plan.form == AssignForm::pairs, once && product && has_fast_doubles(device.compute_capability));
        ASSERT_EQ(plan.has_products(), !plan.compares_pairs());
        const auto context = std::make_shared<DeviceContext>(0);
        const DeviceBytes memory(static_cast<size_t>(CentreSearchLayout(shape, plan).bytes));
        CentreSearchCuda search(shape, plan, {std::vector<float>(24, 0.0f), 4.0f},
                                static_cast<std::byte*>(memory.data()), context, resources);
        const DeviceMatrix on_device(rows.view());
        const DeviceMatrix lists(centres.view());
        const DeviceBytes labels(expected.labels.size() * sizeof(int32_t));
        const DeviceBytes keys(expected.keys.size() * sizeof(float));
        ProgressMeter meter("test", rows.rows, resources);
        search.set_centres(static_cast<const float*>(lists.view().data()), lists.view().rows());
        for (int64_t first = 0; first < rows.rows; first += shape.rows) {
          const MatrixView batch = on_device.view().slice(first, std::min(shape.rows, rows.rows - first));
          CentreSearchTask task;
          task.rows = {batch.data(), DType::f32, batch.row_stride(), batch.rows(), nullptr};
          task.labels = static_cast<int32_t*>(labels.data()) + first;
          task.keys = static_cast<float*>(keys.data()) + first;
          search.run(task, meter);
        }
        context->synchronize();
        Nearest found(rows.rows);
        labels.read(found.labels.data());
        keys.read(found.keys.data());
        EXPECT_EQ(found.labels, expected.labels);
        EXPECT_EQ(found.keys, expected.keys);
      }
    }
  }
}

// Rows and centres that do not fill their tiles, of columns that do not fill a stage, or a four.
TEST_F(CudaCentreSearchSmall, TilesOfCentresLabelAsTheCpuDoes) {
  struct Size {
    int64_t rows, centres, cols;
  };
  const DeviceGuard guard(0);
  for (const Size size :
       {Size{1, 1, 1}, Size{31, 64, 3}, Size{33, 65, 33}, Size{70, 258, 9}, Size{100, 512, 100}, Size{40, 300, 513}}) {
    for (const Shape data : reference::kAllShapes) {
      SCOPED_TRACE(::testing::Message() << size.rows << " x " << size.cols << ", " << size.centres << " centres, data "
                                        << static_cast<int>(data));
      const auto rows = make_floats(data, size.rows, size.cols, 1);
      const auto centres = make_floats(data, size.centres, size.cols, 2);
      const Nearest expected = by_cpu(KeyKind::squared_l2, rows, centres);
      const DeviceMatrix on_device(rows.view());
      const DeviceMatrix lists(centres.view());
      const DeviceBytes labels(expected.labels.size() * sizeof(int32_t));
      const DeviceBytes keys(expected.keys.size() * sizeof(float));
      FewCentresTask task;
      task.rows = {on_device.view().data(), DType::f32, size.cols, size.rows, nullptr};
      task.centres = static_cast<const float*>(lists.view().data());
      task.centre_count = size.centres;
      task.cols = size.cols;
      task.labels = static_cast<int32_t*>(labels.data());
      for (const bool with_keys : {true, false}) {
        task.keys = with_keys ? static_cast<float*>(keys.data()) : nullptr;
        launch_tiled_centres(task, nullptr);
        KITH_CUDA_CHECK(cudaDeviceSynchronize());
        Nearest found(size.rows);
        labels.read(found.labels.data());
        EXPECT_EQ(found.labels, expected.labels);
        keys.read(found.keys.data());
        EXPECT_EQ(found.keys, expected.keys);
      }
    }
  }
}

TEST_F(CudaCentreSearchSmall, TilesOfCentresNameARowThatIsNotFinite) {
  const DeviceGuard guard(0);
  const Resources resources = on_cuda();
  const DeviceInfo device = cuda_devices().front();
  auto rows = make_floats(Shape::gaussian, 100, 70, 1);
  rows.row(77)[69] = std::numeric_limits<float>::infinity();
  const auto centres = make_floats(Shape::gaussian, 90, 70, 2);
  const CentreSearchShape shape{rows.rows, 0, centres.rows, rows.cols, DType::f32, KeyKind::squared_l2, true};
  const CentreSearchPlan plan = plan_centre_search(shape, device, {kNoLimit, device.memory_free, 1});
  ASSERT_EQ(plan.form, AssignForm::tiles);
  const auto context = std::make_shared<DeviceContext>(0);
  const DeviceBytes memory(static_cast<size_t>(CentreSearchLayout(shape, plan).bytes));
  CentreSearchCuda search(shape, plan, {}, static_cast<std::byte*>(memory.data()), context, resources);
  const DeviceMatrix on_device(rows.view());
  const DeviceMatrix lists(centres.view());
  const DeviceBytes labels(static_cast<size_t>(rows.rows) * sizeof(int32_t));
  const DeviceBytes keys(static_cast<size_t>(rows.rows) * sizeof(float));
  search.set_centres(static_cast<const float*>(lists.view().data()), lists.view().rows());
  CentreSearchTask task;
  task.rows = {on_device.view().data(), DType::f32, rows.cols, rows.rows, nullptr};
  task.number = 1000;
  task.check_finite = true;
  task.labels = static_cast<int32_t*>(labels.data());
  task.keys = static_cast<float*>(keys.data());
  ProgressMeter meter("test", rows.rows, resources);
  try {
    search.run(task, meter);
    FAIL() << "an infinity passed";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("1077"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kith
