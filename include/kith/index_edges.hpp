// The edges of a graph index as a sparse rows x rows matrix without values: row i leads to columns()[offsets()[i]] ..
// columns()[offsets()[i + 1] - 1].
#pragma once

#include <kith/host_buffer.hpp>

#include <cstdint>

namespace kith {

class IndexEdges {
 public:
  IndexEdges() = default;
  IndexEdges(int64_t rows, int64_t edges, const Resources& resources)
      : offsets_((rows + 1) * 8, "the offsets of edges", resources),
        columns_(edges * 8, "the edges", resources),
        rows_(rows) {}

  int64_t rows() const { return rows_; }
  int64_t size() const { return offsets()[rows_]; }  // edges
  int64_t* offsets() const { return offsets_.as<int64_t>(); }
  int64_t* columns() const { return columns_.as<int64_t>(); }  // in the order of the graph's lists

 private:
  HostBuffer offsets_;
  HostBuffer columns_;
  int64_t rows_ = 0;
};

}  // namespace kith
