// What one call costs in C++: a single query against a Flat index of some vectors, or against an index in a file.
// bench/python_call.py runs it for the column beside its own.
//
//   kith_bench call (--base FILE | --index FILE) --queries FILE [--device cpu|cuda:N] [--calls N] [--probes N] [--threads N]
//                   [--k 10]
//
// A case for each place of query and results: a call with the wait for its results. Each call has the next of the
// queries, on a GPU the first. In a GPU's memory the call works on the legacy default stream, as torch and cupy do.
#include <kith/kith.hpp>

#include "cuda/device_memory.hpp"
#include "driver/benchmark.hpp"
#include "driver/timing.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace kith;

template <typename Call>
void measure(bench::Report& report, const char* name, int64_t calls, const Call& call) {
  std::vector<double> times;
  for (int64_t i = -calls / 10 - 1; i < calls; ++i) {  // the first do not count
    const double seconds = bench::seconds_of(call).wall;
    if (i >= 0) times.push_back(1e3 * seconds);
  }
  std::sort(times.begin(), times.end());
  report.row({.name = name,
              .ms = times.front(),
              .median_ms = times[times.size() / 2],
              .runs = calls,
              .clock = "wall"});
}

void run(const bench::Options& given, bench::Report& report) {
  const Device device = parse_device(given.text("--device", "cpu"));
  const int64_t calls = std::max<int64_t>(1, given.number("--calls", 1000));
  ResourceOptions options;
  options.device = device;
  options.threads = static_cast<int>(given.number("--threads", 0));
  Resources resources(options);
  const std::string file = given.text("--index", "");
  const MatrixBuffer base = file.empty() ? read_vectors(given.text("--base")) : MatrixBuffer();
  const MatrixBuffer queries = read_vectors(given.text("--queries"));
  const MatrixView query = queries.view().slice(0, 1);
  Index index = file.empty() ? Index("Flat") : Index::load(file, resources);
  if (file.empty()) index.add(base.view(), Ownership::borrow, resources);
  const int64_t k = given.number("--k", 10);
  Neighbors found(1, k, resources);
  const SearchParams params{.k = k, .probes = given.number("--probes", 0)};
  int64_t next = 0;
  measure(report, "host", calls, [&] {
    index.search(queries.view().slice(next, 1), found.view(), params, resources);
    if (++next == queries.view().rows()) next = 0;
  });
  if (device.kind != DeviceKind::cuda) return;

  constexpr uintptr_t kLegacyStream = 1;
  resources = resources.with_stream(reinterpret_cast<void*>(kLegacyStream));
  const int64_t query_bytes = query.cols() * size_of(query.dtype());
  const auto query_memory = allocate_on_device(query_bytes, "a query", device.index, resources);
  const auto ids = allocate_on_device(k * 8, "ids", device.index, resources);
  const auto distances = allocate_on_device(k * 4, "distances", device.index, resources);
  copy_to_device(query, query_memory.get(), device.index, resources);
  const MemorySpace space = MemorySpace::cuda(device.index);
  const MatrixView there(query_memory.get(), query.dtype(), {1, query.cols(), query.cols()}, space);
  const NeighborsView out{reinterpret_cast<int64_t*>(ids.get()), reinterpret_cast<float*>(distances.get()), 1, k,
                          space};
  measure(report, "device", calls, [&] {
    index.search(there, out, params, resources);
    wait_for_stream(device.index, resources);
  });
  resources = resources.with_stream(nullptr);  // which is waited for
  measure(report, "device, on Kith's stream", calls, [&] { index.search(there, out, params, resources); });
}

const bench::Registered known({
    .name = "call",
    .about = "one query against a Flat index, or an index in a file: what a call costs",
    .options = {"--base", "--index", "--queries", "--device", "--calls", "--probes", "--threads", "--k"},
    .run = run,
});

}  // namespace
