// Graphs from disk: kept in memory to be compared, built under a limit, and built again after crashes.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/same_graph.hpp"
#include "io/simulated_disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith::testing {

class KeptGraph final : public GraphSink {
 public:
  explicit KeptGraph(bool ids_only = false) : ids_only_(ids_only) {}

  bool takes_distances() const override { return !ids_only_; }
  void begin() override {
    ids_.clear();
    distances_.clear();
  }
  void append(const NeighborsView& part) override {
    ids_.insert(ids_.end(), part.ids, part.ids + part.queries * part.k);
    if (!ids_only_) distances_.insert(distances_.end(), part.distances, part.distances + part.queries * part.k);
  }
  void finish(const GraphReport&) override {}

  void expect(const KnnGraph& truth) {
    ASSERT_EQ(static_cast<int64_t>(ids_.size()), truth.rows() * truth.k());
    if (ids_only_) {
      EXPECT_TRUE(std::equal(ids_.begin(), ids_.end(), truth.ids()));
      return;
    }
    expect_same_bytes(truth, {ids_.data(), distances_.data(), truth.rows(), truth.k(), {}});
  }

 private:
  const bool ids_only_;
  std::vector<int64_t> ids_;
  std::vector<float> distances_;
};

inline Resources under_limit(int64_t limit, int threads = 2) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = threads;
  options.host_memory_limit = limit;
  return Resources(options);
}

// Lets the disk crash at every `step`th call of `build(disk, sink)`, and expects `again(disk, sink, call)` to go on to
// `truth` and to leave no step in the folder "w". Returns how often it crashed.
template <typename Build, typename Again>
int64_t expect_graph_after_crashes(int64_t step, const KnnGraph& truth, const Build& build, const Again& again) {
  for (int64_t at = 0;; at += step) {
    SimulatedDisk disk;
    disk.set_fault({.at = at, .code = 0, .kind = {}});
    KeptGraph found;
    try {
      build(disk, found);
      return at / step;
    } catch (const Crash&) {
    }
    disk.crash(at % 2 == 0 ? Loss::all_that_is_not_synced : Loss::bytes_that_are_not_synced);
    again(disk, found, at);
    found.expect(truth);
    EXPECT_TRUE(disk.list("w").empty());
  }
}

}  // namespace kith::testing
