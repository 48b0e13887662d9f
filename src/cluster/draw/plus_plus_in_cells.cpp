#include "cluster/draw/plus_plus_in_cells.hpp"

#include <kith/matrix_buffer.hpp>

#include "cluster/draw/kmeans_plus_plus.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/random.hpp"
#include "core/typed_row.hpp"
#include "kernels/assign/centre_table_cpu.hpp"
#include "rows/row_sample.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kith {
namespace {

constexpr double kMostWork = 0x1p41;     // multiplications: less than an iteration over as many rows as such lists have
constexpr int64_t kSampledPerCell = 64;  // rows that cells are chosen from
constexpr int64_t kTimesItsShare = 3;    // centres that are chosen in a cell, of which those with most to gain stay
constexpr int64_t kTaskRows = 1024;

// Some of the rows, with their weights.
struct SomeRows {
  MatrixBuffer rows;
  std::vector<float> weights;  // or empty

  SomeRows(const PlusPlusCells& from, const uint32_t* numbers, int64_t count, const Resources& resources)
      : rows(DType::f32, count, from.rows.cols(), "the rows of a cell", resources) {
    for (int64_t i = 0; i < count; ++i) {
      const auto* const row = typed_row<float>(from.rows, numbers[i]);
      std::copy_n(row, from.rows.cols(), typed_row<float>(rows.mutable_view(), i));
    }
    if (from.weights == nullptr) return;
    for (int64_t i = 0; i < count; ++i) weights.push_back(from.weights[numbers[i]]);
    // If all weights are 0, all rows count the same.
    if (std::all_of(weights.begin(), weights.end(), [](float w) { return w == 0; })) weights.clear();
  }

  std::vector<uint32_t> choose(PanelFormat format, int64_t clusters, const CounterRng& rng, ProgressMeter& meter,
                               const Resources& resources, std::vector<double>* potentials = nullptr) const {
    ViewSource source(rows.view());
    const float* const own = weights.empty() ? nullptr : weights.data();
    return KMeansPlusPlus(format, {source, rows.view().rows(), true, own}, clusters, resources)
        .choose(rng, meter, resources, potentials);
  }
};

CounterRng random_of(const PlusPlusCells& from, int64_t cell) {
  return {from.seed, static_cast<uint64_t>(cell + 2) << 32 | from.stream};
}

// The cell of each row.
HostArray<int32_t> cells_of(const PlusPlusCells& from, int64_t cells, ProgressMeter& meter,
                            const Resources& resources) {
  const int64_t count = from.rows.rows();
  const int64_t cols = from.rows.cols();
  std::vector<uint32_t> sampled(static_cast<size_t>(std::min(count, kSampledPerCell * cells)));
  for (size_t i = 0; i < sampled.size(); ++i) {
    sampled[i] = static_cast<uint32_t>(static_cast<int64_t>(i) * count / static_cast<int64_t>(sampled.size()));
  }
  const SomeRows sample(from, sampled.data(), static_cast<int64_t>(sampled.size()), resources);
  const std::vector<uint32_t> places = sample.choose(from.format, cells, random_of(from, -1), meter, resources);
  MatrixBuffer centres(DType::f32, cells, cols, "the cells", resources);
  for (int64_t c = 0; c < cells; ++c) {
    const auto* const row = typed_row<float>(sample.rows.view(), places[static_cast<size_t>(c)]);
    std::copy_n(row, cols, typed_row<float>(centres.mutable_view(), c));
  }
  ViewSource source(from.rows);
  CentreTable few(KeyKind::squared_l2, sample_mean(source, cols), cells, resources);
  few.set(centres.view());
  HostArray<int32_t> labels(count, "the cells", resources);
  const int64_t scratch_floats = CentreTable::scratch_floats(cells, cols);
  const HostArray<float> scratch(resources.threads() * scratch_floats, "the cells", resources);
  parallel_for(divide_up(count, kTaskRows), meter, resources, [&](int64_t task, int slot) {
    const int64_t first = task * kTaskRows;
    few.nearest(from.rows.slice(first, std::min(kTaskRows, count - first)), labels.data() + first, nullptr,
                scratch.data() + slot * scratch_floats);
  });
  return labels;
}

}  // namespace

int64_t plus_plus_cells(int64_t rows, int64_t cols, int64_t clusters) {
  const double each = static_cast<double>(cols) * static_cast<double>(plus_plus_trials(clusters));
  const double work = static_cast<double>(rows) * static_cast<double>(clusters) * each;
  if (!(work > kMostWork)) return 1;
  constexpr auto kMost = static_cast<double>(kMostFewCentres);
  return static_cast<int64_t>(std::ceil(std::min(static_cast<double>(kTimesItsShare) * work / kMostWork, kMost)));
}

std::vector<CellGain> largest_gains(const std::vector<std::vector<double>>& potentials, int64_t clusters) {
  std::vector<CellGain> gains;
  for (size_t cell = 0; cell < potentials.size(); ++cell) {
    const std::vector<double>& own = potentials[cell];
    for (size_t i = 0; i < own.size(); ++i) gains.push_back({i == 0 ? HUGE_VAL : own[i - 1] - own[i], cell, i});
  }
  const auto in_order = [](const CellGain& a, const CellGain& b) {
    return a.cell != b.cell ? a.cell < b.cell : a.place < b.place;
  };
  const auto is_larger = [&](const CellGain& a, const CellGain& b) {
    return a.gain != b.gain ? a.gain > b.gain : in_order(a, b);
  };
  const auto end = gains.begin() + clusters;
  std::nth_element(gains.begin(), end, gains.end(), is_larger);
  gains.erase(end, gains.end());
  std::sort(gains.begin(), gains.end(), in_order);
  return gains;
}

std::vector<uint32_t> choose_plus_plus_in_cells(const PlusPlusCells& from, ProgressMeter& meter,
                                                const Resources& resources) {
  const int64_t cells = from.cells;
  const HostArray<int32_t> labels = cells_of(from, cells, meter, resources);
  std::vector<int64_t> counts(static_cast<size_t>(cells), 0);
  for (const int32_t label : labels) ++counts[static_cast<size_t>(label)];
  // Row numbers cell by cell, and where each cell's begin.
  std::vector<int64_t> first(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), first.begin() + 1);
  const HostArray<uint32_t> numbers(labels.size(), "the rows of cells", resources);
  std::vector<int64_t> next(first.begin(), first.end() - 1);
  for (int64_t i = 0; i < labels.size(); ++i) {
    numbers[next[static_cast<size_t>(labels[i])]++] = static_cast<uint32_t>(i);
  }

  // Each cell is processed by one thread, with memory for one.
  ResourceOptions options;
  options.threads = 1;
  options.device = Device::cpu();
  const Resources alone = Resources(options).with_budgets(resources.host_memory(), resources.device_memory());
  std::vector<std::vector<uint32_t>> places(counts.size());
  std::vector<std::vector<double>> potentials(counts.size());
  parallel_for(cells, meter, resources, [&](int64_t task, int) {
    const auto cell = static_cast<size_t>(task);
    if (counts[cell] == 0) return;
    const int64_t share = divide_up(counts[cell] * from.clusters, labels.size());
    ProgressMeter quiet("kmeans++", counts[cell], alone);
    const SomeRows rows(from, numbers.data() + first[cell], counts[cell], alone);
    places[cell] = rows.choose(from.format, std::min(counts[cell], kTimesItsShare * share), random_of(from, task),
                               quiet, alone, &potentials[cell]);
    meter.add(counts[cell]);
  });
  std::vector<uint32_t> chosen;
  for (const CellGain& gain : largest_gains(potentials, from.clusters)) {
    chosen.push_back(numbers[first[gain.cell] + places[gain.cell][gain.place]]);
  }
  return chosen;
}

}  // namespace kith
