#include "graph/search/build_walk_graph.hpp"

#include <kith/knn_graph.hpp>

#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "graph/search/link_places.hpp"
#include "graph/search/walk_cells.hpp"
#include "graph/search/walk_entries.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kFewestCandidates = 96;
constexpr double kCandidateRecall = 0.95;

// Rows as the build compares them: as walks do or, for products, as floats of another form.
enum class ProductForm : uint8_t {
  directions,  // of length 1: which cell a row belongs to
  inverted,    // x / |x|^2: whose neighbours a row has
};

class BuildRows {
 public:
  BuildRows(const WalkCoder& coder, const std::byte* codes, int64_t count, ProductForm form, const Resources& resources)
      : rows_(coder.rows_of(codes, count)) {
    const WalkRows walked = rows_;
    if (walked.kind != WalkKind::products) return;
    const int64_t cols = walked.values.cols();
    own_ = HostArray<float>(walked.count() * cols, "the rows of a graph as it is built", resources);
    rows_ = {WalkKind::canonical, KeyKind::squared_l2, MatrixView(own_.data(), walked.count(), cols)};
    if (!only_counts(resources)) fill(coder, walked.values, form);
  }

  const WalkRows& rows() const { return rows_; }

 private:
  // The rows become the values that their codes stand for, in steps, with the offsets added again: inner products are
  // of the vectors as they are.
  void fill(const WalkCoder& coder, const MatrixView& values, ProductForm form) {
    const int64_t cols = values.cols();
    double longest = 0;
    for (int64_t i = 0; i < values.rows(); ++i) {
      float* const row = own_.data() + i * cols;
      widen_row(values, i, row);
      for (int64_t c = 0; c < cols; ++c) row[c] += coder.offsets()[static_cast<size_t>(c)] / coder.step();
      longest = std::max(longest, canonical_squared_norm_cpu(row, cols));
    }
    for (int64_t i = 0; i < values.rows(); ++i) {
      float* const row = own_.data() + i * cols;
      const double square = canonical_squared_norm_cpu(row, cols);
      if (square < kShortestSquare) {  // no answer to any query: far from all, where rows are inverted
        std::fill(row, row + cols, 0.0F);
        row[0] = form == ProductForm::directions ? 1.0F : static_cast<float>(std::sqrt(longest / kShortestSquare));
        continue;
      }
      const double factor = form == ProductForm::directions ? 1 / std::sqrt(square) : std::sqrt(longest) / square;
      for (int64_t c = 0; c < cols; ++c) row[c] = static_cast<float>(static_cast<double>(row[c]) * factor);
    }
  }

  static constexpr double kShortestSquare = 1.0 / 1024;  // of codes, whose steps are 1

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

// Lists between rows as lists between places: what the rows of a place point at, each once, the first `degree`.
HostArray<uint32_t> placed_edges(const PlaceOrder& order, const uint32_t* of_rows, int64_t degree,
                                 const Resources& resources) {
  HostArray<uint32_t> edges(order.places() * degree, "the graph's edges", resources);
  HostArray<uint32_t> place_of(order.row_count(), "the places of rows", resources);
  if (only_counts(resources)) return edges;
  const PlaceRows rows = order.view();
  for (int64_t place = 0; place < order.places(); ++place) {
    rows.visit(static_cast<uint32_t>(place), [&](uint32_t row) { place_of[row] = static_cast<uint32_t>(place); });
  }
  for (int64_t place = 0; place < order.places(); ++place) {
    uint32_t* const list = edges.data() + place * degree;
    uint32_t* end = list;
    rows.visit(static_cast<uint32_t>(place), [&](uint32_t row) {
      const uint32_t* const from = of_rows + row * degree;
      for (int64_t i = 0; i < degree && from[i] != kNoEdge && end != list + degree; ++i) {
        const uint32_t other = place_of[from[i]];
        if (other != static_cast<uint32_t>(place) && std::find(list, end, other) == end) *end++ = other;
      }
    });
    std::fill(end, list + degree, kNoEdge);
  }
  return edges;
}

// Centres of cells as walks compare them: codes. Directions are scaled alike, so that their products with a query are
// in the order of its angles, less their mean, which adds the same to all products.
HostArray<std::byte> walked_centres(WalkCells&& cells, const WalkCoder& coder, const Resources& resources) {
  if (coder.kind() != WalkKind::products) return std::move(cells).take_centres();
  const MatrixView built = cells.centres().values;
  const int64_t cols = coder.cols();
  HostArray<std::byte> centres(cells.count() * coder.place_bytes(), "the centres of a graph's cells", resources);
  if (only_counts(resources)) return centres;
  std::fill(centres.begin(), centres.end(), std::byte{0});
  std::vector<double> directions(static_cast<size_t>(cells.count() * cols));
  std::vector<double> mean(static_cast<size_t>(cols), 0.0);
  for (int64_t i = 0; i < cells.count(); ++i) {
    const auto* const from = typed_row<float>(built, i);
    const double length = std::sqrt(canonical_squared_norm_cpu(from, cols));
    for (int64_t c = 0; c < cols; ++c) {
      const double value = length > 0 ? static_cast<double>(from[c]) / length : 0.0;
      directions[static_cast<size_t>(i * cols + c)] = value;
      mean[static_cast<size_t>(c)] += value / static_cast<double>(cells.count());
    }
  }
  double largest = 0;
  for (size_t i = 0; i < directions.size(); ++i) {
    if (cells.count() > 1) directions[i] -= mean[i % mean.size()];
    largest = std::max(largest, std::abs(directions[i]));
  }
  for (int64_t i = 0; i < cells.count() && largest > 0; ++i) {
    auto* const to = reinterpret_cast<int8_t*>(centres.data() + i * coder.place_bytes());
    for (int64_t c = 0; c < cols; ++c) {
      to[c] = static_cast<int8_t>(std::nearbyint(directions[static_cast<size_t>(i * cols + c)] * 127 / largest));
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
  auto in_cells = std::make_unique<BuildRows>(coder, of_rows.data(), count, ProductForm::directions, resources);
  WalkCells cells(in_cells->rows(), wish.seed, resources);
  PlaceOrder order(of_rows.data(), coder.place_bytes(), count, cells.labels(), resources);
  HostArray<std::byte> codes = in_order(order, of_rows.data(), coder.place_bytes(), resources);
  const HostArray<uint32_t> place_cells = cells_in_order(order, cells.labels(), resources);
  const int64_t cell_count = cells.count();
  HostArray<std::byte> centres = walked_centres(std::move(cells), coder, resources);
  in_cells.reset();
  of_rows = {};
  HostArray<uint32_t> edges;
  if (wish.start != nullptr) {
    edges = placed_edges(order, wish.start, wish.degree, resources);
  } else {
    const BuildRows built(coder, codes.data(), order.places(), ProductForm::inverted, resources);
    Neighbors candidates = candidates_of(built.rows(), wish.degree, wish.seed, resources);
    edges = link_places(built.rows(), candidates.view(), wish.degree, resources);
  }
  WalkView view;
  view.rows = coder.rows_of(codes.data(), order.places());
  view.tail = coder.rows_of(nullptr, 0);
  view.edges = edges.data();
  view.degree = wish.degree;
  view.centres = coder.rows_of(centres.data(), cell_count);
  WalkEntries entries = find_entries(view, place_cells.data(), edges.data(), resources);
  facts.parts = entries.parts;
  facts.lost = entries.lost;
  return std::make_shared<const WalkGraph>(WalkGraph{std::move(coder), wish.degree, std::move(order), std::move(codes),
                                                     std::move(edges), cell_count, std::move(centres),
                                                     std::move(entries.offsets), std::move(entries.places), facts});
}

}  // namespace kith
