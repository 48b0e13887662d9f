// Results of an index that works on the host, wherever the caller wants them: for arrays in a GPU's memory they are
// found in memory of their own and copied, others are filled as they are.
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

  // Host memory to fill.
  const NeighborsView& view() const { return view_; }

  // To where the caller wants them.
  void deliver(const Resources& resources) const {
    if (!out_.space.host_readable()) copy_neighbors(view_, out_, resources);
  }

 private:
  NeighborsView out_;
  Neighbors found_;
  NeighborsView view_;
};

}  // namespace kith
