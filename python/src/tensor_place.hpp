// A matrix in a GPU's memory whose rows follow each other, as the package tells it in plain numbers: in less time than
// an array of a library is taken through DLPack.
#pragma once

#include <kith/dtype.hpp>
#include <kith/neighbors.hpp>
#include <kith/view.hpp>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <string>
#include <tuple>

namespace kith::python {

// Where it begins, rows, columns, dtype.
using TensorPlace = std::tuple<uintptr_t, int64_t, int64_t, std::string>;

inline MatrixView view_of(const TensorPlace& place, int device) {
  const auto& [data, rows, cols, dtype] = place;
  return {reinterpret_cast<const void*>(data), parse_dtype(dtype), {rows, cols, cols}, MemorySpace::cuda(device)};
}

// Two arrays of queries x k beside these queries: their addresses.
inline NeighborsView neighbors_at(uintptr_t ids, uintptr_t distances, const MatrixView& queries, int64_t k) {
  return {reinterpret_cast<int64_t*>(ids), reinterpret_cast<float*>(distances), queries.rows(), k, queries.space()};
}

}  // namespace kith::python
