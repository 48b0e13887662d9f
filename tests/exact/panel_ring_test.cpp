// Panels that are made as a scan needs them, and the index that keeps its rows without: the same panels, the same
// answers.
#include <kith/index.hpp>

#include "core/cpu_target.hpp"
#include "exact/exact_check.hpp"
#include "kernels/panels/panel_ring.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

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

TEST(PanelRing, AnIndexKeepsItsRowsOnce) {
  const auto base = make_floats(Shape::gaussian, 2500, 256, 1);
  const auto vectors = static_cast<double>(base.rows * base.cols * 4);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
    Index index("Flat", {.metric = metric});
    index.add(base.view(), Ownership::copy, on_cpu());
    const PanelFormat format =
        choose_panel_format(key_kind(metric), DType::f32, DType::f32, base.cols, cpu_extensions());
    if (format == PanelFormat::bf16) continue;
    const double most = format == PanelFormat::screened ? 1.3 : 1.02;
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
