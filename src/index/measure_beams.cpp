#include "index/measure_beams.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "core/within_limits.hpp"
#include "graph/search/build/stage_times.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr uint64_t kBeamStream = 0x6265616D;  // of random numbers
constexpr int64_t kMeasuredRows = 1000;
constexpr int64_t kMeasuredK = 10;

// The places of rows, given in ascending order, that are alone at their place; kNoWalkPlace for others, since equal
// rows are found there.
std::vector<uint32_t> lone_places(const PlaceOrder& order, const std::vector<uint32_t>& rows,
                                  const Resources& resources) {
  constexpr int64_t kTask = 65536;
  std::vector<uint64_t> wanted(static_cast<size_t>(divide_up(order.row_count(), 64)), 0);  // a bit for each row
  for (const uint32_t row : rows) wanted[row / 64] |= uint64_t{1} << row % 64;
  std::vector<uint32_t> places(rows.size(), kNoWalkPlace);
  const int64_t tasks = divide_up(order.places(), kTask);
  ProgressMeter meter("places", tasks, resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int) {
    const int64_t end = std::min((task + 1) * kTask, order.places());
    for (int64_t place = task * kTask; place < end; ++place) {
      const uint32_t row = order.first_row(place);
      if ((wanted[row / 64] >> row % 64 & 1) == 0 || order.offsets()[place + 1] - order.offsets()[place] > 1) continue;
      const auto at = std::lower_bound(rows.begin(), rows.end(), row);
      places[static_cast<size_t>(at - rows.begin())] = static_cast<uint32_t>(place);
    }
  });
  return places;
}

}  // namespace

BeamTable measure_beams(const GraphState& state, uint64_t seed, const Resources& given) try {
  const Resources resources = given.with_progress({}).with_device(Device::cpu());
  // A memory limit was not asked for copies on a GPU.
  const bool on_gpu = given.device().kind == DeviceKind::cuda && !counts_memory(given);
  const Resources asked = on_gpu ? given.with_progress({}) : resources;
  StageTimes times;
  const int64_t rows = state.content().rows;
  const std::vector<uint32_t> drawn = drawn_rows(CounterRng(seed, kBeamStream), rows, kMeasuredRows, resources);
  const auto count = static_cast<int64_t>(drawn.size());
  const DType dtype = state.vectors().dtype();
  const int64_t cols = state.content().cols;
  MatrixBuffer queries(dtype, count, cols, "rows that recall is measured on", resources);
  // One more, since most rows find themselves.
  Neighbors truth(count, kMeasuredK + 1, resources);
  Neighbors found(count, kMeasuredK + 1, resources);
  const SearchParams exact{.k = kMeasuredK + 1};
  if (counts_only(resources)) {
    state.store()->search(queries.view(), truth.view(), exact, resources);
    return {};
  }
  for (int64_t i = 0; i < count; ++i) {
    MatrixBuffer room;
    const MatrixView row = state.vectors().view(drawn[static_cast<size_t>(i)], 1, room, resources);
    std::memcpy(queries.mutable_view().row(i), row.data(), static_cast<size_t>(cols * size_of(dtype)));
  }
  times.done("rows");
  const SharedState searched = on_gpu ? state.exact_on_gpu(asked.device().index, asked) : state.store();
  times.done("copy");
  searched->search(queries.view(), truth.view(), exact, asked);
  times.done("truth");
  // Distances of the kMeasuredK nearest other rows. Any row no farther than the last of them counts as found.
  const bool larger = state.metric() == Metric::inner_product;
  const auto others = [&](const Neighbors& of, int64_t query, float* distances) {
    const int64_t* const ids = of.ids(query);
    const int64_t* const end = ids + kMeasuredK + 1;
    const int64_t own = std::find(ids, end, int64_t{drawn[static_cast<size_t>(query)]}) - ids;
    int64_t kept = 0;
    for (int64_t i = 0; i <= kMeasuredK; ++i) {
      if (i != own && kept < kMeasuredK) distances[kept++] = of.distances(query)[i];
    }
  };
  const std::vector<uint32_t> hidden = lone_places(state.front().graph->order, drawn, resources);
  const KeptRows all({}, rows, resources);
  times.done("places");
  std::vector<BeamRecall> measured;
  for (const int64_t beam : kMeasuredBeams) {
    const GraphPlan plan = plan_graph_search(state.search_of({.k = kMeasuredK, .beam = beam}, rows));
    if (plan.exact) {
      measured.push_back({beam, 1.0});
      break;
    }
    const GraphState::Asked sought{queries.view(), {}, hidden.data()};
    if (!on_gpu || !state.walk_on_gpu(plan, sought, found.view(), all, asked)) {
      state.walk(plan, sought, found.view(), all, resources);
    }
    int64_t right = 0;
    for (int64_t query = 0; query < count; ++query) {
      float wanted[kMeasuredK];
      float got[kMeasuredK];
      others(truth, query, wanted);
      others(found, query, got);
      const float last = wanted[kMeasuredK - 1];
      right += std::count_if(got, got + kMeasuredK, [&](float d) { return larger ? d >= last : d <= last; });
    }
    const double recall = static_cast<double>(right) / static_cast<double>(count * kMeasuredK);
    measured.push_back({beam, static_cast<double>(static_cast<float>(recall))});
    if (recall >= kMeasuredRecall) break;
  }
  times.done("walks");
  times.tell("recall of beams", given);
  return BeamTable(std::move(measured));
} catch (const OutOfMemory&) {
  // The graph is there, and the CPU measures the same.
  if (given.device().kind != DeviceKind::cuda) throw;
  given.log(LogLevel::info, "recall is measured on the CPU: the GPU has no memory left for the graph and its rows");
  return measure_beams(state, seed, given.with_device(Device::cpu()));
}

}  // namespace kith
