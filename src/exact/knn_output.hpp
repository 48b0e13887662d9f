// Where a k-NN search writes: the caller's arrays, or a sink that gets batch after batch.
#pragma once

#include <kith/knn.hpp>

#include "exact/knn_loop.hpp"

namespace kith {

class ArrayOutput final : public KnnOutput {
 public:
  explicit ArrayOutput(const NeighborsView& out) : out_(out) {}
  void open(int64_t, const Resources&) override {}
  NeighborsView destination(int64_t first, int64_t count) override {
    return {out_.ids + first * out_.k, out_.distances + first * out_.k, count, out_.k, out_.space};
  }
  void done(int64_t, const NeighborsView&) override {}

 private:
  NeighborsView out_;
};

class SinkOutput final : public KnnOutput {
 public:
  SinkOutput(const NeighborsSink& sink, int64_t k) : sink_(sink), k_(k) {}
  void open(int64_t batch, const Resources& resources) override { part_ = Neighbors(batch, k_, resources); }
  NeighborsView destination(int64_t, int64_t count) override {
    NeighborsView view = part_.view();
    view.queries = count;
    return view;
  }
  void done(int64_t first, const NeighborsView& part) override { sink_(first, part); }

 private:
  const NeighborsSink& sink_;
  int64_t k_;
  Neighbors part_;
};

}  // namespace kith
