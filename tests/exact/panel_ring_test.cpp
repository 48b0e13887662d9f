// Panels that are made as a scan needs them, and the index that keeps its rows without: the same panels, the same
// answers.
#include <kith/index.hpp>

#include "core/cpu_target.hpp"
#include "exact/exact_check.hpp"
#include "kernels/panels/panel_ring.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

void expect_panels_of(const MatrixView& rows, Metric metric, float scale) {
  const Resources resources;
  ProgressMeter meter("test", 1, resources);
  const KeyKind kind = key_kind(metric);
  const std::vector<float> origin = choose_origin(kind, rows);
  PackedRows all(kind, PanelFormat::f32, origin, rows.rows(), resources);
  PackedRows none(kind, PanelFormat::norms, origin, rows.rows(), resources);
  for (PackedRows* packed : {&all, &none}) {
    packed->set_scale(scale);
    packed->pack(rows, {true}, meter, resources);
  }
  const int64_t room = 70;  // rows: some panels, of which others take the places
  const HostBuffer memory(PanelRing::bytes_for(room, rows.cols()), "panels", resources);
  PanelRing ring(none, rows, room, memory.data());
  const PanelBase expected = all.panels();
  const PanelBase made = ring.panels();
  const auto floats = all.rows_per_panel() * rows.cols();
  for (const int64_t panel : {int64_t{0}, int64_t{1}, all.panel_count() - 1, int64_t{0}, all.panel_count() / 2}) {
    SCOPED_TRACE(panel);
    ring.make(panel, 1);
    EXPECT_TRUE(ring.holds(panel));
    const float* const there = static_cast<const float*>(made.panels) + made.place(panel) * floats;
    const float* const right = static_cast<const float*>(expected.panels) + panel * floats;
    EXPECT_EQ(std::memcmp(there, right, static_cast<size_t>(array_bytes<float>(floats))), 0);
    EXPECT_EQ(made.norms[panel], expected.norms[panel]);
    EXPECT_EQ(made.terms[panel * all.rows_per_panel()], expected.terms[panel * all.rows_per_panel()]);
  }
}

TEST(PanelRing, MakesThePanelsOfPackedRows) {
  const auto rows = make_floats(Shape::gaussian, 1003, 37, 1);
  std::vector<uint8_t> bytes(1003 * 37);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31 % 251);
  const MatrixView stored(bytes.data(), DType::u8, {1003, 37, 37});
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine, Metric::l1, Metric::linf}) {
    SCOPED_TRACE(name_of(metric));
    expect_panels_of(rows.view(), metric, 1);
    expect_panels_of(stored, metric, 1);
  }
  expect_panels_of(rows.view(), Metric::l2, 0.25f);
}

// Tiles of bf16, and what is beside them, are those of rows that were packed as such.
TEST(PanelRing, TilesAreMadeOfRowsWithKnownNorms) {
  const auto rows = make_floats(Shape::near_duplicates, 1003, 37, 1);
  const Resources resources;
  ProgressMeter meter("test", 1, resources);
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    SCOPED_TRACE(name_of(metric));
    const KeyKind kind = key_kind(metric);
    const std::vector<float> origin = choose_origin(kind, rows.view());
    PackedRows all(kind, PanelFormat::bf16, origin, rows.rows, resources);
    PackedRows known(kind, PanelFormat::norms, origin, rows.rows, resources);
    const int64_t step = 10 * all.rows_per_panel();
    PackedRows some(kind, PanelFormat::bf16, origin, step, resources);
    for (PackedRows* packed : {&all, &known, &some}) packed->set_scale(has_differences(kind) ? 0.5f : 1.0f);
    for (PackedRows* packed : {&all, &known}) packed->pack(rows.view(), {true, 0, 0, true}, meter, resources);
    const PanelBase right = all.panels();
    const int64_t bytes = packed_bytes(PanelFormat::bf16, rows.cols);
    for (int64_t first = 0; first < rows.rows; first += step) {
      const int64_t count = std::min(step, rows.rows - first);
      some.pack_known(known, rows.view(), first, count, meter, resources);
      const PanelBase made = some.panels();
      const auto same = [&](const void* a, const void* b, int64_t size) {
        return std::memcmp(a, b, static_cast<size_t>(size)) == 0;
      };
      const int64_t padded = some.panel_count() * some.rows_per_panel();
      EXPECT_TRUE(same(made.panels, static_cast<const std::byte*>(right.panels) + first * bytes, padded * bytes));
      EXPECT_TRUE(same(made.terms, right.terms + first, array_bytes<float>(padded)));
      EXPECT_TRUE(same(made.row_norms, right.row_norms + first, array_bytes<float>(padded)));
      EXPECT_TRUE(
          same(made.norms, right.norms + first / some.rows_per_panel(), array_bytes<float>(some.panel_count())));
      ASSERT_EQ(some.repeats() != nullptr, all.repeats() != nullptr);
      if (all.repeats() == nullptr) continue;
      EXPECT_TRUE(same(some.repeats(), all.repeats() + first, padded));
    }
  }
}

TEST(PanelRing, AnIndexKeepsItsRowsOnce) {
  const auto base = make_floats(Shape::gaussian, 2500, 256, 1);
  const auto vectors = static_cast<double>(base.rows * base.cols * 4);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
    Index index("Flat", {.metric = metric});
    index.add(base.view(), Ownership::copy, on_cpu());
    const PanelFormat format =
        choose_panel_format(key_kind(metric), DType::f32, DType::f32, base.cols, cpu_extensions());
    const double most = format == PanelFormat::f32 ? 1.02 : 1.3;
    EXPECT_LT(static_cast<double>(index.info().bytes.host), most * vectors) << name_of(metric);
    ASSERT_EQ(index.info().parts.size(), 2u);
    EXPECT_EQ(index.info().parts[0].second, base.rows * base.cols * 4);
  }
}

// Several blocks of queries share a ring; under a limit it is small.
TEST(PanelRing, BlocksOfQueriesShareOne) {
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates}) {
    const auto base = make_floats(shape, 3000, 48, 3);
    const auto queries = make_floats(shape, 700, 48, 4);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      SCOPED_TRACE(name_of(metric));
      Index index("Flat", {.metric = metric});
      index.add(base.view(), Ownership::copy, on_cpu());
      for (const int64_t k : {5, 200}) {  // with and without the screen
        const auto truth = reference::knn(queries, base, {k, metric});
        for (const int threads : {1, 3}) {
          expect_same(index.search(queries.view(), {.k = k}, on_cpu(threads)), truth);
        }
        expect_same(index.search(queries.view(), {.k = k}, on_cpu(2, int64_t{6} << 20)), truth);
      }
    }
  }
}

}  // namespace
}  // namespace kith
