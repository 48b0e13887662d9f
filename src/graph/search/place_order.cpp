#include "graph/search/place_order.hpp"

#include "core/within_limits.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace kith {
namespace {

struct PlacedRow {
  uint32_t cell;
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
  for (int64_t i = 0; i < count; ++i) {
    order[i] = {cells[i], static_cast<uint32_t>(i), hash_of(rows + i * row_bytes, row_bytes)};
  }
  std::sort(order.begin(), order.end(), [&](const PlacedRow& a, const PlacedRow& b) {
    if (a.cell != b.cell) return a.cell < b.cell;
    if (a.hash != b.hash) return a.hash < b.hash;
    const int bytes = same(a.row, b.row);
    return bytes != 0 ? bytes < 0 : a.row < b.row;
  });
  for (int64_t i = 0; i < count;) {
    int64_t end = i + 1;
    while (end < count && order[end].cell == order[i].cell && order[end].hash == order[i].hash &&
           same(order[end].row, order[i].row) == 0) {
      ++end;
    }
    const uint32_t first = order[i].row;
    for (; i < end; ++i) order[i].hash = first;
  }
  std::sort(order.begin(), order.end(), [](const PlacedRow& a, const PlacedRow& b) {
    return std::tie(a.cell, a.hash, a.row) < std::tie(b.cell, b.hash, b.row);
  });
  places_ = 0;
  for (int64_t i = 0; i < count; ++i) {
    rows_[i] = order[i].row;
    if (order[i].hash == order[i].row) offsets_[places_++] = static_cast<uint32_t>(i);
  }
  offsets_[places_] = static_cast<uint32_t>(count);
}

}  // namespace kith
