// The edges of a graph index, as a sparse matrix without values: row i is joined to rows()[offsets()[i]] ..
// rows()[offsets()[i + 1] - 1].
#pragma once

#include <kith/host_buffer.hpp>

#include <cstdint>

namespace kith {

class IndexEdges {
 public:
  IndexEdges() = default;
  IndexEdges(int64_t count, int64_t edges, const Resources& resources)
      : offsets_((count + 1) * 8, "the offsets of edges", resources),
        rows_(edges * 8, "the edges", resources),
        count_(count) {}

  int64_t count() const { return count_; }  // of rows
  int64_t size() const { return offsets()[count_]; }
  int64_t* offsets() const { return offsets_.as<int64_t>(); }
  int64_t* rows() const { return rows_.as<int64_t>(); }

 private:
  HostBuffer offsets_;
  HostBuffer rows_;
  int64_t count_ = 0;
};

}  // namespace kith
