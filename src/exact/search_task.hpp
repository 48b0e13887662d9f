// The input of an exact search: the shape of its data, the request, and what was decided about the base before
// planning; and the common part of all plans.
#pragma once

#include <kith/device.hpp>
#include <kith/dtype.hpp>
#include <kith/memory_space.hpp>
#include <kith/metric.hpp>

#include "rows/rows_info.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// The shape of the data.
struct SearchShape {
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType query_dtype = DType::f32;
  DType base_dtype = DType::f32;
  Metric metric = Metric::l2;
  MemorySpace query_space = {};
  MemorySpace base_space = {};
  bool queries_in_memory = true;  // else read from a file, piece by piece
  bool base_in_memory = true;
  bool base_checked = false;  // the index checked the rows when they were added

  RowsInfo query_info() const { return info(queries, query_dtype, query_space, queries_in_memory); }
  RowsInfo base_info() const { return info(rows, base_dtype, base_space, base_in_memory); }

 private:
  RowsInfo info(int64_t count, DType dtype, MemorySpace space, bool in_memory) const {
    RowsInfo info(count, cols, dtype);
    info.space = space;
    info.in_memory = in_memory;
    return info;
  }
};

enum class Wanted : uint8_t {
  nearest,   // the k nearest rows of each query
  within,    // all rows within a radius
  all_keys,  // the distance of every query and row
};

// The request.
struct SearchRequest {
  Wanted what = Wanted::nearest;
  int64_t k = 0;              // neighbours per query in the result, padded
  bool without_self = false;  // queries are the base's rows, and no row is its own neighbour
  bool given_keys = false;    // the caller's code computes the keys
  bool check_finite = true;
  MemorySpace result_space = {};
  bool results_in_memory = true;  // in the caller's arrays; else delivered batch by batch
};

// How a filter is applied.
enum class FilterPath : uint8_t {
  none,    // it keeps every row
  mask,    // all rows are scanned, and excluded ones dropped
  gather,  // kept rows are copied together on the host and searched as a base of their own
  list,    // a GPU reads kept rows by number and searches them as a base of their own
};

// A search, with the decisions about the base.
struct SearchTask {
  SearchShape shape;
  SearchRequest request;
  FilterPath filter = FilterPath::none;
  int64_t rows = 0;       // rows to scan: all, or those that the filter keeps
  int64_t k = 0;          // neighbours to find: at most the number of rows
  bool prepared = false;  // an index has the base in the device's layout

  // Applies the filter by `path`; it keeps `kept` rows.
  void apply_filter(FilterPath path, int64_t kept) {
    const bool fewer = path == FilterPath::gather || path == FilterPath::list;
    const int64_t wanted = request.what == Wanted::nearest ? request.k + (request.without_self ? 1 : 0) : 0;
    filter = path;
    rows = fewer ? kept : shape.rows;
    k = std::min(wanted, std::max<int64_t>(kept, 1));
  }
  bool within() const { return request.what == Wanted::within; }
  bool gathers() const { return filter == FilterPath::gather; }
  // Products select rows: useless if every key is requested.
  bool wants_products() const { return request.what != Wanted::all_keys && !request.given_keys; }
  // Whether a GPU writes every key directly to the result.
  bool keys_in_place() const {
    return request.what == Wanted::all_keys && request.result_space.kind == MemoryKind::cuda;
  }
  bool base_in_memory() const { return shape.base_in_memory && !gathers(); }
  // Host memory to read this many queries and base rows at a time: from files, and for rows copied
  // together.
  int64_t read_bytes(int64_t queries, int64_t base_rows) const {
    const RowsInfo base = shape.base_info();
    return shape.query_info().read_bytes(queries) +
           (gathers() ? base_rows * base.row_bytes() : base.read_bytes(base_rows));
  }
  // Gathered rows are checked where their numbers are known.
  bool base_checked() const { return shape.base_checked || gathers(); }
};

// The common part of all plans: the batches of the loop and their memory.
struct KnnPlan {
  Device device = Device::cpu();
  int64_t query_batch = 0;  // queries searched together; the base is passed over once per batch
  int64_t base_chunk = 0;   // rows handed to the backend at a time
  int64_t host_bytes = 0;   // peak allocation of the search
  int64_t device_bytes = 0;
};

// A search of all rows, without a filter.
inline SearchTask search_of(const SearchShape& shape, const SearchRequest& request) {
  SearchTask task{shape, request};
  task.apply_filter(FilterPath::none, shape.rows);
  return task;
}

}  // namespace kith
