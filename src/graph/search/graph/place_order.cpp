#include "graph/search/graph/place_order.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kPieceRows = 65536;  // at least, of a task that puts rows into cells
constexpr int64_t kTaskRows = 4096;    // of a task that looks at rows
constexpr uint64_t kNoEntry = ~uint64_t{0};

// Slots of a table for `rows` rows: so many that a search for a row soon comes to a free one.
constexpr int64_t table_slots(int64_t rows) { return rows + rows / 2; }

// Any hash will do, since equal rows are recognised by their bytes.
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

// The rows of one cell, ascending, and for each of them the first row that has equal bytes.
struct CellRows {
  uint32_t* rows;
  uint32_t* firsts;
  int64_t count;
  uint64_t* table;  // table_slots(count)
};

// Fills `firsts`. An entry of the table is the low half of a first row's hash, then its number in the cell.
// Returns whether any two rows are equal.
template <typename HashOf, typename Same>
bool find_first_rows(const CellRows& cell, const HashOf& hash_of_row, const Same& same) {
  const auto slots = static_cast<uint64_t>(table_slots(cell.count));
  std::fill_n(cell.table, slots, kNoEntry);
  bool any = false;
  for (int64_t i = 0; i < cell.count; ++i) {
    const uint32_t row = cell.rows[i];
    const uint64_t hash = hash_of_row(row);
    cell.firsts[i] = row;
    for (uint64_t slot = (hash >> 32) * slots >> 32;; slot = slot + 1 == slots ? 0 : slot + 1) {
      const uint64_t entry = cell.table[slot];
      if (entry == kNoEntry) {
        cell.table[slot] = hash << 32 | static_cast<uint64_t>(i);
        break;
      }
      const uint32_t other = cell.rows[static_cast<uint32_t>(entry)];
      if (entry >> 32 != (hash & 0xFFFFFFFFU) || !same(row, other)) continue;
      cell.firsts[i] = other;
      any = true;
      break;
    }
  }
  return any;
}

// By the first equal row, then by row. The table serves as memory.
void order_by_first_rows(const CellRows& cell) {
  for (int64_t i = 0; i < cell.count; ++i) cell.table[i] = uint64_t{cell.firsts[i]} << 32 | cell.rows[i];
  std::sort(cell.table, cell.table + cell.count);
  for (int64_t i = 0; i < cell.count; ++i) {
    cell.firsts[i] = static_cast<uint32_t>(cell.table[i] >> 32);
    cell.rows[i] = static_cast<uint32_t>(cell.table[i]);
  }
}

}  // namespace

PlaceOrder::PlaceOrder(const std::byte* rows, int64_t row_bytes, int64_t count, const uint32_t* cells,
                       const Resources& resources)
    : places_(count) {
  HostArray<uint32_t> offsets(count + 1, "the places of rows", resources);
  HostArray<uint32_t> in_order(count, "the places of rows", resources);
  HostArray<uint32_t> firsts(count, "the order of rows", resources);
  HostArray<uint64_t> tables(table_slots(count), "the order of rows", resources);
  if (counts_only(resources)) {
    offsets_ = std::move(offsets);
    rows_ = std::move(in_order);
    return;
  }
  const auto same = [&](uint32_t a, uint32_t b) {
    return std::memcmp(rows + a * row_bytes, rows + b * row_bytes, static_cast<size_t>(row_bytes)) == 0;
  };
  // Rows cell by cell, in pieces of which each knows where its rows go; then each cell for itself.
  const uint32_t cell_count = count > 0 ? *std::max_element(cells, cells + count) + 1 : 0;
  const int64_t pieces = std::clamp<int64_t>(count / kPieceRows, 1, resources.threads());
  std::vector<int64_t> next(static_cast<size_t>(pieces * cell_count), 0);
  const auto by_pieces = [&](const auto& work) {
    ProgressMeter some("order", pieces, resources);
    parallel_for(pieces, some, resources, [&](int64_t piece, int) {
      int64_t* const own = next.data() + piece * cell_count;
      for (int64_t i = piece * count / pieces; i < (piece + 1) * count / pieces; ++i) work(i, own[cells[i]]);
    });
  };
  by_pieces([](int64_t, int64_t& counted) { ++counted; });
  std::vector<int64_t> ends(cell_count + 1, 0);
  for (uint32_t cell = 0; cell < cell_count; ++cell) {
    int64_t at = ends[cell];
    for (int64_t piece = 0; piece < pieces; ++piece) {
      at += std::exchange(next[static_cast<size_t>(piece * cell_count + cell)], at);
    }
    ends[cell + 1] = at;
  }
  by_pieces([&](int64_t i, int64_t& to) { in_order[to++] = static_cast<uint32_t>(i); });
  std::vector<int64_t> first_places(cell_count + 1, 0);
  ProgressMeter meter("order", cell_count, resources);
  parallel_for(cell_count, meter, resources, [&](int64_t cell, int) {
    const int64_t begin = ends[static_cast<size_t>(cell)];
    const CellRows own{in_order.data() + begin, firsts.data() + begin, ends[static_cast<size_t>(cell) + 1] - begin,
                       tables.data() + table_slots(begin)};
    const auto hash_of_row = [&](uint32_t row) { return hash_of(rows + row * row_bytes, row_bytes); };
    if (find_first_rows(own, hash_of_row, same)) order_by_first_rows(own);
    int64_t own_places = 0;
    for (int64_t i = 0; i < own.count; ++i) own_places += own.firsts[i] == own.rows[i] ? 1 : 0;
    first_places[static_cast<size_t>(cell) + 1] = own_places;
    meter.add(1);
  });
  std::partial_sum(first_places.begin(), first_places.end(), first_places.begin());
  parallel_for(cell_count, meter, resources, [&](int64_t cell, int) {
    int64_t place = first_places[static_cast<size_t>(cell)];
    for (int64_t i = ends[static_cast<size_t>(cell)]; i < ends[static_cast<size_t>(cell) + 1]; ++i) {
      if (firsts[i] == in_order[i]) offsets[place++] = static_cast<uint32_t>(i);
    }
  });
  meter.finish();
  places_ = first_places.back();
  offsets[places_] = static_cast<uint32_t>(count);
  offsets_ = {std::move(offsets), places_ + 1};
  rows_ = std::move(in_order);
}

// Cells by a hash serve the threads: equal rows have one.
PlaceOrder PlaceOrder::by_first_row(const std::byte* rows, int64_t row_bytes, int64_t count,
                                    const Resources& resources) {
  constexpr int kHashCells = 256;
  HostArray<uint32_t> numbers(count, "the places of rows", resources);
  const auto for_rows = [&](const auto& work) {
    const int64_t tasks = divide_up(count, kTaskRows);
    ProgressMeter meter("order", tasks, resources);
    parallel_for(tasks, meter, resources, [&](int64_t task, int) {
      for (int64_t i = task * kTaskRows; i < std::min((task + 1) * kTaskRows, count); ++i) work(i);
    });
  };
  const bool works = !counts_only(resources);
  if (works) {
    for_rows(
        [&](int64_t i) { numbers[i] = static_cast<uint32_t>(hash_of(rows + i * row_bytes, row_bytes)) % kHashCells; });
  }
  const PlaceOrder hashed(rows, row_bytes, count, numbers.data(), resources);
  if (!works) {
    PlaceOrder counted = hashed;
    counted.offsets_ = HostArray<uint32_t>(count + 1, "the places of rows", resources);
    counted.rows_ = HostArray<uint32_t>(count, "the places of rows", resources);
    return counted;
  }
  // First rows are numbered; then every row has the number of its place's first.
  std::fill(numbers.begin(), numbers.end(), 0U);
  for (int64_t place = 0; place < hashed.places(); ++place) numbers[hashed.first_row(place)] = 1;
  std::exclusive_scan(numbers.begin(), numbers.end(), numbers.begin(), 0U);
  const PlaceRows all = hashed.view();
  for (int64_t place = 0; place < hashed.places(); ++place) {
    const uint32_t number = numbers[hashed.first_row(place)];
    all.visit(static_cast<uint32_t>(place), [&](uint32_t row) { numbers[row] = number; });
  }
  return from_places(numbers, hashed.places(), resources);
}

PlaceOrder PlaceOrder::followed_by(const PlaceOrder& others, const Resources& resources) const {
  PlaceOrder both = *this;
  const auto first_row = static_cast<uint32_t>(row_count());
  const auto behind = [&](uint32_t other) { return first_row + other; };
  both.places_ += others.places_;
  both.offsets_ = offsets_.appended(others.places_, "the places of rows", resources, [&](uint32_t* to) {
    std::transform(others.offsets_.begin() + 1, others.offsets_.end(), to, behind);
  });
  both.rows_ = rows_.appended(others.row_count(), "the places of rows", resources, [&](uint32_t* to) {
    std::transform(others.rows_.begin(), others.rows_.end(), to, behind);
  });
  return both;
}

PlaceOrder PlaceOrder::from_places(const HostArray<uint32_t>& place_of, int64_t places, const Resources& resources) {
  HostArray<uint32_t> offsets(places + 1, "the places of rows", resources);
  HostArray<uint32_t> rows(place_of.size(), "the places of rows", resources);
  std::fill(offsets.begin(), offsets.end(), 0U);
  for (const uint32_t place : place_of) ++offsets[place + 1];
  for (int64_t place = 0; place < places; ++place) offsets[place + 1] += offsets[place];
  for (int64_t row = 0; row < place_of.size(); ++row) rows[offsets[place_of[row]]++] = static_cast<uint32_t>(row);
  std::copy_backward(offsets.begin(), offsets.begin() + places, offsets.begin() + places + 1);
  offsets[0] = 0;
  return {std::move(offsets), std::move(rows), places};
}

}  // namespace kith
