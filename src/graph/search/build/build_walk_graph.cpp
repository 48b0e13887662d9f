#include "graph/search/build/build_walk_graph.hpp"

#include <kith/knn_graph.hpp>

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/search/build/link_places.hpp"
#include "graph/search/build/stage_times.hpp"
#include "graph/search/build/walk_build_gpu.hpp"
#include "graph/search/build/walk_entries.hpp"
#include "graph/search/graph/walk_cells.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"

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
    if (!counts_only(resources)) fill(coder, walked.values, form);
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

// Calls work(place) for every place, on all threads.
template <typename Work>
void for_all_places(const PlaceOrder& order, const Resources& resources, const Work& work) {
  constexpr int64_t kTask = 4096;
  ProgressMeter meter("order", order.places(), resources);
  parallel_for(divide_up(order.places(), kTask), meter, resources, [&](int64_t task, int) {
    const int64_t end = std::min((task + 1) * kTask, order.places());
    for (int64_t place = task * kTask; place < end; ++place) work(place);
    meter.add(end - task * kTask);
  });
  meter.finish();
}

// The first row of each place, in the order of places; rows have row_bytes bytes.
HostArray<std::byte> in_order(const PlaceOrder& order, const std::byte* rows, int64_t row_bytes,
                              const Resources& resources) {
  HostArray<std::byte> placed(order.places() * row_bytes, "the graph's codes", resources);
  for_all_places(order, resources, [&](int64_t place) {
    std::memcpy(placed.data() + place * row_bytes, rows + order.first_row(place) * row_bytes,
                static_cast<size_t>(row_bytes));
  });
  return placed;
}

HostArray<uint32_t> cells_in_order(const PlaceOrder& order, const uint32_t* labels, const Resources& resources) {
  HostArray<uint32_t> cells(order.places(), "the cells of places", resources);
  for_all_places(order, resources, [&](int64_t place) { cells[place] = labels[order.first_row(place)]; });
  return cells;
}

int64_t candidate_count(int64_t places, int64_t degree) {
  return std::clamp<int64_t>(places - 1, 1, wanted_candidates(degree));
}

HostArray<uint32_t> places_of_rows(const PlaceOrder& order, const Resources& resources) {
  HostArray<uint32_t> place_of(order.row_count(), "the places of rows", resources);
  if (counts_only(resources)) return place_of;
  const PlaceRows rows = order.view();
  for_all_places(order, resources, [&](int64_t place) {
    rows.visit(static_cast<uint32_t>(place), [&](uint32_t row) { place_of[row] = static_cast<uint32_t>(place); });
  });
  return place_of;
}

// Neighbours of rows as neighbours of places: those of the rows of a place, one row after the other, each once, the
// first k.
Neighbors placed_candidates(const PlaceOrder& order, const NeighborsView& of_rows, int64_t k,
                            const Resources& resources) {
  Neighbors placed(order.places(), k, resources);
  const HostArray<uint32_t> place_of = places_of_rows(order, resources);
  const PlaceRows rows = order.view();
  for_all_places(order, resources, [&](int64_t place) {
    int64_t* const list = placed.view().ids + place * k;
    int64_t* end = list;
    rows.visit(static_cast<uint32_t>(place), [&](uint32_t row) {
      const int64_t* const from = of_rows.ids + row * of_rows.k;
      for (int64_t i = 0; i < of_rows.k && from[i] >= 0 && end != list + k; ++i) {
        const auto other = static_cast<int64_t>(place_of[from[i]]);
        if (other != place && std::find(list, end, other) == end) *end++ = other;
      }
    });
    std::fill(end, list + k, int64_t{-1});
  });
  return placed;
}

// Lists between rows as lists between places: what the rows of a place point at, each once, the first `degree`.
HostArray<uint32_t> placed_edges(const PlaceOrder& order, const uint32_t* of_rows, int64_t degree,
                                 const Resources& resources) {
  HostArray<uint32_t> edges(order.places() * degree, "the graph's edges", resources);
  const HostArray<uint32_t> place_of = places_of_rows(order, resources);
  if (counts_only(resources)) return edges;
  const PlaceRows rows = order.view();
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
  if (counts_only(resources)) return centres;
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

// Centres in the codes of bytes that queries of the second coder have.
HostArray<std::byte> recoded_centres(const HostArray<std::byte>& centres, int64_t count, const WalkCoder& from,
                                     const WalkCoder& to, const Resources& resources) {
  HostArray<std::byte> recoded(count * to.centre_bytes(), "the centres of a graph's cells", resources);
  if (counts_only(resources)) return recoded;
  std::fill(recoded.begin(), recoded.end(), std::byte{0});
  for (int64_t i = 0; i < count; ++i) {
    const auto* const code = reinterpret_cast<const int8_t*>(centres.data() + i * from.centre_bytes());
    auto* const out = reinterpret_cast<int8_t*>(recoded.data() + i * to.centre_bytes());
    if (to.kind() == WalkKind::products) {  // directions, which know no step
      std::copy_n(code, to.cols(), out);
      continue;
    }
    for (int64_t c = 0; c < to.cols(); ++c) {
      const auto column = static_cast<size_t>(c);
      const double value = static_cast<double>(from.offsets()[column]) + static_cast<double>(from.step()) * code[c];
      const double level = (value - static_cast<double>(to.offsets()[column])) / static_cast<double>(to.step());
      out[c] = static_cast<int8_t>(std::clamp(std::nearbyint(level), -128.0, 127.0));
    }
  }
  return recoded;
}

// Codes of four bits as the bytes that they stand for: what a GPU takes whose walks are a build's.
HostArray<std::byte> unpacked_codes(const WalkCoder& coder, const HostArray<std::byte>& codes, const PlaceOrder& order,
                                    const Resources& resources) {
  HostArray<std::byte> bytes(order.places() * coder.centre_bytes(), "the graph's codes", resources);
  if (counts_only(resources)) return bytes;
  for_all_places(order, resources, [&](int64_t place) {
    unpack_nibbles(reinterpret_cast<const int8_t*>(codes.data() + place * coder.place_bytes()), coder.code_columns(),
                   reinterpret_cast<int8_t*>(bytes.data() + place * coder.centre_bytes()));
  });
  return bytes;
}

bool builds_on_gpu(const Resources& resources) { return resources.device().kind == DeviceKind::cuda; }

// Whether a GPU was asked for that takes walks over such places.
bool on_gpu(const WalkRows& places, int64_t degree, const Resources& resources) {
  return builds_on_gpu(resources) && places.kind != WalkKind::canonical &&
         suits_walk_cuda(places.count(), kSelfWalk.beam, 0, degree, places.row_bytes());
}

// Where memory is only counted it is not known yet whether floats have codes (WalkCoder::choose): what a GPU takes if
// they do, beside what a CPU takes if they do not.
void count_gpu_build(const WalkCoder& coder, const HostArray<std::byte>& memory, int64_t count, int64_t cells,
                     const WalkGraphParams& params, const Resources& asked, const Resources& resources) {
  const int64_t stride = code_stride(coder.cols());
  const auto codes_of = [&](int64_t rows) {
    return WalkRows{WalkKind::squares, KeyKind::squared_l2, {memory.data(), DType::i8, {rows, coder.cols(), stride}}};
  };
  WalkView view;
  view.rows = codes_of(count);
  view.degree = params.degree;
  view.centres = codes_of(cells);
  if (coder.has_codes() || !counts_only(resources) || !on_gpu(view.rows, params.degree, asked)) return;
  if (params.metric != Metric::l2 && params.metric != Metric::sqeuclidean) return;
  const std::unique_ptr<WalkBuildGpu> gpu = make_walk_build_gpu(view.rows, params.degree, asked);
  const HostArray<uint32_t> edges = gpu->link(
      view.rows, candidate_count(count, params.degree),
      [&](const MatrixView& on_device, const NeighborsView& out, const Resources& used) {
        find_candidates(on_device, Metric::sqeuclidean, params.seed, out, used);
      },
      resources);
  (void)gpu->parts(view, resources);
  (void)gpu->lost_of(view, {}, resources);
}

}  // namespace

void find_candidates(const MatrixView& rows, Metric metric, uint64_t seed, const NeighborsView& out,
                     const Resources& resources) {
  const KnnGraphParams params{
      .k = out.k, .metric = metric, .check_finite = false, .recall = kCandidateRecall, .seed = seed};
  call_or_count(resources, [&](const Resources& given) {
    within_limits("the graph", given, [&](const Resources& used) {
      return build_graph(rows, out, params, used, {.judged = DeviceKind::cpu});
    });
  });
}

int64_t wanted_candidates(int64_t degree) { return std::max(2 * degree, kFewestCandidates); }

std::shared_ptr<const WalkGraph> build_walk_graph(const MatrixView& rows, const WalkGraphParams& params,
                                                  const Resources& given, WalkArraysOnGpu* arrays) {
  const Resources resources = given.with_device(Device::cpu()).with_progress({});
  // Who learns cells and puts rows into them.
  const Resources asked = builds_on_gpu(given) ? given.with_progress({}) : resources;
  StageTimes times;
  const int64_t count = rows.rows();
  // The coder used to build the lists; walks may use another with 4 bits.
  const WalkCoder built_by = WalkCoder::choose(rows, params.metric, params.seed, resources);
  const bool four = params.bits == WalkBits::four && built_by.has_codes();
  const WalkCoder coder = four ? built_by.with_four_bits(rows, params.seed, resources) : built_by;
  WalkGraphCounts counts;
  HostArray<std::byte> of_rows(count * built_by.place_bytes(), "the graph's codes", resources);
  counts.clipped = built_by.encode_all(rows, of_rows.data(), resources);
  HostArray<std::byte> packed_rows(four ? count * coder.place_bytes() : 0, "the graph's codes", resources);
  if (four) counts.clipped = coder.encode_all(rows, packed_rows.data(), resources);
  times.done("codes");
  auto in_cells = std::make_unique<BuildRows>(built_by, of_rows.data(), count, ProductForm::directions, resources);
  WalkCells cells(in_cells->rows(), params.seed, asked);
  times.done("cells");
  PlaceOrder order(four ? packed_rows.data() : of_rows.data(), coder.place_bytes(), count, cells.labels(), resources);
  HostArray<std::byte> codes = in_order(order, of_rows.data(), built_by.place_bytes(), resources);
  HostArray<std::byte> packed;
  if (four) packed = in_order(order, packed_rows.data(), coder.place_bytes(), resources);
  const HostArray<uint32_t> place_cells = cells_in_order(order, cells.labels(), resources);
  const int64_t cell_count = cells.count();
  HostArray<std::byte> centres = walked_centres(std::move(cells), built_by, resources);
  in_cells.reset();
  of_rows = {};
  packed_rows = {};
  times.done("places");
  count_gpu_build(built_by, codes, count, cell_count, params, asked, resources);
  WalkRows walked = built_by.rows_of(codes.data(), order.places());
  std::unique_ptr<WalkBuildGpu> gpu =
      on_gpu(walked, params.degree, asked) ? make_walk_build_gpu(walked, params.degree, asked) : nullptr;
  HostArray<uint32_t> edges;
  if (params.start != nullptr) {
    edges = placed_edges(order, params.start, params.degree, resources);
    if (gpu != nullptr) gpu->take_edges(edges.data());
  } else {
    const BuildRows built(built_by, codes.data(), order.places(), ProductForm::inverted, resources);
    const WalkRows& places = built.rows();
    const int64_t count_each = candidate_count(order.places(), params.degree);
    const Metric metric = metric_of(places);
    if (params.candidates.queries > 0) {
      Neighbors candidates = placed_candidates(order, params.candidates, count_each, resources);
      edges = link_places(places, candidates.view(), params.degree, resources);
      if (gpu != nullptr) gpu->take_edges(edges.data());
    } else if (gpu != nullptr) {
      edges = gpu->link(
          places, count_each,
          [&](const MatrixView& on_device, const NeighborsView& out, const Resources& used) {
            find_candidates(on_device, metric, params.seed, out, used);
          },
          resources);
    } else {
      Neighbors candidates(order.places(), count_each, resources);
      find_candidates(places.values, metric, params.seed, candidates.view(), resources);
      edges = link_places(places, candidates.view(), params.degree, resources);
    }
  }
  times.done("lists");
  HostArray<std::byte> bytes;  // of packed codes, for a GPU
  if (four) {
    const bool again = gpu != nullptr;
    gpu.reset();
    codes = std::move(packed);
    centres = recoded_centres(centres, cell_count, built_by, coder, resources);
    walked = coder.rows_of(codes.data(), order.places());
    if (again) {
      bytes = unpacked_codes(coder, codes, order, resources);
      walked = coder.centres_of(bytes.data(), order.places());
      gpu = make_walk_build_gpu(walked, params.degree, asked);
      gpu->take_edges(edges.data());
    }
  }
  WalkView view;
  view.rows = walked;
  view.tail = walked.with(walked.values.slice(0, 0));
  view.edges = edges.data();
  view.degree = params.degree;
  view.centres = coder.centres_of(centres.data(), cell_count);
  std::shared_ptr<const PackedByteRows> packed_for_walks = packed_centres(view.centres, resources);
  view.packed_centres = packed_for_walks.get();
  const std::unique_ptr<PlaceSearch> threads = gpu == nullptr ? make_place_search_cpu() : nullptr;
  PlaceSearch& search = gpu == nullptr ? *threads : *gpu;
  WalkEntries entries = find_entries(view, place_cells.data(), edges.data(), search, resources);
  if (arrays != nullptr && gpu != nullptr && !four && !counts_memory(given)) *arrays = gpu->give(order.places());
  times.done("entries");
  times.tell("graph", given);
  counts.parts = entries.parts;
  counts.lost = entries.lost;
  WalkLists lists(std::move(edges), order.places(), params.degree);
  return std::make_shared<const WalkGraph>(WalkGraph{coder, params.degree, std::move(order), std::move(codes),
                                                     std::move(lists), cell_count, std::move(centres),
                                                     std::move(entries.offsets), std::move(entries.places), counts,
                                                     std::move(packed_for_walks)});
}

}  // namespace kith
