// What a call with one query takes on a GPU, in C++: k = 10 of a mixture (mixture_rows_cuda.hpp), 2,048 lists, 32 of
// them looked at. bench/short_calls_cuda.py measures the same calls from Python.
//
//   short_calls_cuda_bench [--rows N] [--cols 128] [--calls N] [--only Flat|knn|lists] [--out FILE]
//
// Milliseconds of a call by the clock of the host, the wait for its results included: the median, and what one call in
// twenty stays below. On the host query and results lie in ordinary memory; on the device both lie there, and the call
// works on the legacy default stream, as torch's and cupy's do.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "mixture_rows_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kNeighbors = 10;

struct Goal {
  std::string call;
  int64_t cols;
  double milliseconds;
};

// Milliseconds that a call from C++ should take, if there is a goal.
std::optional<double> goal_of(const std::string& call, int64_t cols) {
  const std::vector<Goal> goals = {
      {"Flat, host", 128, 0.09},          {"Flat, host", 768, 0.3},           {"Flat, host", 1536, 0.6},
      {"knn, device", 128, 0.15},         {"knn, device", 768, 0.85},         {"knn, device", 1536, 1.7},
      {"IVF2048,Flat, host", 128, 0.07},  {"IVF2048,SQ8, host", 128, 0.07},   {"IVF2048,PQ16, host", 128, 0.07},
      {"IVF2048,Flat, host", 768, 0.12},  {"IVF2048,PQ96, host", 768, 0.12},  {"IVF2048,Flat, host", 1536, 0.15},
      {"IVF2048,PQ192, host", 1536, 0.15}};
  for (const Goal& goal : goals) {
    if (goal.call == call && goal.cols == cols) return goal.milliseconds;
  }
  return {};
}

class Bench {
 public:
  Bench(const bench::Options& options, bench::Report& report)
      : report_(report),
        rows_(options.number("--rows", 1'000'000)),
        cols_(options.number("--cols", 128)),
        calls_(std::max<int64_t>(1, options.number("--calls", 400))),
        only_(options.text("--only")),
        base_(static_cast<size_t>(rows_ * cols_) * sizeof(float)),
        query_(static_cast<size_t>(cols_) * sizeof(float)),
        ids_(kNeighbors * sizeof(int64_t)),
        distances_(kNeighbors * sizeof(float)),
        host_query_(static_cast<size_t>(cols_)) {
    ResourceOptions wanted;
    wanted.device = Device::cuda(0);
    resources_ = Resources(wanted);
    const mixture::OnDevice made(cols_);
    made.fill(1, 0, rows_, base_.as<float>());
    made.fill(2, 0, 1, query_.as<float>());
    check(cudaMemcpy(host_query_.data(), query_.as<float>(), host_query_.size() * sizeof(float), cudaMemcpyDefault));
    report_.note(cuda_devices().front().name);
  }

  void run() const {
    if (wanted("knn")) {
      Resources there = on_default_stream();
      measure("knn, device", [&] {
        knn(query_there(), base_there(), results_there(), {kNeighbors, Metric::l2}, there);
        check(cudaStreamSynchronize(cudaStreamLegacy));
      });
    }
    if (wanted("Flat")) search("Flat", 0);
    if (!wanted("lists")) return;
    for (const std::string& code : {std::string("Flat"), std::string("SQ8"), "PQ" + std::to_string(cols_ / 8)}) {
      search("IVF2048," + code, 32);
    }
  }

 private:
  bool wanted(const std::string& part) const { return only_.empty() || only_ == part; }
  MatrixView base_there() const { return {base_.as<float>(), DType::f32, {rows_, cols_, cols_}, MemorySpace::cuda(0)}; }
  MatrixView query_there() const { return {query_.as<float>(), DType::f32, {1, cols_, cols_}, MemorySpace::cuda(0)}; }
  NeighborsView results_there() const {
    return {ids_.as<int64_t>(), distances_.as<float>(), 1, kNeighbors, MemorySpace::cuda(0)};
  }
  Resources on_default_stream() const {
    constexpr uintptr_t kLegacyStream = 1;
    return resources_.with_stream(reinterpret_cast<void*>(kLegacyStream));
  }

  void search(const std::string& kind, int64_t probes) const {
    Index index(kind);
    if (probes > 0) index.train(base_there().slice(0, std::min<int64_t>(rows_, 131072)), resources_);
    index.add(base_there(), Ownership::borrow, resources_);
    SearchParams params;
    params.k = kNeighbors;
    params.probes = probes;
    Neighbors found(1, kNeighbors, resources_);
    const MatrixView here(host_query_.data(), 1, cols_);
    measure(kind + ", host", [&] { index.search(here, found.view(), params, resources_); });
    Resources there = on_default_stream();
    measure(kind + ", device", [&] {
      index.search(query_there(), results_there(), params, there);
      check(cudaStreamSynchronize(cudaStreamLegacy));
    });
  }

  template <typename Call>
  void measure(const std::string& name, const Call& call) const {
    std::vector<double> times;
    for (int64_t i = -calls_ / 10 - 1; i < calls_; ++i) {  // the first do not count
      const auto start = std::chrono::steady_clock::now();
      call();
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
      if (i >= 0) times.push_back(time.count());
    }
    std::sort(times.begin(), times.end());
    bench::Row row{.name = name + ", " + std::to_string(cols_) + " columns",
                   .shape = "one query of " + std::to_string(rows_) + " x " + std::to_string(cols_),
                   .median_ms = times[times.size() / 2],
                   .runs = calls_,
                   .clock = "wall",
                   .figures = {{"one_in_twenty_ms", times[times.size() / 20]}}};
    if (const std::optional<double> goal = goal_of(name, cols_)) row.figures.emplace_back("goal_ms", *goal);
    report_.row(row);
  }

  bench::Report& report_;
  const int64_t rows_, cols_, calls_;
  const std::string only_;
  const DeviceBytes base_, query_, ids_, distances_;
  std::vector<float> host_query_;
  Resources resources_;
};

const kith::bench::Registered known(
    {.name = "short_calls_cuda",
     .about = "calls with one query on a GPU",
     .options = {"--rows", "--cols", "--calls", "--only"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { Bench(options, report).run(); }});

}  // namespace
