// Output of a search on the host: results for a GPU's memory go to host memory first and are copied; host arrays are
// filled directly.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "graph/handle/graph_output.hpp"

namespace kith {

class HostNeighbors {
 public:
  HostNeighbors(const NeighborsView& out, const Resources& resources) : out_(out), view_(out) {
    if (out.space.host_readable()) return;
    found_ = Neighbors(out.queries, out.k, resources);
    view_ = found_.view();
  }

  // The host memory to fill.
  const NeighborsView& view() const { return view_; }

  // Copies the results to the caller's arrays, if necessary.
  void deliver(const Resources& resources) const {
    if (!out_.space.host_readable()) copy_neighbors(view_, out_, resources);
  }

 private:
  NeighborsView out_;
  Neighbors found_;
  NeighborsView view_;
};

}  // namespace kith
