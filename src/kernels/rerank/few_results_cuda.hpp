// Inputs and outputs of a single-launch search for few queries.
#pragma once

#include <kith/neighbors.hpp>

#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "rows/device_rows.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// Short queries in host memory are passed as a kernel argument, which saves a copy before the launch.
struct InlineQueries {
  static constexpr int64_t kMostBytes = 3328;  // kernel arguments are limited to 4,096 bytes in all

  alignas(16) std::byte values[kMostBytes];
  int64_t bytes = 0;  // 0: queries are on the device

  // The queries inside the kernel, read from its parameter.
  KITH_HOST_DEVICE DeviceRowsView rows(const DeviceRowsView& given) const {
    DeviceRowsView rows = given;
    if (bytes > 0) rows.data = values;
    return rows;
  }
};

// Read by the host, in memory it can access.
struct FewReport {
  uint32_t bad_query = 0;  // the first query that is not finite, or 0xFFFFFFFF
  uint32_t bad_row = 0;    // likewise
  uint32_t failed = 0;     // nonzero: no certain result
};
inline constexpr int64_t kFewReportBytes = 256;  // results follow at this offset in a shared block

// Packed neighbours, queries x k, sorted and padded; or ids and distances, with possibly more than k places per
// query.
struct FewResults {
  int64_t k = 0;
  int64_t first_row = 0;              // the number of row 0
  const uint32_t* numbers = nullptr;  // of the rows, ascending, where they are not first_row, first_row + 1, ...
  uint64_t* neighbors = nullptr;
  NeighborsView out = {};
  ResultExit exit = ResultExit(Metric::l2);
};

#if defined(__CUDACC__)
// The first `found` entries of a sorted list, whose rows count from 0, are a query's. All threads of a block.
__device__ inline void write_few(const FewResults& to, int64_t query, const uint64_t* list, int found) {
  const bool packed = to.neighbors != nullptr;
  const int64_t places = packed ? to.k : to.out.k;
  for (int64_t at = threadIdx.x; at < places; at += blockDim.x) {
    uint64_t neighbor = kPadding;
    if (at < found) {
      const uint32_t row = row_of(list[at]);
      const uint32_t number = to.numbers == nullptr ? static_cast<uint32_t>(to.first_row + row) : to.numbers[row];
      neighbor = pack_neighbor(ordered_of(list[at]), number);
    }
    const int64_t place = query * places + at;
    if (packed) {
      to.neighbors[place] = neighbor;
    } else {
      to.out.ids[place] = to.exit.id(neighbor);
      to.out.distances[place] = to.exit.distance(neighbor);
    }
  }
}
#endif

}  // namespace kith
