// k-means++ on the GPU chooses the rows that the CPU chooses.
#include "cluster/draw/kmeans_plus_plus.hpp"
#include "cluster/draw/kmeans_plus_plus_cuda.hpp"
#include "cluster/draw/plus_plus_steps_cuda.hpp"
#include "cuda/device_data.hpp"
#include "cuda/kmeans_parity.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaPlusPlus : public OnCuda {};
class CudaPlusPlusSmall : public OnCuda {};

std::vector<uint32_t> by_cpu(const MatrixView& rows, const std::vector<float>& weights, int64_t clusters) {
  const Resources resources = on_cpu();
  ProgressMeter meter("test", 1, resources);
  const PanelFormat format = centre_format(rows.cols(), cpu_extensions());
  ViewSource source(rows);
  return KMeansPlusPlus(format, {source, rows.rows(), true, weights.empty() ? nullptr : weights.data()}, clusters,
                        resources)
      .choose(CounterRng(5, 6), meter, resources);
}

std::vector<uint32_t> by_gpu(const MatrixView& rows, const std::vector<float>& weights, int64_t clusters,
                             const std::vector<uint32_t>& list = {}) {
  const Resources resources = on_cuda();
  ProgressMeter meter("test", 1, resources);
  PlusPlusInput input;
  input.rows = rows;
  input.weights = weights.empty() ? nullptr : weights.data();
  input.list = list;
  input.clusters = clusters;
  return choose_plus_plus_cuda(0, input, CounterRng(5, 6), meter, resources);
}

struct Size {
  int64_t rows;
  int64_t cols;
  int64_t clusters;
};

TEST_F(CudaPlusPlusSmall, ChoosesTheSame) {
  for (const Size& size : {Size{1, 1, 1},
                           {1, 784, 1},
                           {2, 3, 2},
                           {33, 1, 33},
                           {64, 3, 20},
                           {65, 16, 7},
                           {130, 17, 60},
                           {1025, 5, 9},
                           {70, 784, 6},
                           {40, 300, 25}}) {
    SCOPED_TRACE(::testing::Message() << size.rows << " x " << size.cols << " to " << size.clusters);
    const auto data = make_floats(Shape::gaussian, size.rows, size.cols, 1);
    std::vector<float> weights;
    for (int64_t i = 0; i < size.rows; ++i) weights.push_back(0.37f * static_cast<float>(1 + i % 4 * (i % 3)));
    EXPECT_EQ(by_gpu(data.view(), {}, size.clusters), by_cpu(data.view(), {}, size.clusters));
    EXPECT_EQ(by_gpu(data.view(), weights, size.clusters), by_cpu(data.view(), weights, size.clusters));
  }
}

TEST_F(CudaPlusPlusSmall, DuplicatesAndRowsWithoutWeight) {
  auto data = make_floats(Shape::gaussian, 90, 4, 2);
  for (int64_t i = 5; i < 90; ++i) std::copy_n(data.row(i % 5), 4, data.row(i));
  EXPECT_EQ(by_gpu(data.view(), {}, 30), by_cpu(data.view(), {}, 30));  // more centres than rows that differ
  std::vector<float> weights(90, 0.0f);
  for (size_t i = 40; i < 60; ++i) weights[i] = 1.5f;
  EXPECT_EQ(by_gpu(data.view(), weights, 4), by_cpu(data.view(), weights, 4));
}

TEST_F(CudaPlusPlusSmall, RowsOnTheDevice) {
  const auto data = make_floats(Shape::gaussian, 200, 9, 3);
  std::vector<uint32_t> list;
  for (uint32_t i = 0; i < 200; i += 1 + i % 3) list.push_back(i);
  int64_t gap = 0;
  for (const DType dtype : kAllDtypes) {
    SCOPED_TRACE(name_of(dtype));
    const TypedRows rows(dtype, data, 30, gap++ % 3);
    const DeviceMatrix on_device(rows.view());
    auto widened = make_floats(Shape::gaussian, 200, 9, 3);
    for (int64_t i = 0; i < 200; ++i) widen_row(rows.view(), i, widened.row(i));
    EXPECT_EQ(by_gpu(on_device.view(), {}, 15), by_cpu(widened.view(), {}, 15));
    auto listed = make_floats(Shape::gaussian, static_cast<int64_t>(list.size()), 9, 3);
    for (size_t i = 0; i < list.size(); ++i) std::copy_n(widened.row(list[i]), 9, listed.row(static_cast<int64_t>(i)));
    EXPECT_EQ(by_gpu(on_device.view(), {}, 15, list), by_cpu(listed.view(), {}, 15));
  }
}

TEST_F(CudaPlusPlusSmall, NumbersThatAreNotFiniteOrBarelyAre) {
  for (const float odd : {NAN, INFINITY, 3e38f, 1e-30f}) {
    auto data = make_floats(Shape::gaussian, 70, 6, 4);
    for (const int64_t row : {0, 33, 69}) data.row(row)[row % 6] = odd;
    SCOPED_TRACE(odd);
    EXPECT_EQ(by_gpu(data.view(), {}, 20), by_cpu(data.view(), {}, 20));
  }
}

// One round with every number of trials, more than any test's centres ask for.
TEST_F(CudaPlusPlusSmall, EveryNumberOfTrials) {
  constexpr int64_t kRows = 77;
  constexpr int64_t kCols = 21;
  const auto data = make_floats(Shape::gaussian, kRows, kCols, 5);
  const DeviceMatrix rows(data.view());
  for (int trials = 1; trials <= kMostTrials; ++trials) {
    SCOPED_TRACE(trials);
    PlusPlusState state{};
    for (int t = 0; t < trials; ++t) state.trials[t] = static_cast<uint32_t>((t * 29 + 3) % kRows);
    DeviceBytes device_state(&state, sizeof state);
    const DrawTree tree(kRows);
    DeviceBytes distances(static_cast<size_t>(trials) * kDrawBlock * 4);
    DeviceBytes segments(static_cast<size_t>(trials) * kDrawFan * 8);
    DeviceBytes sums(static_cast<size_t>(trials * tree.size) * 8);
    DeviceBytes chosen(4);
    PlusPlusRound round;
    round.rows = static_cast<const float*>(rows.view().data());
    round.row_stride = round.cols = kCols;
    round.tree = tree;
    round.first = true;
    round.trials = trials;
    round.distances = static_cast<float*>(distances.data());
    round.stride = kDrawBlock;
    round.segments = static_cast<double*>(segments.data());
    round.sums = static_cast<double*>(sums.data());
    round.chosen = static_cast<uint32_t*>(chosen.data());
    round.state = static_cast<PlusPlusState*>(device_state.data());
    launch_try_rows(round, nullptr);
    launch_take_best(round, nullptr);
    std::vector<float> found(static_cast<size_t>(trials) * kDrawBlock);
    std::vector<double> totals(static_cast<size_t>(trials * tree.size));
    uint32_t best = 0;
    distances.read(found.data());
    sums.read(totals.data());
    chosen.read(&best);
    int lowest = 0;
    for (int t = 0; t < trials; ++t) {
      double total = 0;
      for (int64_t i = 0; i < kRows; i += kDrawFan) {
        double segment = 0;
        for (int64_t j = i; j < std::min<int64_t>(i + kDrawFan, kRows); ++j) {
          const float expected = canonical_pair<KeyKind::squared_l2>(data.row(j), data.row(state.trials[t]), kCols);
          ASSERT_EQ(found[static_cast<size_t>(t * kDrawBlock + j)], expected) << t << " " << j;
          segment += static_cast<double>(expected);
        }
        total += segment;
      }
      ASSERT_EQ(totals[static_cast<size_t>(t)], total);
      if (total < totals[static_cast<size_t>(lowest)]) lowest = t;
    }
    EXPECT_EQ(best, state.trials[lowest]);
  }
}

TEST_F(CudaPlusPlus, ManyRowsAndCentresAndHardData) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(name_of(shape));
    const auto data = make_floats(shape, 3000, 24, 6);
    EXPECT_EQ(by_gpu(data.view(), {}, 300), by_cpu(data.view(), {}, 300));
  }
  const auto data = make_floats(Shape::gaussian, 70000, 12, 7);
  EXPECT_EQ(by_gpu(data.view(), {}, 400), by_cpu(data.view(), {}, 400));
  const auto few = make_floats(Shape::gaussian, 9000, 3, 8);
  EXPECT_EQ(by_gpu(few.view(), {}, 9000), by_cpu(few.view(), {}, 9000));  // eleven trials
}

TEST_F(CudaPlusPlus, WithAndWithoutRoomOnTheDevice) {
  const auto data = make_floats(Shape::gaussian, 30000, 20, 9);
  KMeansParams params = random_start(200, 2);
  params.init = KMeansInit::kmeans_plus_plus;
  params.init_points_per_centre = 0;
  const Fitted expected = fit(data.view(), params);
  for (const int64_t limit : {kNoLimit, int64_t{12} << 20, int64_t{5} << 20}) {
    SCOPED_TRACE(limit);
    expect_same_fit(expected, fit(data.view(), params, {}, with_device_limit(limit)));
  }
}

}  // namespace
}  // namespace kith
