// A kind of index: how a new state is made from an old one. It is immutable and has no lock: versions, one writer at a
// time, and the checks that all kinds share are the Index's.
#pragma once

#include "index/index_state.hpp"

#include <memory>

namespace kith {

class IndexKind {
 public:
  virtual ~IndexKind() = default;

  // The state `before`, null where there is none, with `rows` behind its own. `before` is of this kind and stays as it
  // is. There is at least one row; shape, dtype and place fit those before. Values have been checked in host memory,
  // and are to be checked here, or at the search, in a device's.
  virtual std::shared_ptr<const IndexState> added(const IndexState* before, const MatrixView& rows, Ownership ownership,
                                                  const Resources& resources) const = 0;
};

}  // namespace kith
