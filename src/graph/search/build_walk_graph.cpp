#include "graph/search/build_walk_graph.hpp"

#include <kith/knn_graph.hpp>

#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "graph/search/link_places.hpp"
#include "graph/search/walk_cells.hpp"
#include "graph/search/walk_entries.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kFewestCandidates = 64;
constexpr double kCandidateRecall = 0.95;

// Rows as the build compares them: those that are walked among or, for products, floats with one more column.
class BuildRows {
 public:
  BuildRows(const WalkRows& walked, const Resources& resources) : rows_(walked) {
    if (walked.kind != WalkKind::products) return;
    const int64_t cols = walked.values.cols() + 1;
    own_ = HostArray<float>(walked.count() * cols, "rows with one more column", resources);
    rows_ = {WalkKind::canonical, KeyKind::squared_l2, MatrixView(own_.data(), walked.count(), cols)};
    if (!only_counts(resources)) fill(walked.values);
  }

  const WalkRows& rows() const { return rows_; }

 private:
  void fill(const MatrixView& values) {
    const int64_t cols = values.cols();
    double longest = 0;
    for (int64_t i = 0; i < values.rows(); ++i) {
      float* const row = own_.data() + i * (cols + 1);
      widen_row(values, i, row);
      longest = std::max(longest, canonical_squared_norm_cpu(row, cols));
    }
    for (int64_t i = 0; i < values.rows(); ++i) {
      float* const row = own_.data() + i * (cols + 1);
      row[cols] = static_cast<float>(std::sqrt(std::max(0.0, longest - canonical_squared_norm_cpu(row, cols))));
    }
  }

  WalkRows rows_;
  HostArray<float> own_;
};

// Rows of so many bytes, each place's first.
HostArray<std::byte> in_order(const PlaceOrder& order, const std::byte* rows, int64_t row_bytes,
                              const Resources& resources) {
  HostArray<std::byte> placed(order.places() * row_bytes, "the graph's codes", resources);
  for (int64_t place = 0; place < order.places() && !only_counts(resources); ++place) {
    std::memcpy(placed.data() + place * row_bytes, rows + order.first_row(place) * row_bytes,
                static_cast<size_t>(row_bytes));
  }
  return placed;
}

HostArray<uint32_t> cells_in_order(const PlaceOrder& order, const uint32_t* labels, const Resources& resources) {
  HostArray<uint32_t> cells(order.places(), "the cells of places", resources);
  for (int64_t place = 0; place < order.places() && !only_counts(resources); ++place) {
    cells[place] = labels[order.first_row(place)];
  }
  return cells;
}

// The nearest others of each place.
Neighbors candidates_of(const WalkRows& rows, int64_t degree, uint64_t seed, const Resources& resources) {
  const int64_t count = std::clamp<int64_t>(rows.count() - 1, 1, std::max(2 * degree, kFewestCandidates));
  Neighbors nearest(rows.count(), count, resources);
  const KnnGraphParams params{
      .k = count, .metric = metric_of(rows), .check_finite = false, .recall = kCandidateRecall, .seed = seed};
  call_or_count(resources, [&](const Resources& used) { knn_graph(rows.values, nearest.view(), params, used); });
  return nearest;
}

// Centres of the build's rows as walks compare them: codes, without the column that the build has more.
HostArray<std::byte> walked_centres(WalkCells&& cells, const WalkCoder& coder, const Resources& resources) {
  const WalkRows built = cells.centres();
  if (coder.kind() != WalkKind::products) return std::move(cells).take_centres();
  HostArray<std::byte> centres(cells.count() * coder.place_bytes(), "the centres of a graph's cells", resources);
  std::fill(centres.begin(), centres.end(), std::byte{0});
  for (int64_t i = 0; i < cells.count() && !only_counts(resources); ++i) {
    const auto* const from = reinterpret_cast<const float*>(built.values.row(i));
    auto* const to = reinterpret_cast<int8_t*>(centres.data() + i * coder.place_bytes());
    for (int64_t c = 0; c < coder.cols(); ++c) {
      to[c] = static_cast<int8_t>(std::clamp(std::nearbyint(from[c]), -128.0F, 127.0F));
    }
  }
  return centres;
}

}  // namespace

std::shared_ptr<const WalkGraph> build_walk_graph(const MatrixView& rows, const WalkGraphWish& wish,
                                                  const Resources& given) {
  const Resources resources = given.with_device(Device::cpu()).with_progress({});
  const int64_t count = rows.rows();
  WalkCoder coder = WalkCoder::choose(rows, wish.metric, wish.seed, resources);
  WalkFacts facts;
  HostArray<std::byte> of_rows(count * coder.place_bytes(), "the graph's codes", resources);
  facts.clipped = coder.encode_all(rows, of_rows.data(), resources);
  auto built_rows = std::make_unique<BuildRows>(coder.rows_of(of_rows.data(), count), resources);
  WalkCells cells(built_rows->rows(), wish.seed, resources);
  built_rows.reset();
  PlaceOrder order(of_rows.data(), coder.place_bytes(), count, cells.labels(), resources);
  HostArray<std::byte> codes = in_order(order, of_rows.data(), coder.place_bytes(), resources);
  of_rows = {};
  const HostArray<uint32_t> place_cells = cells_in_order(order, cells.labels(), resources);
  const BuildRows built(coder.rows_of(codes.data(), order.places()), resources);
  HostArray<uint32_t> edges;
  {
    Neighbors candidates = candidates_of(built.rows(), wish.degree, wish.seed, resources);
    edges = link_places(built.rows(), candidates.view(), wish.degree, resources);
  }
  WalkView view;
  view.rows = built.rows();
  view.tail = view.rows.with(view.rows.values.slice(0, 0));
  view.edges = edges.data();
  view.degree = wish.degree;
  view.centres = cells.centres();
  WalkEntries entries = find_entries(view, place_cells.data(), resources);
  facts.parts = entries.parts;
  facts.lost = entries.lost;
  const int64_t cell_count = cells.count();
  HostArray<std::byte> centres = walked_centres(std::move(cells), coder, resources);
  return std::make_shared<const WalkGraph>(WalkGraph{std::move(coder), wish.degree, std::move(order), std::move(codes),
                                                     std::move(edges), cell_count, std::move(centres),
                                                     std::move(entries.offsets), std::move(entries.places), facts});
}

}  // namespace kith
