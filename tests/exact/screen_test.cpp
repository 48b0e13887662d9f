// Searches that look at rounded rows first: the answers are those of a search without, whatever the rounding hides.
#include <kith/index.hpp>

#include "core/cpu_target.hpp"
#include "exact/exact_check.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/forced_target.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/panels/screen.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr Metric kScreened[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};
constexpr float kInf = std::numeric_limits<float>::infinity();

// One value of each row is so much larger than the others that rounding leaves nothing of them.
Matrix<float> hidden_differences(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix<float> m = make_floats(Shape::gaussian, rows, cols, seed);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) m.row(r)[c] *= 0.01f;
    m.row(r)[0] = r % 2 == 0 ? 1000.0f : -1000.0f;
  }
  return m;
}

class Counter final : public ScreenHits {
 public:
  void on_hit(int64_t, int64_t, const float*) override { ++hits; }
  bool takes_rows() const override { return false; }
  bool needs_rows(int64_t, int64_t) const override { return false; }
  void on_rows(int64_t, int64_t, uint64_t) override {}
  int64_t hits = 0;
};

struct Screened {
  int64_t pairs = 0;  // of a query and a panel
  int64_t screened = 0;
  int64_t passed = 0;
  int64_t hits = 0;
};

// One scan with the limits that a search would come to: the key of the 10th neighbour.
Screened scan(const Matrix<float>& queries, const Matrix<float>& base) {
  const Resources resources = on_cpu(1);
  ProgressMeter meter("test", 1, resources);
  const KeyKind kind = KeyKind::squared_l2;
  PackedRows packed(kind, PanelFormat::screened, choose_origin(kind, base.view()), base.rows, resources);
  packed.pack(base.view(), {true}, meter, resources);
  PackedQueries set(kind, PanelFormat::screened, queries.rows, base.cols, resources);
  set.pack(queries.row(0), queries.rows, packed.origin(), meter, resources);
  const auto truth = reference::knn(queries, base, {10, Metric::sqeuclidean});
  std::vector<float> limits(static_cast<size_t>(queries.rows + kMostQueriesPerPanel), -kInf);
  for (int64_t q = 0; q < queries.rows; ++q) {
    limits[static_cast<size_t>(q)] = truth.distances[static_cast<size_t>(q * 10 + 9)] - set.offset(q);
  }
  Counter counter;
  ScreenedProduct product(set.panels(0, queries.rows, limits.data()), packed.panels(),
                          set.screen_panels(0, queries.rows, limits.data()), packed.screen_panels(), counter);
  product.scan(0, packed.panel_count());
  return {queries.rows * packed.panel_count(), product.screened(), product.passed(), counter.hits};
}

template <typename Check>
void for_screened_targets(const Check& check) {
  int tried = 0;
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    if (choose_panel_format(KeyKind::l2, DType::f32, DType::f32, 64, cpu_extensions()) != PanelFormat::screened)
      continue;
    SCOPED_TRACE(target);
    check();
    ++tried;
  }
  if (tried == 0) GTEST_SKIP() << "this machine has no dot products of bytes";
}

TEST(Screen, HasThePanelsOfFloats) {
  for_screened_targets([] {
    EXPECT_EQ(panel_shape(PanelFormat::rounded).rows_per_panel, panel_shape(PanelFormat::f32).rows_per_panel);
    EXPECT_EQ(panel_shape(PanelFormat::rounded).queries_per_panel, panel_shape(PanelFormat::f32).queries_per_panel);
    EXPECT_LE(panel_shape(PanelFormat::rounded).rows_per_panel, kMostRowsPerPanel);
  });
}

TEST(Screen, RulesMostRowsOut) {
  for_screened_targets([] {
    if (!ScreenedProduct::pays()) return;  // it is for few queries alone
    const Screened found = scan(make_floats(Shape::gaussian, 60, 64, 1), make_floats(Shape::gaussian, 9000, 64, 2));
    EXPECT_EQ(found.screened, found.pairs);
    EXPECT_GT(found.passed, 0);
    EXPECT_LT(found.passed, found.pairs / 4);
  });
}

TEST(Screen, IsLeftOutWhereItRulesNothingOut) {
  for_screened_targets([] {
    const Screened found = scan(hidden_differences(60, 40, 1), hidden_differences(9000, 40, 2));
    EXPECT_GT(found.passed, found.screened / 2);
    EXPECT_LT(found.screened, found.pairs / 3);
  });
}

// An index has a screen whatever the number of queries.
Index make_index(const Matrix<float>& base, Metric metric, bool check_finite = true) {
  IndexParams params;
  params.metric = metric;
  params.check_finite = check_finite;
  Index index("Flat", params);
  index.add(base.view(), Ownership::borrow, on_cpu());
  return index;
}

void expect_hard_data_exact(const Matrix<float>& queries, const Matrix<float>& base, Metric metric) {
  const auto truth = reference::knn(queries, base, {9, metric});
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    const Index index = make_index(base, metric);
    expect_same(index.search(queries.view(), {.k = 9}, on_cpu()), truth);
    for (const int64_t few : {1, 3}) {
      expect_same(index.search(queries.view().slice(0, few), {.k = 9}, on_cpu()), truth);
    }
  }
}

// More than one block of queries, whatever the number of queries in a panel.
TEST(Screen, ManyQueriesOfAnIndexAreExact) {
  const auto queries = make_floats(Shape::gaussian, 1000, 33, 7);
  const auto base = make_floats(Shape::gaussian, 2500, 33, 8);
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const auto truth = reference::knn(queries, base, {9, metric});
    for (const std::string& target : cpu_targets()) {
      SCOPED_TRACE(target);
      const ForcedTarget forced(target);
      expect_same(make_index(base, metric).search(queries.view(), {.k = 9}, on_cpu()), truth);
    }
  }
}

TEST(Screen, HardDataStaysExact) {
  for (const Metric metric : kScreened) {
    SCOPED_TRACE(name_of(metric));
    for (const Shape shape : reference::kAllShapes) {
      SCOPED_TRACE(shape);
      expect_hard_data_exact(make_floats(shape, 20, 37, 1), make_floats(shape, 3000, 37, 2), metric);
    }
    expect_hard_data_exact(hidden_differences(20, 40, 1), hidden_differences(5000, 40, 2), metric);
  }
}

TEST(Screen, IsMadeForOneSearchOfManyQueries) {
  const auto base = make_floats(Shape::gaussian, 5000, 33, 1);
  const auto queries = make_floats(Shape::gaussian, 200, 33, 2);
  check_with_every_target(queries, base, {10, Metric::l2});
}

TEST(Screen, OfAPreparedBaseServesAnyNumberOfQueries) {
  const auto base = make_floats(Shape::gaussian, 2500, 64, 3);
  const auto queries = make_floats(Shape::gaussian, 70, 64, 4);
  for (const Metric metric : kScreened) {
    SCOPED_TRACE(name_of(metric));
    const auto truth = reference::knn(queries, base, {10, metric});
    for (const std::string& target : cpu_targets()) {
      SCOPED_TRACE(target);
      const ForcedTarget forced(target);
      const Index index = make_index(base, metric);
      for (const int64_t count : {1, 2, 3, 4, 8, 9, 11, 17, 70}) {
        SCOPED_TRACE(count);
        expect_same(index.search(queries.view().slice(0, count), {.k = 10}, on_cpu()), truth);
      }
    }
  }
}

TEST(Screen, UncheckedValuesThatAreNotFiniteCountAsWithoutIt) {
  auto base = make_floats(Shape::gaussian, 2100, 40, 5);
  base.row(3)[7] = std::numeric_limits<float>::quiet_NaN();
  base.row(100)[0] = kInf;
  base.row(101)[39] = -kInf;
  base.row(250)[5] = 1e30f;
  base.row(2099)[1] = -3e38f;
  auto queries = make_floats(Shape::gaussian, 60, 40, 6);
  queries.row(0)[2] = std::numeric_limits<float>::quiet_NaN();
  queries.row(17)[2] = kInf;
  queries.row(59)[0] = 2e30f;
  for (const Metric metric : kScreened) {
    SCOPED_TRACE(name_of(metric));
    KnnParams params{2100, metric};
    params.check_finite = false;
    const auto truth = reference::knn(queries, base, params);
    for (const std::string& target : targets_for_next_case()) {
      SCOPED_TRACE(target);
      const ForcedTarget forced(target);
      const Index index = make_index(base, metric, false);
      expect_same(index.search(queries.view(), {.k = 2100}, on_cpu()), truth);
      for (const int64_t query : {0, 1, 17, 59}) {
        const Neighbors found = index.search(queries.view().slice(query, 1), {.k = 2100}, on_cpu());
        for (int64_t i = 0; i < 2100; ++i) {
          ASSERT_EQ(found.ids(0)[i], truth.ids[static_cast<size_t>(query * 2100 + i)]) << "query " << query << " " << i;
        }
      }
    }
  }
}

TEST(Screen, IsDoneWithoutWhereMemoryIsShort) {
  const auto base = make_floats(Shape::gaussian, 5000, 64, 7);
  const auto queries = make_floats(Shape::gaussian, 50, 64, 8);
  const auto truth = reference::knn(queries, base, {10, Metric::l2});
  for (const int64_t limit : {int64_t{300} << 10, int64_t{1} << 20, int64_t{2} << 20, int64_t{4} << 20}) {
    SCOPED_TRACE(limit);
    expect_same(knn(queries.view(), base.view(), {10, Metric::l2}, on_cpu(1, limit)), truth);
    Index index("Flat");
    index.add(base.view(), Ownership::borrow, on_cpu(1, limit));
    expect_same(index.search(queries.view(), {.k = 10}, on_cpu(1, limit)), truth);
  }
}

}  // namespace
}  // namespace kith
