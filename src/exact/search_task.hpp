// What an exact search is given: what there is, what is wanted, and what was settled of the base before anything was
// planned; and what every plan of it says.
#pragma once

#include <kith/device.hpp>
#include <kith/dtype.hpp>
#include <kith/memory_space.hpp>
#include <kith/metric.hpp>

#include "rows/rows_info.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// What there is.
struct SearchShape {
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType query_dtype = DType::f32;
  DType base_dtype = DType::f32;
  Metric metric = Metric::l2;
  MemorySpace query_space = {};
  MemorySpace base_space = {};
  bool queries_in_memory = true;  // else they are read from a file, piece by piece
  bool base_in_memory = true;
  bool base_checked = false;  // an index has looked at the rows when they were added

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

// What is wanted.
struct SearchWish {
  Wanted what = Wanted::nearest;
  int64_t k = 0;              // neighbours of each query that are given out, padded
  bool without_self = false;  // the queries are the base's rows, and none is its own neighbour
  bool given_keys = false;    // code of the caller's computes the keys
  bool check_finite = true;
  MemorySpace result_space = {};
  bool results_in_memory = true;  // the caller's arrays hold them; else they go out batch by batch
};

// How a filter is applied.
enum class FilterPath : uint8_t {
  none,    // it keeps every row
  mask,    // all rows are scanned, and those that it leaves out dropped
  gather,  // the rows that it keeps are copied together on the host and searched as a base of their own
  list,    // a GPU reads the rows that it keeps by their numbers, and searches them as a base of their own
};

// A search, with what was settled of the base.
struct SearchTask {
  SearchShape shape;
  SearchWish wish;
  FilterPath filter = FilterPath::none;
  int64_t rows = 0;       // gone over: all, or those that the filter keeps
  int64_t k = 0;          // neighbours looked for: no more than there are
  bool prepared = false;  // an index holds the base in the layout of the device

  // Applies the filter by `path`; it keeps `kept` rows.
  void apply_filter(FilterPath path, int64_t kept) {
    const bool fewer = path == FilterPath::gather || path == FilterPath::list;
    const int64_t wanted = wish.what == Wanted::nearest ? wish.k + (wish.without_self ? 1 : 0) : 0;
    filter = path;
    rows = fewer ? kept : shape.rows;
    k = std::min(wanted, std::max<int64_t>(kept, 1));
  }
  bool within() const { return wish.what == Wanted::within; }
  bool gathers() const { return filter == FilterPath::gather; }
  // Products choose rows: they are of no use where every key is wanted.
  bool wants_products() const { return wish.what != Wanted::all_keys && !wish.given_keys; }
  // Whether a GPU writes every key where the result lies.
  bool keys_in_place() const { return wish.what == Wanted::all_keys && wish.result_space.kind == MemoryKind::cuda; }
  bool base_in_memory() const { return shape.base_in_memory && !gathers(); }
  // What reading so many queries and rows of the base at a time takes on the host: of files, and of rows copied
  // together.
  int64_t read_bytes(int64_t queries, int64_t base_rows) const {
    const RowsInfo base = shape.base_info();
    return shape.query_info().read_bytes(queries) +
           (gathers() ? base_rows * base.row_bytes() : base.read_bytes(base_rows));
  }
  // Gathered rows are looked at where their numbers are known.
  bool base_checked() const { return shape.base_checked || gathers(); }
};

// What every plan decides: the batches of the loop and their memory.
struct KnnPlan {
  Device device = Device::cpu();
  int64_t query_batch = 0;  // queries searched together; the base is passed over once per batch
  int64_t base_chunk = 0;   // rows handed to the backend at a time
  int64_t host_bytes = 0;   // what the search will allocate, at its peak
  int64_t device_bytes = 0;
};

// A search of all rows, without a filter.
inline SearchTask search_of(const SearchShape& shape, const SearchWish& wish) {
  SearchTask task{shape, wish};
  task.apply_filter(FilterPath::none, shape.rows);
  return task;
}

}  // namespace kith
