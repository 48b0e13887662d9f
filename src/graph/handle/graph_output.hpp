// What every call that makes a graph has around it: arrays, in host memory or in that of a device (a graph lies where
// its vectors do), memory limits, and the report with its time and its peaks.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/memory_space.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "core/peak_memory.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "graph/lists/control_rows.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

struct GraphOutputShape {
  int64_t rows = 0;
  int64_t k = 0;
  MemorySpace space = MemorySpace::host();

  constexpr int64_t bytes() const { return 12 * rows * k; }
};

class GraphOutput {
 public:
  GraphOutput(const GraphOutputShape& shape, const Resources& resources);
  // Waits for what may still be written on the resources' stream, also where an exception ended the work.
  ~GraphOutput();
  GraphOutput(const GraphOutput&) = delete;
  GraphOutput& operator=(const GraphOutput&) = delete;

  const NeighborsView& view() const { return view_; }
  // A graph of what was written, which need not be checked. The graph keeps the arrays.
  KnnGraph graph(Metric metric, GraphReport report) const;

 private:
  const Resources resources_;
  std::shared_ptr<const void> owner_;
  NeighborsView view_;
};

// The same graph in that memory: a copy, unless it lies there.
KnnGraph graph_in(MemorySpace space, const KnnGraph& graph, const Resources& resources);

// From anywhere to anywhere; both have the same rows and k. Returns when it is done.
void copy_neighbors(const NeighborsView& from, const NeighborsView& to, const Resources& resources);

// What rounds have to say.
void put_outcome(const BuildOutcome& outcome, int64_t control_rows, GraphReport& report);
inline constexpr std::string_view kMissedMergeAdvice = "refine it, or allow longer lists, more samples or iterations";
// A warning where the recall that was wanted is not reached.
void warn_if_missed(const GraphReport& report, double wanted, std::string_view advice, const Resources& resources);

// Where every pair was compared.
inline GraphRecall exact_recall(int64_t rows) {
  return {.recall = 1, .recall_at_10 = 1, .standard_error = 0, .rows = rows};
}

// The report of build(resources), with its time and its peaks.
template <typename Build>
GraphReport measured(const Resources& resources, const Build& build, GivenGpus gpus = GivenGpus::first) {
  const auto began = std::chrono::steady_clock::now();
  const PeakMemory memory(resources, gpus);
  GraphReport report = build(memory.resources());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  report.peak_host_bytes = memory.host_bytes();
  report.peak_device_bytes = memory.device_bytes();
  return report;
}

// A graph of fresh arrays that `fill(view, resources)` writes to; it returns the report, which is measured.
template <typename Fill>
KnnGraph make_graph(const GraphOutputShape& shape, Metric metric, const Resources& resources, const Fill& fill,
                    GivenGpus gpus = GivenGpus::first) {
  std::unique_ptr<const GraphOutput> out;
  const auto build = [&](const Resources& counted) {
    out = std::make_unique<const GraphOutput>(shape, counted);
    GraphReport filled = fill(out->view(), counted);
    if (!shape.space.host_readable()) wait_for_stream(shape.space.device, resources);  // on which it was written
    return filled;
  };
  GraphReport report = measured(resources, build, gpus);
  return out->graph(metric, std::move(report));
}

}  // namespace kith
