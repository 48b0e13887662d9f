#include "index/graph_start.hpp"

#include <kith/error.hpp>

#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kLookedAt = 64;  // sampled rows
constexpr int64_t kLookedAtEach = 4;
// Tolerance for a distance, relative to the largest one of its row in the sample: rows may have been rounded after the
// graph was built.
constexpr float kOff = 0.01F;

bool alike(Metric a, Metric b) {
  const auto root = [](Metric metric) { return metric == Metric::sqeuclidean ? Metric::l2 : metric; };
  return root(a) == root(b);
}

}  // namespace

void check_start(const KnnGraph& start, const MatrixView& rows, Metric metric) {
  if (metric == Metric::inner_product) {
    throw Unsupported(
        "start with inner_product: such a graph joins rows by x / |x|^2, whose neighbours are others; add the rows "
        "without it");
  }
  if (!alike(start.metric(), metric)) {
    throw InvalidArgument(fmt::format("start is a graph by {}, and the index's metric is {}; build it by that",
                                      name_of(start.metric()), name_of(metric)));
  }
  if (start.rows() != rows.rows()) {
    throw InvalidArgument(fmt::format("start is a graph of {} rows, and {} are added; give the graph of these rows",
                                      start.rows(), rows.rows()));
  }
  for (int64_t i = 0; i < start.rows() * start.k(); ++i) {
    if (start.ids()[i] >= -1 && start.ids()[i] < start.rows()) continue;
    throw InvalidArgument(fmt::format("start is no graph of {} rows: row {} has a neighbour {}", start.rows(),
                                      i / start.k(), start.ids()[i]));
  }
  const ResultExit exit(start.metric());
  std::vector<float> query(static_cast<size_t>(rows.cols()));
  const int64_t count = std::min(kLookedAt, rows.rows());
  const int64_t each = std::min(kLookedAtEach, start.k());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * rows.rows() / count;
    widen_row(rows, row, query.data());
    CanonicalQuery with{query.data()};
    canonical_inverse_norms_cpu(MatrixView(query.data(), 1, rows.cols()), &with.inverse_norm);
    float own[kLookedAtEach];
    float largest = 0;
    for (int64_t n = 0; n < each && start.ids(row)[n] >= 0; ++n) {
      const auto other = static_cast<uint32_t>(start.ids(row)[n]);
      float key = 0;
      canonical_keys_cpu(key_kind(start.metric()), with, rows, &other, 1, &key);
      own[n] = exit.distance(pack_neighbor(ordered_key(key), other));
      largest = std::max({largest, std::abs(own[n]), std::abs(start.distances(row)[n])});
    }
    for (int64_t n = 0; n < each && start.ids(row)[n] >= 0; ++n) {
      const float told = start.distances(row)[n];
      if (std::abs(own[n] - told) <= kOff * largest) continue;
      throw InvalidArgument(
          fmt::format("start is a graph of other rows: rows {} and {} are {} apart, and it says {}; give the graph of "
                      "these rows, in their order",
                      row, start.ids(row)[n], own[n], told));
    }
  }
}

}  // namespace kith
