#include "graph/search/place_order.hpp"

#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

namespace kith {
namespace {

struct PlacedRow {
  uint32_t row;
  uint64_t hash;  // then: the first row that is equal
};

// Any hash will do: equal rows are told by their bytes.
uint64_t hash_of(const std::byte* row, int64_t bytes) {
  uint64_t hash = 0x9E3779B97F4A7C15ULL;
  for (int64_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, row + at, static_cast<size_t>(std::min<int64_t>(8, bytes - at)));
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

PlaceOrder::PlaceOrder(const std::byte* rows, int64_t row_bytes, int64_t count, const uint32_t* cells,
                       const Resources& resources)
    : places_(count),
      offsets_(count + 1, "the places of rows", resources),
      rows_(count, "the places of rows", resources) {
  HostArray<PlacedRow> order(count, "the order of rows", resources);
  if (only_counts(resources)) return;
  const auto same = [&](uint32_t a, uint32_t b) {
    return std::memcmp(rows + a * row_bytes, rows + b * row_bytes, static_cast<size_t>(row_bytes));
  };
  // Rows cell by cell; then each cell for itself.
  const uint32_t cell_count = count > 0 ? *std::max_element(cells, cells + count) + 1 : 0;
  std::vector<int64_t> ends(cell_count + 1, 0);
  for (int64_t i = 0; i < count; ++i) ++ends[cells[i] + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<int64_t> next(ends.begin(), ends.end() - 1);
  for (int64_t i = 0; i < count; ++i) order[next[cells[i]]++] = {static_cast<uint32_t>(i), 0};
  ProgressMeter meter("order", cell_count, resources);
  parallel_for(cell_count, meter, resources, [&](int64_t cell, int) {
    PlacedRow* const begin = order.data() + ends[static_cast<size_t>(cell)];
    PlacedRow* const end = order.data() + ends[static_cast<size_t>(cell) + 1];
    for (PlacedRow* one = begin; one != end; ++one) one->hash = hash_of(rows + one->row * row_bytes, row_bytes);
    std::sort(begin, end, [&](const PlacedRow& a, const PlacedRow& b) {
      if (a.hash != b.hash) return a.hash < b.hash;
      const int bytes = same(a.row, b.row);
      return bytes != 0 ? bytes < 0 : a.row < b.row;
    });
    for (PlacedRow* one = begin; one != end;) {
      const PlacedRow first = *one;
      for (; one != end && one->hash == first.hash && same(one->row, first.row) == 0; ++one) one->hash = first.row;
    }
    std::sort(begin, end, [](const PlacedRow& a, const PlacedRow& b) {
      return std::tie(a.hash, a.row) < std::tie(b.hash, b.row);
    });
    meter.add(1);
  });
  meter.finish();
  places_ = 0;
  for (int64_t i = 0; i < count; ++i) {
    rows_[i] = order[i].row;
    if (order[i].hash == order[i].row) offsets_[places_++] = static_cast<uint32_t>(i);
  }
  offsets_[places_] = static_cast<uint32_t>(count);
}

}  // namespace kith
