// Where the time of one query of a graph index on a GPU goes: the parts of its walk by the clock of the multiprocessor
// (the first warp's, which every other one waits for), how often each comes, and beside that whole calls: an empty
// kernel, the walk alone, the search. And how long walks of 1 to 1,000 queries take in every form that suits them
// (walk_task_cuda.hpp), for widths of 2, 4 and 8: walk_form() should choose the least.
//
//   walk_parts_cuda_bench [--rows 1000000] [--cols 128] [--beam 48] [--width 2] [--queries 400] [--out FILE]
//
// A program of its own, since it defines a macro that the library's headers read.
#define KITH_WALK_PART_ENDS(part) kith::bench::part_ends(kith::WalkPart::part);

#include "graph/search/walk/walk_parts_cuda.hpp"

#include <cuda_runtime.h>

namespace kith::bench {

struct WalkTicks {
  long long last;
  long long ticks[kWalkParts];
  int times[kWalkParts];
  long long nanoseconds;  // of the whole walk
};

__device__ inline WalkTicks& walk_ticks() {
  __shared__ WalkTicks ticks;
  return ticks;
}

__device__ inline void part_ends(WalkPart part) {
  if (threadIdx.x != 0) return;
  WalkTicks& own = walk_ticks();
  const long long now = clock64();
  own.ticks[static_cast<int>(part)] += now - own.last;
  ++own.times[static_cast<int>(part)];
  own.last = clock64();
}

}  // namespace kith::bench

#include "driver/benchmark.hpp"
#include "graph_rows.hpp"

#include <kith/device.hpp>
#include <kith/index.hpp>

#include "cuda/device_memory.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "graph/search/walk/walk_ahead_cuda.hpp"
#include "graph/search/walk/walk_cuda.hpp"
#include "graph/search/walk/walk_steps_cuda.hpp"
#include "index/graph_gpu.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

using namespace kith;

namespace {

__device__ long long nanoseconds_now() {
  long long now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void empty_kernel() {}
__global__ void empty_kernel_with(const __grid_constant__ WalkTaskCuda, const __grid_constant__ InlineQueries) {}
__global__ void tell_kernel(volatile uint32_t* to, uint32_t value) {
  __threadfence_system();
  *to = value;
}

template <int kWarps, typename Walk>
__global__ void __launch_bounds__(kWarps * 32, 1)
    timed_kernel(const __grid_constant__ WalkTaskCuda task, const __grid_constant__ InlineQueries given,
                 bench::WalkTicks* out) {
  extern __shared__ __align__(16) std::byte memory[];
  __shared__ WalkCounts counts;
  bench::WalkTicks& own = bench::walk_ticks();
  const long long begin = nanoseconds_now();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kWalkParts; ++i) own.ticks[i] = own.times[i] = 0;
    own.last = clock64();
  }
  const DeviceRowsView queries = given.rows(task.queries);
  Walk(task, memory, counts).run(queries, blockIdx.x);
  if (threadIdx.x != 0) return;
  own.nanoseconds = nanoseconds_now() - begin;
  *out = own;
}

double microseconds_now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The median of so many calls, after some that do not count.
template <typename Call>
double median_of(int64_t calls, const Call& call) {
  std::vector<double> times;
  for (int64_t i = -20; i < calls; ++i) {
    const double start = microseconds_now();
    call(i < 0 ? 0 : i);
    if (i >= 0) times.push_back(microseconds_now() - start);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Walks in each form that suits them; `queries` are on the device.
void time_forms(bench::Report& report, const std::string& shape, WalkTaskCuda task, const std::byte* queries,
                int multiprocessors, cudaStream_t stream) {
  static constexpr WalkForm kForms[] = {{16, false}, {8, true}, {8, false}, {4, true},
                                        {4, false},  {2, true}, {2, false}};
  constexpr int64_t kCalls = 40;
  uint32_t* const near_cells = task.near_cells;
  for (const int width : {2, 4, 8}) {
    for (const int64_t count : {1, 10, 100, 1000}) {
      task.width = width;
      task.queries.count = count;
      task.near_cells = count >= kFewestRanked ? near_cells : nullptr;
      task.rank_slices = rank_slices(count);
      const WalkForm chosen = walk_form(task, multiprocessors);
      for (const WalkForm& form : kForms) {
        if (!form.suits(task) || count * form.warps > int64_t{multiprocessors} * 64) continue;
        const double time = median_of(kCalls, [&](int64_t i) {
          task.queries.data = queries + i * count * task.cols;
          launch_walks(task, {}, form, stream);
          cudaStreamSynchronize(stream);
        });
        const bool is_chosen = form.warps == chosen.warps && form.ahead == chosen.ahead;
        report.row({.name = "width " + std::to_string(width) + ", " + std::to_string(count) + " queries, " +
                            std::to_string(form.warps) + " warps" + (form.ahead ? " ahead" : ""),
                    .shape = shape,
                    .median_ms = 1e-3 * time,
                    .runs = kCalls,
                    .clock = "wall",
                    .labels = {{"chosen", is_chosen ? "yes" : "no"}}});
      }
    }
  }
}

void run(const bench::Options& given_options, bench::Report& report) {
  const int64_t count = given_options.number("--rows", 1'000'000);
  const int64_t cols = given_options.number("--cols", 128);
  const int64_t beam = given_options.number("--beam", 48);
  const int64_t width = given_options.number("--width", 2);
  const int64_t calls = given_options.number("--queries", 400);
  const std::string shape = std::to_string(count) + " x " + std::to_string(cols) + " u8";
  report.note(cuda_devices().front().name);
  ResourceOptions options;
  options.device = Device::cuda(0);
  const Resources gpu(options);
  const bench::Rows base = bench::made_rows(count, cols, 1, false);
  constexpr int64_t kFormQueries = 40000;  // other ones in every call
  const bench::Rows queries = bench::made_rows(std::max(calls, kFormQueries), cols, 2, false);
  const auto graph = build_walk_graph(base.view(), {.degree = 32}, gpu);
  const WalkGraphOnGpu there(graph, 0, gpu);

  GpuBytes words(1024, 0, gpu);
  GpuBytes found(kWidestBeam * 4, 0, gpu);
  GpuBytes ticks(sizeof(bench::WalkTicks), 0, gpu);
  WalkTaskCuda task = there.task();
  task.plain = true;
  task.queries.dtype = DType::u8;
  task.queries.stride = cols;
  task.queries.count = 1;
  task.beam = static_cast<int>(beam);
  task.width = static_cast<int>(width);
  task.most = std::min<int64_t>(beam, 40);
  task.found = reinterpret_cast<uint32_t*>(found.data());
  task.found_count = reinterpret_cast<uint32_t*>(words.data());
  task.bad_query = task.found_count + 1;
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  const WalkForm form = walk_form(task, device.multiProcessorCount);
  WalkTaskCuda timed = task;
  timed.seen = form.seen(timed);
  timed.layout = form.layout(timed);
  timed.ahead = walk_lists_ahead(form.warps);
  InlineQueries given;
  given.bytes = cols;
  const auto bring = [&](int64_t i) { std::memcpy(given.values, queries.view().row(i), static_cast<size_t>(cols)); };
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  auto* const kernel = !form.ahead  ? timed_kernel<kWalkMostWarps, WalkSteps<kWalkMostWarps, false>>
                       : beam <= 64 ? timed_kernel<kWalkAheadWarps, WalkAhead<kWalkAheadWarps, 2>>
                                    : timed_kernel<kWalkAheadWarps, WalkAhead<kWalkAheadWarps, 4>>;
  if (form.warps != (form.ahead ? kWalkAheadWarps : kWalkMostWarps)) {
    throw Unsupported("no clocks for a walk of " + std::to_string(form.warps) +
                      " warps; choose another --beam or --width");
  }
  allow_all_shared_memory(kernel);
  std::vector<bench::WalkTicks> all;
  const Grid grid = Grid::of(1, form.warps * 32).with_shared(timed.layout.bytes);
  const auto timed_call = [&](int64_t i) {
    bring(i);
    launch(kernel, grid, stream, timed, given, reinterpret_cast<bench::WalkTicks*>(ticks.data()));
    cudaStreamSynchronize(stream);
  };
  const double whole_timed = median_of(calls, timed_call);
  for (int64_t i = 0; i < calls; ++i) {
    timed_call(i);
    cudaMemcpy(&all.emplace_back(), ticks.data(), sizeof(bench::WalkTicks), cudaMemcpyDeviceToHost);
  }
  KITH_CUDA_CHECK(cudaGetLastError());
  const double empty = median_of(calls, [&](int64_t) {
    empty_kernel<<<1, 32, 0, stream>>>();
    cudaStreamSynchronize(stream);
  });
  const double two = median_of(calls, [&](int64_t) {
    empty_kernel<<<1, 32, 0, stream>>>();
    empty_kernel<<<1, 32, 0, stream>>>();
    cudaStreamSynchronize(stream);
  });
  const double with_arguments = median_of(calls, [&](int64_t) {
    empty_kernel_with<<<1, 32, 0, stream>>>(task, given);
    cudaStreamSynchronize(stream);
  });
  uint32_t* told = nullptr;
  cudaHostAlloc(&told, 64, cudaHostAllocMapped);
  *told = 0;
  uint32_t last = 0;
  const double polled = median_of(calls, [&](int64_t) {
    tell_kernel<<<1, 32, 0, stream>>>(told, ++last);
    while (*static_cast<volatile uint32_t*>(told) != last) {
    }
  });
  const double walk = median_of(calls, [&](int64_t i) {
    bring(i);
    launch_walks(task, given, form, stream);
    cudaStreamSynchronize(stream);
  });
  GraphRowsOnGpu::Contents contents;
  contents.format = {.kind = CodeKind::stored, .cols = cols, .dtype = DType::u8};
  contents.rows = count;
  const GraphRowsOnGpu rows(contents, 0, gpu, [&](std::byte* to) { copy_to_device(base.view(), to, 0, gpu); });
  GraphPlan plan;
  plan.exact = false;
  plan.walk.beam = beam;
  plan.walk.width = width;
  plan.candidates = 40;
  GpuGraphSearch search{there, rows, plan, Metric::l2, true, nullptr};
  search.stored = search.kept_rows = count;
  Neighbors out(1, 10, gpu);
  const double searched = median_of(
      calls, [&](int64_t i) { (void)search_graph_on_gpu(0, search, queries.view().slice(i, 1), out.view(), gpu); });
  const auto call = [&](const char* name, double microseconds) {
    report.row({.name = name, .shape = shape, .median_ms = 1e-3 * microseconds, .runs = calls, .clock = "wall"});
  };
  call("an empty kernel", empty);
  call("two empty kernels", two);
  call("an empty kernel with a walk's arguments", with_arguments);
  call("a kernel that tells the host", polled);
  call("a walk", walk);
  call("a walk with clocks", whole_timed);
  call("a search", searched);

  static const char* const kNames[kWalkParts] = {"code",    "cell keys", "nearest cells", "entries", "begin", "choose",
                                                 "collect", "enter",     "ask",           "wait",    "lists", "write"};
  double cycles = 0;
  double nanoseconds = 0;
  for (const bench::WalkTicks& one : all) {
    nanoseconds += static_cast<double>(one.nanoseconds);
    for (const long long ticks_of : one.ticks) cycles += static_cast<double>(ticks_of);
  }
  const auto queries_timed = static_cast<double>(all.size());
  const std::string of_walk =
      "beam " + std::to_string(beam) + ", " + std::to_string(form.warps) + " warps" + (form.ahead ? " ahead" : "");
  report.row({.name = of_walk + ", in the kernel",
              .shape = shape,
              .runs = calls,
              .figures = {{"mean_us", 1e-3 * nanoseconds / queries_timed},
                          {"cycles", cycles / queries_timed},
                          {"cycles_a_nanosecond", cycles / nanoseconds}}});
  for (int part = 0; part < kWalkParts; ++part) {
    double sum = 0;
    double times = 0;
    for (const bench::WalkTicks& one : all) {
      sum += static_cast<double>(one.ticks[part]);
      times += one.times[part];
    }
    report.row({.name = of_walk + ", part: " + kNames[part],
                .shape = shape,
                .runs = calls,
                .figures = {{"mean_us", 1e-3 * sum / queries_timed * nanoseconds / cycles},
                            {"times", times / queries_timed},
                            {"cycles_each", times > 0 ? sum / times : 0.0}}});
  }

  constexpr int64_t kMostQueries = 1000;
  const GpuBytes asked(queries.bytes.data(), kFormQueries * cols, 0, gpu);
  GpuBytes near_cells(kMostQueries * ranked_words(kRankSlices) * 4, 0, gpu);
  GpuBytes ids(kMostQueries * out.k() * 8, 0, gpu);
  GpuBytes distances(kMostQueries * out.k() * 4, 0, gpu);
  GpuBytes failed(kMostQueries, 0, gpu);
  task.near_cells = reinterpret_cast<uint32_t*>(near_cells.data());
  task.results.ids = reinterpret_cast<int64_t*>(ids.data());
  task.results.distances = reinterpret_cast<float*>(distances.data());
  task.results.failed = reinterpret_cast<uint8_t*>(failed.data());
  task.results.k = task.results.fewest_rows = out.k();
  task.results.candidates = plan.candidates;
  time_forms(report, shape, task, asked.data(), device.multiProcessorCount, stream);
}

const bench::Registered known({.name = "walk_parts_cuda",
                               .about = "where the time of a graph index's walk on a GPU goes",
                               .options = {"--rows", "--cols", "--beam", "--width", "--queries"},
                               .needs_gpu = true,
                               .run = run});

}  // namespace
