// What one call costs in C++: a single query against a Flat index of some vectors, or against an index in a file.
// bench/python_call.py runs it for the column beside its own.
//
//   call_bench (--base FILE | --index FILE) --queries FILE [--device cpu|cuda:N] [--calls N] [--probes N] [--threads N]
//              [--k 10]
//
// Prints a line for each place of query and results, its name and the median microseconds of a call, the wait for its
// results included; each call has the next of the queries, on a GPU the first. In a GPU's memory the call works on the
// legacy default stream, as torch and cupy do.
#include <kith/kith.hpp>

#include "cuda/device_memory.hpp"
#include "options.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace kith;

template <typename Call>
void measure(const char* name, int64_t calls, const Call& call) {
  std::vector<double> times;
  for (int64_t i = -calls / 10 - 1; i < calls; ++i) {  // the first do not count
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (i >= 0) times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%s\t%.2f\n", name, times[times.size() / 2]);
}

void run(const Options& given) {
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
  measure("host", calls, [&] {
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
  measure("device", calls, [&] {
    index.search(there, out, params, resources);
    wait_for_stream(device.index, resources);
  });
  resources = resources.with_stream(nullptr);  // which is waited for
  measure("device, on Kith's stream", calls, [&] { index.search(there, out, params, resources); });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argc, argv, {"--base", "--index", "--queries", "--device", "--calls", "--probes", "--threads", "--k"}});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "call_bench: %s\n", error.what());
    return 1;
  }
}
