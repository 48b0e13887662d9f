// The comparison of what walks found by the distances that are returned: the rows at the places of a beam. Has scratch
// memory for each thread.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_coder.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "graph/search/walk/beam.hpp"
#include "index/graph_vectors.hpp"

#include <cstdint>
#include <utility>

namespace kith {

class GraphComparer {
 public:
  struct Shape {
    Metric metric = Metric::l2;
    int64_t candidates = 0;  // rows that are compared
    int64_t k = 0;           // that are returned of them
    int slots = 1;           // threads
  };
  // `vectors` and `coder` must outlive it.
  GraphComparer(const GraphVectors& vectors, const WalkCoder& coder, const Shape& shape, const Resources& resources);

  // Compares the rows at the first places until `candidates` rows that the filter keeps are compared (`kept`: its bits,
  // or null). Returns the first k, sorted and packed, and their number.
  std::pair<const uint64_t*, int64_t> compare(const MatrixView& queries, int64_t query, const Beam& places,
                                              const PlaceRows& rows, const uint64_t* kept, int slot) const;

 private:
  std::pair<const uint64_t*, int64_t> by_exact_keys(const Beam& places, const PlaceRows& rows, const uint64_t* kept,
                                                    int slot) const;

  const GraphVectors& vectors_;
  const WalkCoder& coder_;
  const KeyKind kind_;
  const int64_t candidates_;
  const int64_t k_;
  const int64_t cols_;
  const int64_t room_;
  HostArray<float> queries_;
  HostArray<float> floats_;
  HostArray<uint64_t> found_;
};

}  // namespace kith
