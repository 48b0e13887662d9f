// The bound of every pair, as the search itself computes it: packed, centred or normalised rows, packed queries, the
// panel product of every instruction set, and the screen of bytes before it where there is one.

#include <kith/error.hpp>

#include "kernels/forced_target.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::Shape;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Checks every value that comes, and counts them.
class BoundCheck final : public PanelHits {
 public:
  using Bound = std::function<float(int64_t query, int64_t panel)>;
  BoundCheck(Metric metric, const reference::Matrix<float>& queries, const reference::Matrix<float>& base,
             const PackedQueries& set, const PackedRows& packed, Bound bound)
      : metric_(metric), queries_(queries), base_(base), set_(set), packed_(packed), bound_(std::move(bound)) {}

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    const float bound = bound_(query, panel);
    const int64_t first = panel * packed_.rows_per_panel();
    for (int64_t i = first; i < std::min(first + packed_.rows_per_panel(), base_.rows); ++i) {
      const float truth = reference::canonical(metric_, queries_.row(query), base_.row(i), base_.cols);
      const float key = values[i - first] + set_.offset(query);
      EXPECT_LE(std::abs(key - truth), bound) << "query " << query << " row " << i << ": " << key << " for " << truth;
      ++pairs;
    }
  }

  int64_t pairs = 0;

 private:
  Metric metric_;
  const reference::Matrix<float>& queries_;
  const reference::Matrix<float>& base_;
  const PackedQueries& set_;
  const PackedRows& packed_;
  const Bound bound_;
};

// With the instruction set in use.
void check_bounds(Metric metric, const reference::Matrix<float>& queries, const reference::Matrix<float>& base) {
  const Resources resources;
  const KeyKind kind = key_kind(metric);
  ProgressMeter meter("test", 1, resources);
  const int64_t cols = base.cols;
  const PanelFormat format = choose_panel_format(kind, DType::f32, DType::f32, cols, cpu_extensions());
  PackedRows packed(kind, format, choose_origin(kind, base.view()), base.rows, resources);
  packed.pack(base.view(), {true}, meter, resources);
  PackedQueries set(kind, format, queries.rows, cols, resources);
  set.pack(queries.row(0), queries.rows, packed.origin(), meter, resources);
  std::vector<float> limits(64, kInfinity);
  const PanelQueries panels = set.panels(0, queries.rows, limits.data());
  const PanelBase rows = packed.panels();
  BoundCheck check(metric, queries, base, set, packed,
                   [&](int64_t query, int64_t panel) { return panels.bound(query).at(rows.norms[panel]); });
  scan_panels(panels, rows, 0, packed.panel_count(), check);
  EXPECT_EQ(check.pairs, queries.rows * base.rows);
  if (format != PanelFormat::screened) return;

  PackedRows bytes(kind, PanelFormat::rounded, packed.origin(), base.rows, resources);
  bytes.pack(base.view(), {true}, meter, resources);
  PackedQueries bytes_set(kind, PanelFormat::rounded, queries.rows, cols, resources);
  bytes_set.pack(queries.row(0), queries.rows, packed.origin(), meter, resources);
  const PackedProduct product(bytes_set, 0, queries.rows, limits.data(), bytes);
  BoundCheck alone(metric, queries, base, bytes_set, bytes,
                   [&](int64_t query, int64_t panel) { return product.bound(query, panel); });
  product.scan(alone);
  EXPECT_EQ(alone.pairs, queries.rows * base.rows);

  for (int64_t query = 0; query < queries.rows; ++query) {
    alignas(64) float values[kMostRowsPerPanel];
    panel_values(panels, rows, query, 0, values);
    check.on_hit(query, 0, values);
  }
  const RoundedBase rounded = packed.screen_panels();
  for (const int64_t count : {int64_t{1}, int64_t{3}, queries.rows}) {
    const RoundedQueries some = set.screen_panels(0, count, limits.data());
    BoundCheck screen(metric, queries, base, set, packed, [&](int64_t query, int64_t panel) {
      return some.bound(query, rounded.norms[panel], rounded.residuals[panel]);
    });
    scan_rounded_panels(some, rounded, 0, packed.panel_count(), screen);
    EXPECT_EQ(screen.pairs, count * base.rows);
  }
}

TEST(PackedProduct, EveryValueIsWithinItsBound) {
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      if (shape == Shape::huge) continue;  // no bound is claimed
      for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
        for (const int64_t cols : {1, 2, 33, 300}) {
          SCOPED_TRACE(::testing::Message() << target << " " << shape << " " << name_of(metric) << " " << cols);
          check_bounds(metric, reference::make_floats(shape, 11, cols, 1), reference::make_floats(shape, 101, cols, 2));
        }
      }
    }
  }
}

// Products of one sign, whose roundings all go the same way: one long sum would be off by many times the bound.
TEST(PackedProduct, ManyColumnsAreSummedInSegments) {
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    for (const int64_t cols : {2048, 2049, 4099, 60000}) {
      SCOPED_TRACE(::testing::Message() << target << " " << cols);
      auto queries = reference::make_floats(Shape::gaussian, 3, cols, 1);
      auto base = reference::make_floats(Shape::gaussian, 33, cols, 2);
      for (float& value : queries.values) value = 0.1f + 1e-4f * value;
      for (float& value : base.values) value = 0.3f + 1e-4f * value;
      check_bounds(Metric::inner_product, queries, base);
      check_bounds(Metric::sqeuclidean, queries, base);
    }
  }
}

TEST(PackedRows, AGatherOfRowsIsPackedAsItsRowsAre) {
  const Resources resources;
  ProgressMeter meter("test", 1, resources);
  const reference::Matrix<float> rows = reference::make_floats(Shape::gaussian, 101, 33, 5);
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < 77; ++i) numbers.push_back(i * 37 % 101);
  std::vector<float> copied;
  for (const uint32_t number : numbers) copied.insert(copied.end(), rows.row(number), rows.row(number) + 33);
  const MatrixView together(copied.data(), 77, 33);
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine, Metric::l1}) {
    const KeyKind kind = key_kind(metric);
    const PanelFormat chosen = choose_panel_format(kind, DType::f32, DType::f32, 33, cpu_extensions());
    for (const PanelFormat format : {PanelFormat::f32, chosen}) {
      SCOPED_TRACE(::testing::Message() << name_of(metric) << " " << static_cast<int>(format));
      const std::vector<float> origin = choose_origin(kind, rows.view());
      PackedRows expected(kind, format, origin, 77, resources);
      expected.pack(together, {true}, meter, resources);
      PackedRows gathered(kind, format, origin, 77, resources);
      gathered.pack(RowGather(rows.view(), numbers.data(), 77), {true}, meter, resources);
      PackedRows alone(kind, format, origin, 77, resources);
      const HostBuffer scratch(PackedRows::scratch_bytes(format, 33), "scratch", resources);
      alone.pack(RowGather(rows.view(), numbers.data(), 77), scratch.data());
      const int64_t padded = expected.panel_count() * expected.rows_per_panel();
      const auto bytes = static_cast<size_t>(padded * packed_bytes(format, 33));
      for (const PackedRows* other : {&gathered, &alone}) {
        EXPECT_EQ(other->rows(), 77);
        EXPECT_EQ(std::memcmp(other->panels().panels, expected.panels().panels, bytes), 0);
        for (int64_t i = 0; i < padded; ++i) EXPECT_EQ(other->panels().terms[i], expected.panels().terms[i]) << i;
        for (int64_t i = 0; i < expected.panel_count(); ++i) {
          EXPECT_EQ(other->panels().norms[i], expected.panels().norms[i]) << i;
        }
      }
    }
  }
}

TEST(PackedRows, AValueThatIsNotFiniteIsNamedByItsNumber) {
  const Resources resources;
  ProgressMeter meter("test", 1, resources);
  reference::Matrix<float> rows = reference::make_floats(Shape::gaussian, 10, 3, 5);
  const uint32_t numbers[] = {1, 7, 2};
  rows.values[7 * 3] = kInfinity;
  PackedRows packed(KeyKind::l1, PanelFormat::f32, std::vector<float>(3, 0.0f), 3, resources);
  try {
    packed.pack(RowGather(rows.view(), numbers, 3), {true}, meter, resources);
    FAIL() << "an infinity was packed";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find('7'), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kith
