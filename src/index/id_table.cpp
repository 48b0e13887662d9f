#include "index/id_table.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>

namespace kith {
namespace {

HostArray<int64_t> id_array(int64_t count, const Resources& resources) { return {count, "the ids", resources}; }

}  // namespace

IdTable::RowIds::RowIds(HostArray<int64_t> given, const Resources& resources) : ids(std::move(given)) {
  if (std::is_sorted(ids.begin(), ids.end())) return;
  by_id = HostArray<uint32_t>(ids.size(), "the order of the ids", resources);
  std::iota(by_id.begin(), by_id.end(), 0u);
  std::sort(by_id.begin(), by_id.end(), [&](uint32_t a, uint32_t b) { return ids[a] < ids[b]; });
}

int64_t IdTable::RowIds::place(int64_t id, int64_t first_row, const LiveRows& live) const {
  const auto place_of = [&](int64_t rank) { return by_id.size() == 0 ? rank : int64_t{by_id[rank]}; };
  const auto id_of = [&](int64_t rank) { return ids[place_of(rank)]; };
  const auto ranks = std::views::iota(int64_t{0}, size());
  auto at = std::ranges::lower_bound(ranks, id, {}, id_of);
  for (; at != ranks.end() && id_of(*at) == id; ++at) {  // dead rows may have had the same
    if (live.has(first_row + place_of(*at))) return place_of(*at);
  }
  return -1;
}

IdTable::IdTable(const int64_t* ids, int64_t rows, int64_t next_id, const Resources& resources)
    : live_(rows), next_id_(next_id) {
  if (ids == nullptr || rows == 0) return;
  HostArray<int64_t> copy = id_array(rows, resources);
  std::copy(ids, ids + rows, copy.begin());
  ids_.push_back(std::make_shared<RowIds>(std::move(copy), resources));
}

IdTable IdTable::numbered(int64_t count, const Resources& resources) const {
  IdTable after;
  after.live_ = live_.grown(count, resources);
  after.next_id_ = after.live_.stored();
  return after;
}

int64_t IdTable::bytes() const {
  return ids_.sum([](const RowIds& segment) { return segment.bytes(); });
}

int64_t IdTable::id(int64_t row) const {
  if (plain()) return row;
  const size_t segment = ids_.number_of(row);
  return ids_.all()[segment]->ids[row - ids_.first_row(segment)];
}

void IdTable::rows_to_ids(int64_t* rows, int64_t count) const {
  if (plain()) return;
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] >= 0) rows[i] = id(rows[i]);
  }
}

int64_t IdTable::row(int64_t id) const {
  if (plain()) return id >= 0 && id < live_.stored() && live_.has(id) ? id : -1;
  for (size_t i = 0; i < ids_.count(); ++i) {
    const int64_t place = ids_.all()[i]->place(id, ids_.first_row(i), live_);
    if (place >= 0) return ids_.first_row(i) + place;
  }
  return -1;
}

void IdTable::refuse_bad(const int64_t* ids, int64_t count, const Resources& resources) const {
  HostArray<int64_t> sorted = id_array(count, resources);
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] == std::numeric_limits<int64_t>::max()) {
      throw InvalidArgument(
          fmt::format("id {} of row {} is not allowed: ids are at least 0 and below 2^63 - 1; nothing "
                      "was added",
                      ids[i], i));
    }
    if (row(ids[i]) >= 0) {
      throw InvalidArgument(
          fmt::format("id {} of row {} is in the index already; remove it first, or replace it (Python: replace=True). "
                      "Nothing was added",
                      ids[i], i));
    }
    sorted[i] = ids[i];
  }
  std::sort(sorted.begin(), sorted.end());
  const int64_t* twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw InvalidArgument(fmt::format("id {} is given to two rows; ids must differ. Nothing was added", *twice));
  }
}

template <typename Write>
IdTable IdTable::grown(int64_t count, int64_t next_id, const Resources& resources, const Write& write) const {
  const int64_t rows = live_.stored();
  IdTable after = *this;
  after.live_ = live_.grown(count, resources);
  after.next_id_ = next_id;
  // The new ids, preceded by those of the segments that they are merged with, or by all if there was no table.
  const size_t stay = ids_.staying(count);
  const int64_t first_row = ids_.first_row(stay);
  HostArray<int64_t> merged = id_array(rows + count - first_row, resources);
  for (int64_t row = first_row; row < rows; ++row) merged[row - first_row] = id(row);
  write(merged.data() + (rows - first_row));
  after.ids_ = ids_.with(stay, std::make_shared<RowIds>(std::move(merged), resources));
  return after;
}

IdTable IdTable::added(const int64_t* ids, int64_t count, const Resources& resources) const {
  if (count == 0) return *this;
  if (ids != nullptr) {
    refuse_bad(ids, count, resources);
    const int64_t next = std::max(next_id_, *std::max_element(ids, ids + count) + 1);
    return grown(count, next, resources, [&](int64_t* to) { std::copy(ids, ids + count, to); });
  }
  if (next_id_ > std::numeric_limits<int64_t>::max() - count) {
    throw InvalidArgument("no ids are left above the largest one; give the new rows ids of their own");
  }
  if (plain() && next_id_ == live_.stored()) return numbered(count, resources);
  return grown(count, next_id_ + count, resources, [&](int64_t* to) { std::iota(to, to + count, next_id_); });
}

int64_t IdTable::added_bytes(bool given, int64_t count) const {
  const int64_t bits = live_.all() ? 0 : LiveRows::bytes_for(live_.stored() + count);
  if (!given && plain() && next_id_ == live_.stored()) return bits;
  return bits + (live_.stored() + count) * static_cast<int64_t>(sizeof(int64_t) + sizeof(uint32_t)) +
         array_bytes<int64_t>(count);
}

IdTable IdTable::joined(const IdTable& other, bool shift, const Resources& resources) const {
  const int64_t count = other.live().stored();
  const int64_t next = std::max(next_id_, other.next_id_);
  if (count == 0) {
    IdTable after = *this;
    after.next_id_ = next;
    return after;
  }
  const auto write = [&](int64_t by) {
    return [&other, count, by](int64_t* to) {
      for (int64_t row = 0; row < count; ++row) to[row] = other.id(row) + by;
    };
  };
  if (shift) {
    if (next_id_ > std::numeric_limits<int64_t>::max() - other.next_id_) {
      throw InvalidArgument(
          fmt::format("the other index's ids, up to {}, cannot be moved behind {}: there are none left above it",
                      other.next_id_ - 1, next_id_ - 1));
    }
    const bool numbers = plain() && next_id_ == live_.stored() && other.plain() && other.next_id_ == count;
    if (numbers) return numbered(count, resources);
    return grown(count, next_id_ + other.next_id_, resources, write(next_id_));
  }
  for (int64_t row = 0; row < count; ++row) {
    if (this->row(other.id(row)) < 0) continue;
    throw InvalidArgument(
        fmt::format("id {} is in both indexes, and an id names one vector: remove it from one of them, or merge with "
                    "shift_ids, which gives the other's vectors ids behind those here. Nothing was merged",
                    other.id(row)));
  }
  if (live_.stored() == 0 && other.plain() && next == count) return numbered(count, resources);
  return grown(count, next, resources, write(0));
}

IdTable IdTable::without(const int64_t* ids, int64_t count, const Resources& resources) const {
  IdTable after = *this;
  const auto name = [&](const auto& dies) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t found = row(ids[i]);
      if (found >= 0) dies(found);
    }
  };
  after.live_ = live_.without(name, resources);
  return after;
}

IdTable IdTable::kept(const KeptRows& kept, const Resources& resources) const {
  if (!kept.leaves_some_out()) return *this;
  IdTable after;
  after.live_ = LiveRows(kept.count());
  after.next_id_ = next_id_;
  if (kept.count() == 0) return after;  // the next row is not its own id
  HostArray<int64_t> left = id_array(kept.count(), resources);
  int64_t at = 0;
  for (int64_t row = 0; row < live_.stored(); ++row) {
    if (keeps(kept.bits(), row)) left[at++] = id(row);
  }
  after.ids_.push_back(std::make_shared<RowIds>(std::move(left), resources));
  return after;
}

}  // namespace kith
