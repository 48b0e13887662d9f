// Search of a graph index on a GPU, queries and results in host memory: milliseconds for 1 to 10,000 queries at once,
// every call with other queries than the one before; beside them lists (IVF) at the probes of equal recall, exact
// search, and the CPU. Rows: Gaussian of 24 dimensions that become ever narrower, turned into 128, with some noise, in
// bytes or f32: at 80,000 rows a graph finds as much of their neighbours as of SIFT's with an equal beam. Or of a file.
//
//   graph_search_cuda_bench [--rows 1000000] [--cols 128] [--factory Graph32] [--floats] [--beam 0,...] [--width 2,...]
//                           [--cpu] [--ivf]
//                           [--file graph.kith] [--profile] [--raw rows.u8] [--build-cpu] [--add 0]
//
// --build-cpu: the graph is built on the CPU, else on the GPU, where the second build is timed.
// --raw: rows of bytes one after the other, the last 4,000 of which are queries. --file: where the index is kept from
// run to run. --add: so many rows more are added to copies of the graph, timed, before the searches. --profile: a call of
// 1, 100, 1,000 and 10,000 queries each, for a profiler.
#include "driver/benchmark.hpp"
#include "graph_rows.hpp"

#include <kith/index.hpp>
#include <kith/knn.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
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

Resources resources_on(Device device, bool tells = false) {
  ResourceOptions options;
  options.device = device;
  if (tells) {
    options.log = [](LogLevel level, std::string_view text) {
      if (level == LogLevel::debug) std::printf("  %.*s\n", static_cast<int>(text.size()), text.data());
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
template <typename Search>
std::pair<double, double> times_of(const MatrixView& queries, int64_t batch, const Search& search) {
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
  return {times[times.size() / 2], times.front()};
}

int program(int argc, char** argv) {
  int64_t count = 1000000;
  int64_t cols = 128;
  std::vector<int64_t> beams;  // none: the default and twice that
  std::vector<int64_t> widths = {2};
  std::string factory = "Graph32";
  bool floats = false;
  bool with_cpu = false;
  bool with_ivf = false;
  bool profile = false;
  bool build_cpu = false;
  int64_t added = 0;
  std::string file;
  std::string raw;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (name == "--rows") count = std::stoll(value());
    if (name == "--cols") cols = std::stoll(value());
    if (name == "--beam") beams = numbers_in(value());
    if (name == "--width") widths = numbers_in(value());
    if (name == "--factory") factory = value();
    if (name == "--floats") floats = true;
    if (name == "--cpu") with_cpu = true;
    if (name == "--ivf") with_ivf = true;
    if (name == "--profile") profile = true;
    if (name == "--build-cpu") build_cpu = true;
    if (name == "--file") file = value();
    if (name == "--raw") raw = value();
    if (name == "--add") added = std::stoll(value());
  }
  const Resources gpu = resources_on(Device::cuda(0));
  const Resources cpu = resources_on(Device::cpu());
  const Resources gpu_telling = resources_on(Device::cuda(0), true);
  const Resources cpu_telling = resources_on(Device::cpu(), true);
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
  std::printf("%s of %ld x %ld %s: built in %.2f s, lost %ld, default beam %ld\n", factory.c_str(),
              static_cast<long>(count), static_cast<long>(cols), floats ? "f32" : "u8", built,
              static_cast<long>(info.lost), static_cast<long>(info.beam));
  start = now();
  (void)index.search(queries.view().slice(0, 1), {.k = 10}, gpu);
  std::printf("first search, with the copy to the GPU: %.1f ms\n", 1e3 * (now() - start));
  if (profile) {
    for (const int64_t batch : {1, 100, 1000, 10000}) {
      (void)index.search(queries.view().slice(0, batch), {.k = 10, .beam = beams.empty() ? 0 : beams[0]}, gpu);
    }
    return 0;
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
      std::printf("%ld rows added in %.3f s, the next search %.1f ms\n", static_cast<long>(added), seconds,
                  1e3 * (now() - start));
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
    std::printf("beam %4ld width %ld recall %.4f %s |", static_cast<long>(params.beam), static_cast<long>(params.width),
                recall_of(found, truth), same ? "= CPU" : "OTHER THAN ON THE CPU");
    for (const int64_t batch : {1, 10, 100, 1000, 10000}) {
      if (batch > queries.view().rows()) continue;
      Neighbors out(batch, 10, gpu);
      const auto [median, least] = times_of(
          queries.view(), batch, [&](const MatrixView& asked) { index.search(asked, out.view(), params, gpu); });
      std::printf(" %ld: %.3f (%.3f)", static_cast<long>(batch), median, least);
    }
    std::printf(" ms, median (least)\n");
    if (!with_cpu) continue;
    for (const int64_t batch : {1, 100, 10000}) {
      if (batch > queries.view().rows()) continue;
      Neighbors out(batch, 10, cpu);
      const auto [median, least] =
          times_of(queries.view().slice(0, batch == 10000 ? 10000 : 1000), batch,
                   [&](const MatrixView& asked) { index.search(asked, out.view(), params, cpu); });
      std::printf("  on the CPU, %ld: %.3f (%.3f)\n", static_cast<long>(batch), median, least);
    }
  }
  if (!with_ivf) return 0;
  {
    Index flat("Flat", {});
    flat.add(base.view(), Ownership::copy, gpu);
    const Index there = flat.to(Device::cuda(0), gpu);
    std::printf("Flat, exact |");
    for (const int64_t batch : {1, 10, 100, 1000, 10000}) {
      if (batch > queries.view().rows()) continue;
      Neighbors out(batch, 10, gpu);
      const auto [median, least] = times_of(
          queries.view(), batch, [&](const MatrixView& asked) { there.search(asked, out.view(), {.k = 10}, gpu); });
      std::printf(" %ld: %.3f", static_cast<long>(batch), median);
    }
    std::printf(" ms\n");
  }
  Index lists("IVF4096,Flat", {});
  lists.train(base.view(), gpu);
  lists.add(base.view(), Ownership::copy, gpu);
  for (const int64_t probes : {4, 8, 16, 32, 64}) {
    const SearchParams params{.k = 10, .probes = probes};
    const Neighbors found = lists.search(queries.view(), params, gpu);
    std::printf("IVF4096,Flat %2ld probes recall %.4f |", static_cast<long>(probes), recall_of(found, truth));
    for (const int64_t batch : {1, 10, 100, 1000, 10000}) {
      if (batch > queries.view().rows()) continue;
      Neighbors out(batch, 10, gpu);
      const auto [median, least] = times_of(
          queries.view(), batch, [&](const MatrixView& asked) { lists.search(asked, out.view(), params, gpu); });
      std::printf(" %ld: %.3f", static_cast<long>(batch), median);
    }
    std::printf(" ms\n");
    if (recall_of(found, truth) > 0.95) break;
  }
  return 0;
}

const kith::bench::Registered known(
    {.name = "graph_search_cuda", .about = "searches of a graph index on a GPU, by batch and beam", .program = &program});

}  // namespace
