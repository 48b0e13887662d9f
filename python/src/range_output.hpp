// What a range search found, as numpy arrays that own it or in arrays of the caller's in a GPU's memory; and the parts
// of a search in files, joined.
#pragma once

#include "array.hpp"

#include <kith/range_search.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <list>
#include <optional>
#include <tuple>

namespace kith::python {

using RangeArrays = std::tuple<nb::object, nb::object, nb::object>;
#define KITH_PY_RANGE                                                            \
  "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], " \
  "numpy.typing.NDArray[numpy.float32]]"

// (offsets, ids, distances), which share the memory of `found`. With the GIL.
RangeArrays range_arrays_of(RangeNeighbors found);

// Drops row q from what query q has found, in place.
void drop_self(RangeNeighbors& found);

// Where a result in a GPU's memory goes: the package's function makes an array of so many values of so many bytes each,
// and keeps it.
using RangeRoom = std::optional<nb::callable>;
#define KITH_PY_ROOM "collections.abc.Callable[[int, int], DeviceArray] | None"

// Asks for room, with the GIL.
RangeAllocator allocator_of(const nb::callable& room);

// How many rows a search in files finds is known at its end: until then its parts are kept, and while they are joined
// both they and the whole count against the limit.
class RangeParts {
 public:
  explicit RangeParts(const Resources& resources) : resources_(resources) {}

  void append(const RangeView& part);
  RangeNeighbors join();

 private:
  const Resources& resources_;
  std::list<RangeNeighbors> parts_;
  int64_t queries_ = 0;
  int64_t found_ = 0;
};

}  // namespace kith::python
