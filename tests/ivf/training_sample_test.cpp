#include "ivf/model/training_sample.hpp"

#include "rows/row_sample.hpp"
#include "ivf/ivf_check.hpp"

#include <cmath>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

TEST(TrainingSample, HoldsTheRowsThatAreDrawn) {
  const auto rows = make_bytes(500, 7, 1);
  ViewSource source(rows.view());
  const CounterRng rng(3, 4);
  const TrainingSample sample(source, 60, rng, {}, on_cpu());
  const std::vector<uint32_t> drawn = sample_rows(rng, 500, 60, on_cpu());
  ASSERT_EQ(sample.rows(), 60);
  for (int64_t i = 0; i < 60; ++i) {
    const auto* const row = reinterpret_cast<const float*>(sample.view().row(i));
    for (int64_t c = 0; c < 7; ++c) EXPECT_EQ(row[c], rows.row(drawn[static_cast<size_t>(i)])[c]);
  }
}

TEST(TrainingSample, IsAllRowsWhereThereAreNoMore) {
  const auto rows = make_floats(Shape::gaussian, 40, 6, 1);
  ViewSource source(rows.view());
  MatrixBuffer sample = TrainingSample(source, 1000, CounterRng(1, 1), {}, on_cpu()).on_host();
  ASSERT_EQ(sample.rows(), 40);
  EXPECT_TRUE(std::equal(rows.row(0), rows.row(0) + 240, static_cast<const float*>(sample.view().data())));
}

TEST(TrainingSample, BecomesOfLengthOne) {
  const auto rows = make_floats(Shape::with_zeros, 30, 6, 1);
  ViewSource source(rows.view());
  TrainingSample sample(source, 30, CounterRng(1, 1), {}, on_cpu());
  sample.make_unit_length(on_cpu());
  for (int64_t i = 0; i < 30; ++i) {
    const auto* const row = reinterpret_cast<const float*>(sample.view().row(i));
    double squares = 0;
    double before = 0;
    for (int64_t c = 0; c < 6; ++c) squares += static_cast<double>(row[c]) * row[c];
    for (int64_t c = 0; c < 6; ++c) before += std::abs(rows.row(i)[c]);
    EXPECT_NEAR(squares, before == 0 ? 0 : 1, 1e-5);
  }
}

}  // namespace
}  // namespace kith
