// Where a search writes: the arrays that the caller gave, on the host or a GPU, or fresh ones in Kith's host memory,
// counted against its limit.
#pragma once

#include "array.hpp"
#include "matrix_output.hpp"

#include <kith/host_buffer.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include <nanobind/stl/pair.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace kith::python {

// The caller's (ids, distances), or none. The package has checked dtypes and layout.
using GivenIds = std::variant<DeviceArray, IdArray>;
using GivenOutput = std::optional<std::pair<GivenIds, GivenFloats>>;

class NeighborsOutput {
 public:
  // Throws InvalidArgument where a given array is not queries x k, or where one lies elsewhere than the other.
  NeighborsOutput(int64_t queries, int64_t k, const GivenOutput& given, const Resources& resources);

  const NeighborsView& view() const { return view_; }

  // (ids, distances) as fresh numpy arrays; none where the caller gave arrays. Call once, with the GIL.
  std::optional<std::pair<nb::object, nb::object>> take();

 private:
  bool given_;
  HostBuffer ids_;
  HostBuffer distances_;
  NeighborsView view_;
};

}  // namespace kith::python
