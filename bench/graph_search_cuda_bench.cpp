// Search of a graph index on a GPU, queries and results in host memory: milliseconds for 1 to 10,000 queries at once,
// every call with other queries than the one before; beside them lists (IVF) at the probes of equal recall, exact
// search, and the CPU. Rows: Gaussian of 24 dimensions that become ever narrower, turned into 128, with some noise, in
// bytes or f32: at 80,000 rows a graph finds as much of their neighbours as of SIFT's with an equal beam. Or of a file.
//
//   graph_search_cuda_bench [--rows 1000000] [--cols 128] [--factory Graph32] [--floats 1] [--beam 0,...] [--width 2,...]
//                           [--cpu 1] [--ivf 1]
//                           [--file graph.kith] [--profile 1] [--raw rows.u8] [--build-cpu 1] [--add 0] [--out FILE]
//
// --build-cpu: the graph is built on the CPU, else on the GPU, where the second build is timed. Notes have its stages.
// --raw: rows of bytes one after the other, the last 4,000 of which are queries. --file: where the index is kept from
// run to run. --add: so many rows more are added to copies of the graph, timed, before the searches. --profile: a call
// of 1, 100, 1,000 and 10,000 queries each, for a profiler.
#include "driver/benchmark.hpp"
#include "graph_rows.hpp"

#include <kith/device.hpp>
#include <kith/index.hpp>
#include <kith/knn.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace kith;
using bench::made_rows;
using bench::Rows;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Rows of bytes, one after the other, in a file.
Rows read_rows(const std::string& path, int64_t cols, int64_t first, int64_t count) {
  Rows rows;
  rows.cols = cols;
  rows.bytes.resize(static_cast<size_t>(count * cols));
  std::ifstream file(path, std::ios::binary);
  file.seekg(first * cols);
  file.read(reinterpret_cast<char*>(rows.bytes.data()), count * cols);
  return rows;
}

// With a report, what the log says of the stages of a call becomes notes.
Resources resources_on(Device device, bench::Report* report = nullptr) {
  ResourceOptions options;
  options.device = device;
  if (report != nullptr) {
    options.log = [report](LogLevel level, std::string_view text) {
      if (level == LogLevel::debug) report->note(std::string(text));
    };
  }
  return Resources(options);
}

// "48,64": 48 and 64.
std::vector<int64_t> numbers_in(const std::string& text) {
  std::vector<int64_t> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stoll(part));
  return numbers;
}

double recall_of(const Neighbors& found, const Neighbors& truth) {
  int64_t right = 0;
  for (int64_t q = 0; q < found.queries(); ++q) {
    const float last = truth.distances(q)[found.k() - 1];
    for (int64_t i = 0; i < found.k(); ++i) right += found.distances(q)[i] <= last ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(found.queries() * found.k());
}

// Median and least milliseconds of calls with `batch` queries each, which go through all queries.
struct CallTimes {
  double median;
  double least;
  int64_t runs;
};
template <typename Search>
CallTimes times_of(const MatrixView& queries, int64_t batch, const Search& search) {
  const int64_t batches = queries.rows() / batch;
  const int64_t runs = std::clamp<int64_t>(batches, 7, 300);
  std::vector<double> times;
  for (int64_t run = -3; run < runs; ++run) {
    const MatrixView some = queries.slice((run + 3) % batches * batch, batch);
    const double start = now();
    search(some);
    if (run >= 0) times.push_back(1e3 * (now() - start));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), runs};
}

// A row for each batch that there are queries for.
template <typename Search>
void add_batches(bench::Report& report, const std::string& name, const std::string& shape, const MatrixView& queries,
                 const std::vector<int64_t>& batches, double recall, const char* answers, const Resources& resources,
                 const Search& search) {
  for (const int64_t batch : batches) {
    if (batch > queries.rows()) continue;
    Neighbors out(batch, 10, resources);
    const CallTimes times = times_of(queries, batch, [&](const MatrixView& asked) { search(asked, out.view()); });
    bench::Row row{.name = name + ", " + std::to_string(batch) + " queries",
                   .shape = shape,
                   .ms = times.least,
                   .median_ms = times.median,
                   .runs = times.runs,
                   .clock = "wall",
                   .figures = {{"recall", recall}}};
    if (answers != nullptr) row.labels.emplace_back("answers", answers);
    report.row(row);
  }
}

void run(const bench::Options& options, bench::Report& report) {
  int64_t count = options.number("--rows", 1000000);
  const int64_t cols = options.number("--cols", 128);
  std::vector<int64_t> beams = numbers_in(options.text("--beam"));  // none: the default and twice that
  const std::vector<int64_t> widths = numbers_in(options.text("--width", "2"));
  const std::string factory = options.text("--factory", "Graph32");
  const bool floats = options.number("--floats", 0) != 0;
  const bool with_cpu = options.number("--cpu", 0) != 0;
  const bool with_ivf = options.number("--ivf", 0) != 0;
  const bool profile = options.number("--profile", 0) != 0;
  const bool build_cpu = options.number("--build-cpu", 0) != 0;
  const int64_t added = options.number("--add", 0);
  const std::string file = options.text("--file");
  const std::string raw = options.text("--raw");
  report.note(cuda_devices().front().name);
  const Resources gpu = resources_on(Device::cuda(0));
  const Resources cpu = resources_on(Device::cpu());
  const Resources gpu_telling = resources_on(Device::cuda(0), &report);
  const Resources cpu_telling = resources_on(Device::cpu(), &report);
  constexpr int64_t kFileQueries = 4000;
  constexpr int64_t kFirstBuilt = 1000000;  // rows of the build that wakes the device
  const int64_t in_file = raw.empty() ? 0 : static_cast<int64_t>(std::filesystem::file_size(raw)) / cols;
  if (!raw.empty()) count = in_file - kFileQueries;
  const Rows base = raw.empty() ? made_rows(profile ? 1 : count, cols, 1, floats) : read_rows(raw, cols, 0, count);
  const Rows queries = raw.empty() ? made_rows(10000, cols, 2, floats) : read_rows(raw, cols, count, kFileQueries);
  const Neighbors truth = knn(queries.view(), base.view(), {.k = 10}, gpu);

  double start = now();
  double built = 0;  // a file's graph was built before
  const bool saved = !file.empty() && std::filesystem::exists(file);
  Index index = saved ? Index::load(file, gpu) : Index(factory, {});
  if (!saved) {
    if (!index.trained()) index.train(base.view(), gpu);
    // On a GPU a first build waits for the device to wake; the second one counts.
    if (!build_cpu) {
      Index first(factory, {});
      const MatrixView some = base.view().slice(0, std::min(count, kFirstBuilt));
      if (!first.trained()) first.train(some, gpu);
      first.add(some, Ownership::copy, gpu);
    }
    start = now();
    index.add(base.view(), Ownership::copy, build_cpu ? cpu_telling : gpu_telling);
    built = now() - start;
    if (!file.empty()) index.save(file, gpu);
  }
  const IndexInfo info = index.info();
  const std::string shape = std::to_string(count) + " x " + std::to_string(cols) + (floats ? " f32" : " u8");
  report.row({.name = factory + ", build",
              .shape = shape,
              .ms = 1e3 * built,
              .clock = "wall",
              .figures = {{"lost", static_cast<double>(info.lost)}, {"beam", static_cast<double>(info.beam)}}});
  start = now();
  (void)index.search(queries.view().slice(0, 1), {.k = 10}, gpu);
  report.row({.name = factory + ", first search, with the copy to the GPU",
              .shape = shape,
              .ms = 1e3 * (now() - start),
              .clock = "wall"});
  if (profile) {
    for (const int64_t batch : {1, 100, 1000, 10000}) {
      (void)index.search(queries.view().slice(0, batch), {.k = 10, .beam = beams.empty() ? 0 : beams[0]}, gpu);
    }
    return;
  }
  if (added > 0) {
    const Rows more = made_rows(added, cols, 3, floats);
    for (int round = 0; round < 2; ++round) {
      Index grown = index.clone();
      start = now();
      grown.add(more.view(), Ownership::copy, gpu_telling);
      const double seconds = now() - start;
      start = now();
      (void)grown.search(queries.view().slice(0, 1), {.k = 10}, gpu);
      report.row({.name = factory + ", " + std::to_string(added) + " rows added, round " + std::to_string(round),
                  .shape = shape,
                  .ms = 1e3 * seconds,
                  .clock = "wall",
                  .figures = {{"next_search_ms", 1e3 * (now() - start)}}});
    }
  }
  if (beams.empty()) beams = {info.beam, 2 * info.beam};
  std::vector<SearchParams> wanted;
  for (const int64_t beam : beams) {
    for (const int64_t width : widths) wanted.push_back({.k = 10, .beam = beam, .width = width});
  }
  for (const SearchParams& params : wanted) {
    const Neighbors found = index.search(queries.view(), params, gpu);
    const Neighbors some = index.search(queries.view().slice(0, 500), params, cpu);
    const bool same = std::memcmp(some.ids(), found.ids(), 5000 * sizeof(int64_t)) == 0 &&
                      std::memcmp(some.distances(), found.distances(), 5000 * sizeof(float)) == 0;
    const double recall = recall_of(found, truth);
    const std::string name =
        factory + ", beam " + std::to_string(params.beam) + ", width " + std::to_string(params.width);
    const std::vector<int64_t> batches = {1, 10, 100, 1000, 10000};
    add_batches(report, name, shape, queries.view(), batches, recall,
                same ? "those of the CPU" : "OTHERS THAN ON THE CPU", gpu,
                [&](const MatrixView& asked, const NeighborsView& out) { index.search(asked, out, params, gpu); });
    if (!with_cpu) continue;
    const auto on_cpu = [&](const MatrixView& asked, const NeighborsView& out) {
      index.search(asked, out, params, cpu);
    };
    const MatrixView some_queries = queries.view().slice(0, std::min<int64_t>(1000, queries.view().rows()));
    add_batches(report, name + ", on the CPU", shape, some_queries, {1, 100}, recall, nullptr, cpu, on_cpu);
    add_batches(report, name + ", on the CPU", shape, queries.view(), {10000}, recall, nullptr, cpu, on_cpu);
  }
  if (!with_ivf) return;
  const std::vector<int64_t> batches = {1, 10, 100, 1000, 10000};
  {
    Index flat("Flat", {});
    flat.add(base.view(), Ownership::copy, gpu);
    const Index there = flat.to(Device::cuda(0), gpu);
    add_batches(report, "Flat, exact", shape, queries.view(), batches, 1, nullptr, gpu,
                [&](const MatrixView& asked, const NeighborsView& out) { there.search(asked, out, {.k = 10}, gpu); });
  }
  Index lists("IVF4096,Flat", {});
  lists.train(base.view(), gpu);
  lists.add(base.view(), Ownership::copy, gpu);
  for (const int64_t probes : {4, 8, 16, 32, 64}) {
    const SearchParams params{.k = 10, .probes = probes};
    const double recall = recall_of(lists.search(queries.view(), params, gpu), truth);
    add_batches(report, "IVF4096,Flat, " + std::to_string(probes) + " probes", shape, queries.view(), batches, recall,
                nullptr, gpu,
                [&](const MatrixView& asked, const NeighborsView& out) { lists.search(asked, out, params, gpu); });
    if (recall > 0.95) break;
  }
}

const kith::bench::Registered known({.name = "graph_search_cuda",
                                     .about = "searches of a graph index on a GPU, by batch and beam",
                                     .options = {"--rows", "--cols", "--factory", "--floats", "--beam", "--width",
                                                 "--cpu", "--ivf", "--file", "--profile", "--raw", "--build-cpu",
                                                 "--add"},
                                     .needs_gpu = true,
                                     .run = &run});

}  // namespace
