// SmoothPaths: the time to build, for widths and for paths, in a made graph or one from files.
//
//   kith_bench paths [--rows N] [--k N] [--cols N] [--threads N] [--pairs N] [--seed N] [--ids FILE --distances FILE]
//                    [--device cpu|cuda:N] [--cpu-threads N]
//
// On a GPU the graph lies there, and it is built three times: the first wakes the device. With --cpu-threads so many
// threads of the CPU take their turn, too.
//
// The made graph is a k-NN graph of uniform points in few columns: each point's nearest among those beside it in five
// shifted Z-orders, with true distances. That is quick to make, has real neighbourhoods, and its rows lie in no order.
#include <kith/kith.hpp>
#include <kith/smooth_paths.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "driver/benchmark.hpp"
#include "driver/timing.hpp"
#include "paths/boruvka.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kith;

struct Settings {
  int64_t rows = 10'000'000;
  int64_t k = 15;
  int64_t cols = 8;
  int64_t pairs = 1000;
  uint64_t seed = 0;
};

// The bits of all coordinates in turn, highest first.
uint64_t z_order(const float* point, int64_t cols, float shift) {
  const int64_t bits = 64 / cols;
  uint64_t code = 0;
  for (int64_t bit = bits - 1; bit >= 0; --bit) {
    for (int64_t j = 0; j < cols; ++j) {
      const auto place = static_cast<uint64_t>(0.5f * (point[j] + shift) * static_cast<float>(uint64_t{1} << bits));
      code = code << 1 | (place >> bit & 1);
    }
  }
  return code;
}

// Distances are written as keys, in packed neighbours that begin as padding.
void offer_in_order(const HostArray<float>& points, float shift, const Settings& settings,
                    const HostArray<uint64_t>& lists, const Resources& resources) {
  const int64_t cols = settings.cols;
  std::vector<std::pair<uint64_t, uint32_t>> order(static_cast<size_t>(settings.rows));
  for_row_blocks("order", settings.rows, resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      order[static_cast<size_t>(i)] = {z_order(points.data() + i * cols, cols, shift), static_cast<uint32_t>(i)};
    }
  });
  std::sort(order.begin(), order.end());
  for_row_blocks("offer", settings.rows, resources, [&](int64_t first, int64_t end) {
    std::vector<uint64_t> found;
    for (int64_t at = first; at < end; ++at) {
      const int64_t row = order[static_cast<size_t>(at)].second;
      uint64_t* const list = lists.data() + row * settings.k;
      found.assign(list, list + settings.k);
      for (int64_t near = std::max<int64_t>(at - settings.k, 0); near <= std::min(at + settings.k, settings.rows - 1);
           ++near) {
        if (near == at) continue;
        const uint32_t other = order[static_cast<size_t>(near)].second;
        float sum = 0;
        for (int64_t j = 0; j < cols; ++j) {
          const float difference = points[row * cols + j] - points[static_cast<int64_t>(other) * cols + j];
          sum += difference * difference;
        }
        found.push_back(pack_neighbor(ordered_key(std::sqrt(sum)), other));
      }
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      while (static_cast<int64_t>(found.size()) < settings.k) found.push_back(kPadding);
      std::copy_n(found.begin(), settings.k, list);
    }
  });
}

KnnGraph made_graph(const Settings& settings, const Resources& resources) {
  const CounterRng random(settings.seed, 0);
  const HostArray<float> points(settings.rows * settings.cols, "points", resources);
  for_row_blocks("points", settings.rows, resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first * settings.cols; i < end * settings.cols; ++i) {
      points[i] = random.uniform(static_cast<uint64_t>(i));
    }
  });
  const HostArray<uint64_t> lists(settings.rows * settings.k, "lists", resources);
  std::fill(lists.begin(), lists.end(), kPadding);
  for (const float shift : {0.0f, 0.2f, 0.4f, 0.6f, 0.8f}) offer_in_order(points, shift, settings, lists, resources);
  Neighbors neighbors(settings.rows, settings.k, resources);
  for (int64_t i = 0; i < lists.size(); ++i) {
    neighbors.view().ids[i] = lists[i] == kPadding ? -1 : row_of(lists[i]);
    neighbors.view().distances[i] = key_of_ordered(ordered_of(lists[i]));
  }
  return {std::move(neighbors), Metric::l2, resources};
}

KnnGraph read_graph(const std::string& ids, const std::string& distances, const Resources& resources) {
  const IdFile file(ids);
  const MatrixBuffer lengths = read_vectors(distances, {}, DType::f32, resources);
  Neighbors neighbors(file.rows(), file.cols(), resources);
  file.read(0, file.rows(), neighbors.view().ids);
  std::copy_n(reinterpret_cast<const float*>(lengths.view().data()), file.rows() * file.cols(),
              neighbors.view().distances);
  return {std::move(neighbors), Metric::l2, resources};
}

struct Sorted {
  std::vector<double> values;
  double at(double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  }
};

bench::Row timed(const std::string& name, const bench::Watch& watch) {
  const bench::Seconds seconds = watch.seconds();
  return {.name = name,
          .ms = 1e3 * seconds.wall,
          .clock = "wall",
          .figures = {{"ms of processors", 1e3 * seconds.processor}}};
}

void measure(const KnnGraph& graph, const Settings& settings, const Resources& resources, bench::Report& report) {
  if (!graph.space().host_readable()) {
    for (int i = 0; i < 3; ++i) {
      const bench::Watch again;
      const SmoothPaths paths(graph, resources);
      report.row(timed("SmoothPaths, run " + std::to_string(i), again));
    }
  } else {
    const bench::Watch listing;
    const EdgeLists edges(graph, {}, resources);
    report.row(timed("edges both ways", listing));
    const bench::Watch joining;
    const MergeTree tree = boruvka(edges, resources);
    bench::Row row = timed("Boruvka", joining);
    row.figures.emplace_back("parts", tree.parts());
    report.row(row);
  }
  const bench::Watch building;
  const SmoothPaths paths(graph, resources);
  bench::Row built = timed("SmoothPaths", building);
  built.shape = std::to_string(graph.rows()) + " rows, k = " + std::to_string(graph.k());
  report.row(built);

  const CounterRng random(settings.seed, 1);
  const int64_t many = 1'000'000;
  std::vector<int64_t> pairs(static_cast<size_t>(2 * many));
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = random.below(i, static_cast<uint32_t>(graph.rows()));
  std::vector<float> widths(static_cast<size_t>(many));
  for (const char* name : {"1M widths", "1M widths again"}) {
    const bench::Watch all;
    paths.widths(pairs.data(), many, widths.data(), resources);
    report.row(timed(name, all));
  }
  const bench::Watch single;
  double sum = 0;
  for (int64_t i = 0; i < many; ++i) {
    sum += static_cast<double>(paths.width(pairs[static_cast<size_t>(2 * i)], pairs[static_cast<size_t>(2 * i + 1)]));
  }
  bench::Row one_by_one = timed("1M widths, one by one", single);
  one_by_one.figures.emplace_back("mean", sum / static_cast<double>(many));
  report.row(one_by_one);

  const bench::Watch first;
  (void)paths.path(pairs[0], pairs[1], PathBy::steps, resources);
  report.row(timed("the first path by steps", first));
  for (const PathBy by : {PathBy::steps, PathBy::tree}) {
    Sorted wall;
    Sorted processor;
    Sorted steps;
    for (int64_t i = 0; i < settings.pairs; ++i) {
      const bench::Watch watch;
      const SmoothPath path =
          paths.path(pairs[static_cast<size_t>(2 * i)], pairs[static_cast<size_t>(2 * i + 1)], by, resources);
      const bench::Seconds seconds = watch.seconds();
      wall.values.push_back(1e3 * seconds.wall);
      processor.values.push_back(1e3 * seconds.processor);
      steps.values.push_back(static_cast<double>(path.size - 1));
    }
    report.row({.name = "path by " + std::string(name_of(by)),
                .ms = wall.at(0),
                .median_ms = wall.at(0.5),
                .runs = settings.pairs,
                .clock = "wall",
                .figures = {{"nine of ten ms", wall.at(0.9)},
                            {"worst ms", wall.at(1)},
                            {"ms of processors", processor.at(0.5)},
                            {"nine of ten ms of processors", processor.at(0.9)},
                            {"worst ms of processors", processor.at(1)},
                            {"steps", steps.at(0.5)},
                            {"most steps", steps.at(1)}}});
  }
}

void run(const bench::Options& given, bench::Report& report) {
  Settings settings;
  settings.rows = given.number("--rows", settings.rows);
  settings.k = given.number("--k", settings.k);
  settings.cols = given.number("--cols", settings.cols);
  settings.pairs = given.number("--pairs", settings.pairs);
  settings.seed = static_cast<uint64_t>(given.number("--seed", 0));
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = static_cast<int>(given.number("--threads", 0));
  const Resources resources(options);
  const bench::Watch making;
  const KnnGraph graph = given.text("--ids").empty()
                             ? made_graph(settings, resources)
                             : read_graph(given.text("--ids"), given.text("--distances"), resources);
  report.row(timed("the graph", making));
  report.note(std::to_string(resources.threads()) + " threads");
  const Device device = parse_device(given.text("--device", "cpu"));
  if (device == Device::cpu()) {
    measure(graph, settings, resources, report);
  } else {
    const Resources there = resources.with_device(device);
    measure(graph.to(MemorySpace::cuda(device.index), there), settings, there, report);
  }
  if (const int64_t few = given.number("--cpu-threads", 0); few > 0) {
    options.threads = static_cast<int>(few);
    report.note(std::to_string(few) + " threads of the CPU");
    measure(graph, settings, Resources(options), report);
  }
}

const bench::Registered known({
    .name = "paths",
    .about = "SmoothPaths: the time to build, for widths and for paths",
    .options = {"--rows", "--k", "--cols", "--threads", "--pairs", "--seed", "--ids", "--distances", "--device",
                "--cpu-threads"},
    .run = run,
});

}  // namespace
