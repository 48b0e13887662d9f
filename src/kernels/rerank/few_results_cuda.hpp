// How queries come to a search of few by one launch, and where it puts what it finds.
#pragma once

#include <kith/neighbors.hpp>

#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "rows/device_rows.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// Short queries that are on the host go with the launch itself, as an argument of the kernel: no copy comes before it.
struct InlineQueries {
  static constexpr int64_t kMostBytes = 3328;  // arguments have 4,096 in all

  alignas(16) std::byte values[kMostBytes];
  int64_t bytes = 0;  // 0: queries are on the device

  // The queries as the kernel sees them, where its parameter lies.
  KITH_HOST_DEVICE DeviceRowsView rows(const DeviceRowsView& given) const {
    DeviceRowsView rows = given;
    if (bytes > 0) rows.data = values;
    return rows;
  }
};

// What the host looks at, in memory that it can read.
struct FewReport {
  uint32_t bad_query = 0;  // the first that is not finite, or 0xFFFFFFFF
  uint32_t bad_row = 0;    // likewise
  uint32_t failed = 0;     // not 0: nothing was found that one can be sure of
};
inline constexpr int64_t kFewReportBytes = 256;  // before results, where both are in one block of memory

// Packed neighbours, queries x k, sorted and padded; or ids and distances, of which each query may have more places
// than k.
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
