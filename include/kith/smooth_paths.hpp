// The smoothest path between two rows of a k-NN graph: the one with the smallest largest step (equation 19 of
// "Billion-scale similarity search with GPUs"). Edges can be followed in both directions.
//
// SmoothPaths is built once for a graph, in time proportional to its edges. It then answers any pair: a width in about
// a microsecond, a path in the time of a short breadth-first search. It is built on the device of the resources, or
// where the graph is stored. Its member functions are const and safe from many threads. Results are the same for any
// device, number of threads and limits.
//
// Memory: 16 bytes per neighbour of the graph and about 40 per row, and during construction another 2 per neighbour and
// 40 per row. Searches for paths with the fewest steps take 8 bytes per row, which are kept for the next one.
// Construction on a GPU takes 12 bytes per neighbour and 52 per row there, of which about 14 are kept, and holds a
// handle to the graph; the edges are listed on the host at the first request for a path with the fewest steps.
#pragma once

#include <kith/export.hpp>
#include <kith/host_buffer.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

namespace kith {

enum class PathBy : uint8_t {
  steps,  // among all smoothest paths the one with the fewest steps; among those the first by row numbers
  tree,   // the path in the minimum spanning forest: the smallest largest step, then second largest, and so on
};

KITH_EXPORT std::string_view name_of(PathBy by);
// "steps", "tree"; throws InvalidArgument listing the names.
KITH_EXPORT PathBy parse_path_by(std::string_view name);

// The rows from a to b, inclusive; none if no path connects them.
struct SmoothPath {
  float width = std::numeric_limits<float>::infinity();  // the largest step, in the metric's unit
  int64_t size = 0;
  HostBuffer rows;  // int64

  const int64_t* begin() const { return rows.as<int64_t>(); }
  const int64_t* end() const { return begin() + size; }
};

class KITH_EXPORT SmoothPaths {
 public:
  // InvalidArgument for inner_product, which is not a distance, and for an invalid graph.
  explicit SmoothPaths(const KnnGraph& graph, const Resources& resources = Resources());
  ~SmoothPaths();
  SmoothPaths(SmoothPaths&&) noexcept;
  SmoothPaths& operator=(SmoothPaths&&) noexcept;

  int64_t rows() const;
  int64_t parts() const;  // connected components of the graph

  // The largest step of the smoothest path from a to b: 0 if they are the same row, +inf if no path connects them.
  float width(int64_t a, int64_t b) const;
  // The same for many pairs, a0 b0 a1 b1 ..., on all threads.
  void widths(const int64_t* pairs, int64_t count, float* out, const Resources& resources = Resources()) const;

  SmoothPath path(int64_t a, int64_t b, PathBy by = PathBy::steps, const Resources& resources = Resources()) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith
