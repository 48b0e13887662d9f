// An index: vectors kept ready for many searches.
//
// An Index is a handle to an immutable version: add() publishes a new version, searches that are under way keep the one
// they began with, and readers never wait. Copies of a handle see the same versions.
//
//   "Flat"   every vector as it is; exact search
#pragma once

#include <kith/device.hpp>
#include <kith/export.hpp>
#include <kith/knn.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kith {

struct IndexParams {
  Metric metric = Metric::l2;
  bool check_finite = true;  // for added vectors and queries
  bool prepare = true;  // keep a copy laid out for the device, on the CPU of dimension + 8 to 5 * dimension + 20 bytes
                        // a row (docs/performance.md), where the memory limit has room for twice that: faster searches
};

struct SearchParams {
  int64_t k = 10;
  RowFilter filter = {};  // the rows that may be found; without one, all
};

struct RangeSearchParams {
  float radius = 0;                                // in the metric's unit, and included; see kith/range_search.hpp
  RowFilter filter = {};                           // the rows that may be found; without one, all
  MemorySpace result_space = MemorySpace::host();  // and memory there, as in RangeParams
  RangeAllocator allocate = {};
};

// What an index holds, in bytes: copies of rows and what is kept beside them, not rows that it borrows.
struct IndexBytes {
  int64_t host = 0;
  int64_t device = 0;  // on all GPUs together
};

// Whether add() copies the rows or refers to the caller's memory, which must then outlive every search. Borrowed rows
// are never merged: each such add is a block of its own, so borrow few, large ones.
enum class Ownership : uint8_t { copy, borrow };

class IndexKinds;

class KITH_EXPORT Index {
 public:
  // Throws InvalidArgument for a factory string that it does not know.
  explicit Index(std::string_view factory, IndexParams params = {});

  // Rows get the numbers size(), size() + 1, ... The first add fixes dimension, dtype and place: on the host, or in the
  // memory of one CUDA device, where rows are read in the order of resources.stream. Returns when they are in. Calls at
  // the same time take turns. A sink that is called on the way may search the index; adding to it is InvalidState.
  void add(const MatrixView& rows, Ownership ownership = Ownership::copy, const Resources& resources = Resources());

  // search(queries, {.k = 10, .filter = filter}).
  Neighbors search(const MatrixView& queries, const SearchParams& params = {},
                   const Resources& resources = Resources()) const;
  // The same into the caller's arrays, which must be of the params' k.
  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources = Resources()) const;

  // All rows within a radius: range_search(queries, {.radius = 0.5f}).
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources = Resources()) const;

  int64_t size() const;
  int64_t dimension() const;  // 0 before the first add
  Device device() const;      // in whose memory the rows lie: cpu or a GPU; automatic before the first add
  IndexBytes bytes() const;
  const std::string& factory() const;
  const IndexParams& params() const;

 private:
  friend Index make_index(const IndexKinds& kinds, std::string_view factory, IndexParams params);
  Index(const IndexKinds& kinds, std::string_view factory, IndexParams params);

  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kith
