// A graph from disk, kept in memory to be compared.
#pragma once

#include <kith/knn_graph.hpp>

#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/same_graph.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kith::testing {

class KeptGraph final : public GraphSink {
 public:
  void begin() override {
    ids_.clear();
    distances_.clear();
  }
  void append(const NeighborsView& part) override {
    ids_.insert(ids_.end(), part.ids, part.ids + part.queries * part.k);
    distances_.insert(distances_.end(), part.distances, part.distances + part.queries * part.k);
  }
  void finish(const GraphReport&) override {}

  void expect(const KnnGraph& truth) {
    ASSERT_EQ(static_cast<int64_t>(ids_.size()), truth.rows() * truth.k());
    expect_same_bytes(truth, {ids_.data(), distances_.data(), truth.rows(), truth.k(), {}});
  }

 private:
  std::vector<int64_t> ids_;
  std::vector<float> distances_;
};

}  // namespace kith::testing
