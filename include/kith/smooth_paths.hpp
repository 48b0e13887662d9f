// The smoothest path between two rows of a k-NN graph: the path whose largest step is as small as it can be (equation 19
// of "Billion-scale similarity search with GPUs"). The graph is taken both ways: a neighbour leads to its row too.
//
// A SmoothPaths is built once for a graph, in time in proportion to its edges, and then answers any pair: a width in
// about a microsecond, a path in the time of a short breadth-first search. It is built on the device that is asked for, or
// where the graph lies. Every function but the constructor is const and safe from many threads. Results are the same for
// any device, threads and limits.
//
// Memory: 16 bytes for each neighbour of the graph and some 40 for each row, and while it is built 2 more for each
// neighbour and 40 for each row; paths with the fewest steps take 8 bytes a row for their search, which are kept for the
// next. Built on a GPU it takes 12 bytes for each neighbour and 52 for each row there, keeps some 14 of these, and a handle
// to the graph: the edges are listed on the host when the first path with the fewest steps is asked for.
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
  steps,  // of all paths with the least largest step one with the fewest steps; of those the first in the order of rows
  tree,   // the minimum spanning forest's path: least in its largest step, then in the second largest, and so on
};

KITH_EXPORT std::string_view name_of(PathBy by);
// "steps", "tree"; throws InvalidArgument listing the names.
KITH_EXPORT PathBy parse_path_by(std::string_view name);

// Rows from a to b, both included; none where no path joins them.
struct SmoothPath {
  float width = std::numeric_limits<float>::infinity();  // the largest step, in the metric's unit
  int64_t size = 0;
  HostBuffer rows;  // int64

  const int64_t* begin() const { return rows.as<int64_t>(); }
  const int64_t* end() const { return begin() + size; }
};

class KITH_EXPORT SmoothPaths {
 public:
  // Throws InvalidArgument for inner_product, which is no distance, and for a graph that breaks KnnGraph's rules.
  explicit SmoothPaths(const KnnGraph& graph, const Resources& resources = Resources());
  ~SmoothPaths();
  SmoothPaths(SmoothPaths&&) noexcept;
  SmoothPaths& operator=(SmoothPaths&&) noexcept;

  int64_t rows() const;
  int64_t parts() const;  // connected components of the graph, taken both ways

  // The least possible largest step from a to b: 0 where they are one row, +inf where nothing joins them.
  float width(int64_t a, int64_t b) const;
  // The same of many pairs, a0 b0 a1 b1 ..., on all threads.
  void widths(const int64_t* pairs, int64_t count, float* out, const Resources& resources = Resources()) const;

  SmoothPath path(int64_t a, int64_t b, PathBy by = PathBy::steps, const Resources& resources = Resources()) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith
