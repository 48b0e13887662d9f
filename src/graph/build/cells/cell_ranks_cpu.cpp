#include "graph/build/cells/cell_ranks_cpu.hpp"

#include "core/cpu_target.hpp"
#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "graph/lists/pairs/first_values.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/select/smallest_values.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kith {
namespace {

// Vectors whose values are computed together, at most: all centres pass by for each block.
constexpr int64_t kBlock = 64;
constexpr int64_t kBlocksPerTask = 8;

// Bytes alone would leave most orders open.
PanelFormat rank_format(int64_t cols) {
  const PanelFormat format = choose_panel_format(KeyKind::l2, DType::f32, DType::f32, cols, cpu_extensions());
  return format == PanelFormat::screened ? PanelFormat::f32 : format;
}

// An origin of whole numbers, if centres are so far from it that rounding it hardly matters: differences of bytes and
// such an origin fit in a single bf16, so that tiles need only one of their two products.
std::vector<float> rank_origin(const MatrixView& centres, const Resources& resources) {
  if (counts_only(resources)) return std::vector<float>(static_cast<size_t>(centres.cols()));
  constexpr double kFarColumn = 8;
  std::vector<float> origin = choose_origin(KeyKind::l2, centres);
  double squares = 0;
  for (int64_t i = 0; i < centres.rows(); ++i) {
    const float* const centre = typed_row<float>(centres, i);
    for (size_t c = 0; c < origin.size(); ++c)
      squares += (double{centre[c]} - origin[c]) * (double{centre[c]} - origin[c]);
  }
  if (squares >= kFarColumn * kFarColumn * static_cast<double>(centres.rows() * centres.cols())) {
    for (float& value : origin) value = std::nearbyint(value);
  }
  return origin;
}

// Whether the root of a square of at least `lower` comes after that of one of at most `upper`, also when both are
// rounded.
bool roots_in_order(float upper, float lower) { return lower > std::max(upper, 0.0f) * (1 + 0x1p-18f); }

}  // namespace

// What one thread works with.
class CellRanks::Worker {
 public:
  Worker(const MatrixView& centres, const PackedRows& packed, int64_t most, const Resources& resources)
      : centres_(centres),
        rows_(packed.panels()),
        most_(most),
        queries_(KeyKind::l2, packed.format(), kBlock, centres.cols(), resources),
        scratch_(PackedQueries::scratch_bytes(packed.format(), centres.cols()), "ranking cells", resources),
        vectors_(kBlock * centres.cols(), "ranking cells", resources),
        errors_(kBlock, "ranking cells", resources),
        values_(most, centres.rows(), resources, kBlock),
        found_(centres.rows(), "ranking cells", resources),
        ascending_(centres.rows(), "ranking cells", resources),
        before_(centres.rows(), "ranking cells", resources),
        sorted_(centres.rows(), "ranking cells", resources),
        neighbors_(centres.rows(), "ranking cells", resources) {}

  // Up to kBlock vectors.
  void rank(const MatrixView& vectors, int64_t first, const std::vector<float>& origin, int64_t panels,
            const Sink& sink) {
    compute(vectors, origin, panels);
    for (int64_t i = 0; i < vectors.rows(); ++i) sink(first + i, nearest(i, errors_[i]));
  }

  // The same of questions, whose vectors are first, first + 1, ...
  void count_nearer(const MatrixView& vectors, int64_t first, const std::vector<float>& origin, int64_t panels,
                    const uint32_t* own, std::span<const PlaceQuestion> questions, uint32_t* nearer) {
    compute(vectors, origin, panels);
    for (size_t i = 0; i < questions.size(); ++i) {
      const int64_t vector = questions[i].row - first;
      nearer[i] = static_cast<uint32_t>(nearer_cells(vector, questions[i].cell, own[vector]));
    }
  }

 private:
  float* vector(int64_t i) const { return vectors_.data() + i * centres_.cols(); }

  // The values of vectors and all cells, and their errors.
  void compute(const MatrixView& vectors, const std::vector<float>& origin, int64_t panels) {
    const int64_t count = vectors.rows();
    for (int64_t i = 0; i < count; ++i) widen_row(vectors, i, vector(i));
    const int64_t width = queries_.panel_width();
    for (int64_t at = 0; at < count; at += width) {
      queries_.pack_panel(at / width, vector(at), std::min(width, count - at), origin, scratch_.data());
    }
    float limits[kBlock + kMostQueriesPerPanel];
    std::fill(std::begin(limits), std::end(limits), kInfinity);
    const PanelQueries queries = queries_.panels(0, count, limits);
    all_values(queries, rows_, panels, values_.of(0), values_.stride());
    const float largest = *std::max_element(rows_.norms, rows_.norms + panels);
    for (int64_t i = 0; i < count; ++i) errors_[i] = queries.bound(i).at(largest);
  }

  int64_t nearer_cells(int64_t query, uint32_t cell, uint32_t own) {
    const int64_t cells = centres_.rows();
    const float* const values = values_.of(query);
    const float offset = queries_.offset(query);
    const float error = errors_[query];
    const float mine = values[cell] + offset;
    const auto is_before = [&](float value) { return roots_in_order(value + offset + error, mine - error); };
    const auto is_after = [&](float value) { return roots_in_order(mine + error, value + offset - error); };
    int64_t before = 0;
    int64_t after = 0;
    if (error < kInfinity) {
      for (int64_t i = 0; i < cells; ++i) before += is_before(values[i]) ? 1 : 0;
      for (int64_t i = 0; i < cells; ++i) after += is_after(values[i]) ? 1 : 0;
    }
    if (before + after + 1 == cells) return before - (own != cell && is_before(values[own]) ? 1 : 0);
    // Those that values do not tell from it, itself among them, by their keys.
    uint32_t* const unsure = values_.places();
    int64_t count = 0;
    before = 0;
    for (int64_t i = 0; i < cells; ++i) {
      const auto number = static_cast<uint32_t>(i);
      if (number == own && own != cell) continue;
      const bool sure = error < kInfinity;
      if (sure && is_before(values[i])) {
        ++before;
      } else if (number == cell || !sure || !is_after(values[i])) {
        unsure[count++] = number;
      }
    }
    put_keys(query, unsure, count);
    return before + (std::find_if(neighbors_.data(), neighbors_.data() + count,
                                  [&](uint64_t neighbor) { return row_of(neighbor) == cell; }) -
                     neighbors_.data());
  }

  // `error`: of any value.
  const uint32_t* nearest(int64_t query, float error) {
    const int64_t cells = centres_.rows();
    if (!(error < kInfinity)) {
      std::iota(values_.places(), values_.places() + cells, 0u);
      return by_keys(query, cells);
    }
    const float offset = queries_.offset(query);
    const float most = values_.limit(query, cells) + offset;
    // No key that its value may have is above one that the last wanted may have.
    const float limit = square_above(root_above(most + error)) + error - offset;
    const int64_t count = values_.find(query, cells, limit);
    // Where very many are as near as the last, values tell little.
    return count > 2 * most_ + 64 ? by_keys(query, count) : in_order(query, offset, error, count);
  }

  // The cells found by their keys.
  const uint32_t* by_keys(int64_t query, int64_t count) {
    put_keys(query, values_.places(), count);
    for (int64_t i = 0; i < count; ++i) sorted_[i] = row_of(neighbors_[i]);
    return sorted_.data();
  }

  // Some cells and their keys, sorted, to neighbors_.
  void put_keys(int64_t query, const uint32_t* cells, int64_t count) {
    float* const keys = values_.keys();
    canonical_keys_cpu(KeyKind::l2, {vector(query), 0}, centres_, cells, count, keys);
    for (int64_t i = 0; i < count; ++i) neighbors_[i] = pack_neighbor(ordered_key(keys[i]), cells[i]);
    std::sort(neighbors_.data(), neighbors_.data() + count);
  }

  // Sorts the found cells by their values, or by keys if values are too close.
  const uint32_t* in_order(int64_t query, float offset, float error, int64_t count) {
    const uint32_t* const cells = values_.places();
    const float* const values = values_.of(query);
    for (int64_t i = 0; i < count; ++i) found_[i] = values[cells[i]];
    count_before(found_.data(), count, before_.data());
    for (int64_t i = 0; i < count; ++i) {
      sorted_[before_[i]] = cells[i];
      ascending_[before_[i]] = found_[i] + offset;
    }
    for (int64_t first = 0; first < most_;) {
      int64_t end = first + 1;
      while (end < count && !roots_in_order(ascending_[end - 1] + error, ascending_[end] - error)) ++end;
      if (end - first > 1) {
        put_keys(query, sorted_.data() + first, end - first);
        for (int64_t i = first; i < end; ++i) sorted_[i] = row_of(neighbors_[i - first]);
      }
      first = end;
    }
    return sorted_.data();
  }

  const MatrixView centres_;
  const PanelBase rows_;
  const int64_t most_;
  PackedQueries queries_;
  HostBuffer scratch_;
  HostArray<float> vectors_;
  HostArray<float> errors_;    // of the vectors' values
  FirstValues<float> values_;  // of a block of vectors and all cells
  HostArray<float> found_;
  HostArray<float> ascending_;  // those found, sorted
  HostArray<uint32_t> before_;  // how many of those found come before each
  HostArray<uint32_t> sorted_;  // cells
  HostArray<uint64_t> neighbors_;
};

CellRanks::CellRanks(const MatrixView& centres, int64_t most, const Resources& resources)
    : centres_(centres),
      resources_(resources.with_progress({})),
      packed_(KeyKind::l2, rank_format(centres.cols()), rank_origin(centres, resources), centres.rows(), resources_) {
  ProgressMeter meter("cells", centres.rows(), resources_);
  packed_.pack(centres, {}, meter, resources_);
  for (int slot = 0; slot < resources.threads(); ++slot) {
    workers_.push_back(std::make_unique<Worker>(centres_, packed_, std::min(most, centres.rows()), resources_));
  }
}

CellRanks::~CellRanks() = default;

void CellRanks::rank(const MatrixView& vectors, ProgressMeter& meter, const Sink& sink) {
  const int64_t block = whole_panels(kBlock, panel_shape(packed_.format()));
  const int64_t step = kBlocksPerTask * block;
  parallel_for(divide_up(vectors.rows(), step), meter, resources_, [&](int64_t task, int slot) {
    const int64_t end = std::min((task + 1) * step, vectors.rows());
    for (int64_t first = task * step; first < end; first += block) {
      const MatrixView some = vectors.slice(first, std::min(block, end - first));
      workers_[static_cast<size_t>(slot)]->rank(some, first, packed_.origin(), packed_.panel_count(), sink);
      meter.checkpoint();
    }
  });
}

void CellRanks::count_nearer(const MatrixView& vectors, int64_t first, const uint32_t* own,
                             std::span<const PlaceQuestion> questions, uint32_t* nearer) {
  const int64_t block = whole_panels(kBlock, panel_shape(packed_.format()));
  const auto from = [&](int64_t vector) {  // the first question of a vector or a later one
    return std::partition_point(questions.begin(), questions.end(),
                                [&](const PlaceQuestion& question) { return question.row < first + vector; }) -
           questions.begin();
  };
  ProgressMeter meter("cells", vectors.rows(), resources_);
  parallel_for(divide_up(vectors.rows(), block), meter, resources_, [&](int64_t task, int slot) {
    const int64_t at = task * block;
    const int64_t count = std::min(block, vectors.rows() - at);
    const auto begin = from(at);
    const auto asked = questions.subspan(static_cast<size_t>(begin), static_cast<size_t>(from(at + count) - begin));
    workers_[static_cast<size_t>(slot)]->count_nearer(vectors.slice(at, count), first + at, packed_.origin(),
                                                      packed_.panel_count(), own + at, asked, nearer + begin);
  });
}

}  // namespace kith
