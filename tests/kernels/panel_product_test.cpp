#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/panel_packing.hpp"

#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <new>
#include <vector>

namespace kith {
namespace {

struct AlignedDelete {
  void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
using AlignedFloats = std::unique_ptr<float[], AlignedDelete>;
AlignedFloats aligned(int64_t count) {
  return AlignedFloats(new (std::align_val_t{64}) float[static_cast<size_t>(count)]());
}

// Rows first .. first + count - 1 as the panel that begins there.
void pack(const reference::Matrix<float>& rows, int64_t first, int64_t count, int64_t width, float scale, float* out) {
  std::vector<uint32_t> units(static_cast<size_t>(count * rows.cols));
  for (int64_t i = 0; i < count; ++i) {
    encode_floats(PanelFormat::f32, rows.row(first + i), rows.cols, scale, units.data() + i * rows.cols);
  }
  pack_units(units.data(), rows.cols, count, rows.cols, width, reinterpret_cast<uint32_t*>(out + first * rows.cols));
}

class Recorder final : public PanelHits {
 public:
  explicit Recorder(int64_t width) : width_(width) {}
  void on_hit(int64_t query, int64_t panel, const float* values) override {
    hits[{query, panel}] = std::vector<float>(values, values + width_);
  }
  std::map<std::pair<int64_t, int64_t>, std::vector<float>> hits;

 private:
  int64_t width_;
};

TEST(PanelProduct, ReportsExactlyTheTilesWithAValueThatPasses) {
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    const PanelShape shape = f32_panel_shape();
    for (const int64_t cols : {1, 5, 64}) {
      const int64_t query_count = shape.queries_per_panel + 3;
      const int64_t row_count = 3 * shape.rows_per_panel - 1;
      const int64_t query_panels = 2;
      const int64_t row_panels = 3;
      const auto queries = reference::make_floats(reference::Shape::gaussian, query_count, cols, 1);
      const auto rows = reference::make_floats(reference::Shape::gaussian, row_count, cols, 2);
      const AlignedFloats packed_queries = aligned(query_panels * shape.queries_per_panel * cols);
      const AlignedFloats packed_rows = aligned(row_panels * shape.rows_per_panel * cols);
      const AlignedFloats terms = aligned(row_panels * shape.rows_per_panel);
      for (int64_t p = 0; p < query_panels; ++p) {
        const int64_t first = p * shape.queries_per_panel;
        pack(queries, first, std::min(shape.queries_per_panel, query_count - first), shape.queries_per_panel, -2.0f,
             packed_queries.get());
      }
      for (int64_t p = 0; p < row_panels; ++p) {
        const int64_t first = p * shape.rows_per_panel;
        pack(rows, first, std::min(shape.rows_per_panel, row_count - first), shape.rows_per_panel, 1.0f,
             packed_rows.get());
      }
      for (int64_t i = 0; i < row_panels * shape.rows_per_panel; ++i)
        terms[static_cast<size_t>(i)] = i < row_count ? 0.25f * static_cast<float>(i % 5) : INFINITY;
      const std::vector<float> norms(3, 2.0f);
      const auto padded = static_cast<size_t>(query_panels * shape.queries_per_panel);
      std::vector<float> limits(padded, -INFINITY), constant(padded, 0.0f), linear(padded, 0.25f),
          quadratic(padded, 0.125f);
      for (int64_t q = 0; q < query_count; ++q)
        limits[static_cast<size_t>(q)] = -4.0f * std::sqrt(static_cast<float>(cols)) - static_cast<float>(q % 4);
      Recorder recorder(shape.rows_per_panel);
      scan_panels({packed_queries.get(), query_count, limits.data(), constant.data(), linear.data(), quadratic.data(),
                   nullptr, nullptr},
                  {packed_rows.get(), terms.get(), norms.data(), PanelFormat::f32, cols}, 0, row_panels, recorder);

      int reported = 0;
      for (int64_t q = 0; q < query_count; ++q) {
        for (int64_t p = 0; p < row_panels; ++p) {
          float least = INFINITY;
          for (int64_t i = p * shape.rows_per_panel; i < std::min((p + 1) * shape.rows_per_panel, row_count); ++i) {
            const double product = reference::distance(Metric::inner_product, queries.row(q), rows.row(i), cols);
            const auto value = static_cast<float>(terms[static_cast<size_t>(i)] - 2 * product);
            least = std::min(least, value);
            if (recorder.hits.contains({q, p})) {
              EXPECT_NEAR((recorder.hits[{q, p}][static_cast<size_t>(i % shape.rows_per_panel)]), value, 1e-4);
            }
          }
          const float limit = limits[static_cast<size_t>(q)] + 1.0f;  // the bound at norm 2
          if (std::abs(least - limit) > 1e-3f) {
            EXPECT_EQ((recorder.hits.contains({q, p})), least <= limit) << "query " << q << " panel " << p;
          }
          reported += recorder.hits.contains({q, p});
        }
      }
      EXPECT_GT(reported, 0);
      EXPECT_LT(reported, query_count * row_panels);
    }
  }
}

// Two to a unit, the first below; what rounding to bf16 leaves, rounded likewise, follows.
TEST(EncodeFloats, RoundsToNearestWithEveryInstructionSet) {
  const auto rounded = [](float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u;
  };
  const auto values = reference::make_floats(reference::Shape::mixed_norms, 1, 75, 5);
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const int64_t cols : {1, 2, 7, 8, 15, 31, 32, 33, 64, 75}) {
      SCOPED_TRACE(::testing::Message() << target << " " << cols);
      const int64_t units = units_per_part(PanelFormat::bf16, cols);
      std::vector<uint32_t> found(static_cast<size_t>(2 * units), 77);
      encode_floats(PanelFormat::bf16, values.row(0), cols, 1.5f, found.data());
      for (int64_t u = 0; u < units; ++u) {
        uint32_t high = 0;
        uint32_t low = 0;
        for (int64_t half = 0; half < 2 && 2 * u + half < cols; ++half) {
          const float value = values.row(0)[2 * u + half] * 1.5f;
          const uint32_t near = rounded(value);
          high |= near >> (half == 0 ? 16 : 0);
          low |= rounded(value - std::bit_cast<float>(near)) >> (half == 0 ? 16 : 0);
        }
        EXPECT_EQ(found[static_cast<size_t>(u)], high) << u;
        EXPECT_EQ(found[static_cast<size_t>(units + u)], low) << u;
      }
    }
  }
}

}  // namespace
}  // namespace kith
