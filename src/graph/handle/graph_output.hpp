// The arrays of a graph that is being made, in host memory or in that of a device: a graph lies where its vectors do.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/memory_space.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "core/peak_memory.hpp"
#include "cuda/device_memory.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

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
  // Of what was written, which need not be looked at. The graph keeps the arrays.
  KnnGraph graph(Metric metric, GraphReport report) const;

 private:
  const Resources resources_;
  std::shared_ptr<const void> owner_;
  NeighborsView view_;
};

// From anywhere to anywhere; both have the same rows and k. Returns when it is done.
void copy_neighbors(const NeighborsView& from, const NeighborsView& to, const Resources& resources);

// The report of build(resources), with its time and its peaks.
template <typename Build>
GraphReport measured(const Resources& resources, const Build& build) {
  const auto began = std::chrono::steady_clock::now();
  const PeakMemory memory(resources);
  GraphReport report = build(memory.resources());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  report.peak_host_bytes = memory.host_bytes();
  report.peak_device_bytes = memory.device_bytes();
  return report;
}

// A graph of fresh arrays that `fill(view, resources)` writes to; it returns the report, which is measured.
template <typename Fill>
KnnGraph make_graph(const GraphOutputShape& shape, Metric metric, const Resources& resources, const Fill& fill) {
  std::unique_ptr<const GraphOutput> out;
  GraphReport report = measured(resources, [&](const Resources& counted) {
    out = std::make_unique<const GraphOutput>(shape, counted);
    GraphReport filled = fill(out->view(), counted);
    if (!shape.space.host_readable()) wait_for_stream(shape.space.device, resources);  // on which it was written
    return filled;
  });
  return out->graph(metric, std::move(report));
}

}  // namespace kith
