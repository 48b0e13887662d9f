#include "cluster/data/data_survey.hpp"
#include "rows/row_source.hpp"

#include "cluster/fitted.hpp"
#include "core/half.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

// Rows that have to be gathered, as those of a file.
class ElsewhereSource final : public RowSource {
 public:
  explicit ElsewhereSource(const MatrixView& rows) : rows_(rows) {}
  RowsInfo info() const override {
    RowsInfo info = rows_.info();
    info.in_memory = false;
    return info;
  }
  MatrixView fetch(int64_t first, int64_t count) override { return rows_.fetch(first, count); }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    rows_.gather(rows, count, out, resources);
  }

 private:
  ViewSource rows_;
};

void expect_the_same_sample(const MatrixView& rows) {
  const Resources resources = cpu_resources(1);
  ViewSource here(rows);
  ElsewhereSource elsewhere(rows);
  const DataSample sample = sample_data(here, rows.cols(), resources);
  const DataSample gathered = sample_data(elsewhere, rows.cols(), resources);
  EXPECT_EQ(sample.origin, gathered.origin);
  EXPECT_EQ(sample.largest, gathered.largest);
  EXPECT_TRUE(std::isfinite(sample.largest));
}

TEST(DataSample, RowsInMemoryAreLookedAtWhereTheyLie) {
  for (const int64_t rows : {1, 255, 256, 257, 1000}) {
    for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::mixed_norms}) {
      auto floats = make_floats(shape, rows, 19, 4);
      expect_the_same_sample(floats.view());
      expect_the_same_sample(reference::stored_as<Half>(make_floats(Shape::gaussian, rows, 19, 4)).view());
      floats.row(rows / 2)[3] = NAN;
      floats.row(0)[5] = -HUGE_VALF;
      expect_the_same_sample(floats.view());
    }
  }
}

TEST(DataSample, SaysHowFarTheFarthestValueIs) {
  reference::Matrix<float> rows(2, 2);
  rows.values = {1, 10, 3, 50};
  ViewSource source(rows.view());
  const DataSample sample = sample_data(source, 2, cpu_resources(1));
  EXPECT_EQ(sample.origin, (std::vector<float>{2, 30}));
  EXPECT_EQ(sample.largest, 20);
}

}  // namespace
}  // namespace kith
