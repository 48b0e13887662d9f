#include "index/id_table.hpp"

#include <kith/error.hpp>

#include "index/block_merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace kith {
namespace {

HostArray<int64_t> id_array(int64_t count, const Resources& resources) { return {count, "the ids", resources}; }

}  // namespace

std::shared_ptr<const IdTable::Block> IdTable::make_block(HostArray<int64_t> ids, int64_t first_row,
                                                          const Resources& resources) {
  auto block = std::make_shared<Block>();
  block->first_row = first_row;
  block->ids = std::move(ids);
  const HostArray<int64_t>& own = block->ids;
  if (std::is_sorted(own.begin(), own.end())) return block;
  block->by_id = HostArray<uint32_t>(own.size(), "the order of the ids", resources);
  std::iota(block->by_id.begin(), block->by_id.end(), 0u);
  std::sort(block->by_id.begin(), block->by_id.end(), [&](uint32_t a, uint32_t b) { return own[a] < own[b]; });
  return block;
}

int64_t IdTable::Block::place(int64_t id) const {
  if (by_id.size() == 0) {
    const int64_t* at = std::lower_bound(ids.begin(), ids.end(), id);
    return at != ids.end() && *at == id ? at - ids.begin() : -1;
  }
  const uint32_t* at =
      std::lower_bound(by_id.begin(), by_id.end(), id, [this](uint32_t p, int64_t wanted) { return ids[p] < wanted; });
  return at != by_id.end() && ids[*at] == id ? int64_t{*at} : -1;
}

IdTable::IdTable(const int64_t* ids, int64_t rows, int64_t next_id, const Resources& resources)
    : rows_(rows), next_id_(next_id) {
  if (ids == nullptr || rows == 0) return;
  HostArray<int64_t> copy = id_array(rows, resources);
  std::copy(ids, ids + rows, copy.begin());
  blocks_.push_back(make_block(std::move(copy), 0, resources));
}

IdTable IdTable::row_numbers(int64_t rows) {
  IdTable table;
  table.rows_ = rows;
  table.next_id_ = rows;
  return table;
}

int64_t IdTable::bytes() const {
  int64_t total = 0;
  for (const auto& block : blocks_) total += block->ids.bytes() + block->by_id.bytes();
  return total;
}

int64_t IdTable::id(int64_t row) const {
  if (plain()) return row;
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), row,
                                      [](int64_t wanted, const auto& block) { return wanted < block->first_row; });
  const Block& block = **(after - 1);
  return block.ids[row - block.first_row];
}

void IdTable::rows_to_ids(int64_t* rows, int64_t count) const {
  if (plain()) return;
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] >= 0) rows[i] = id(rows[i]);
  }
}

int64_t IdTable::row(int64_t id) const {
  if (plain()) return id >= 0 && id < rows_ ? id : -1;
  for (const auto& block : blocks_) {
    const int64_t place = block->place(id);
    if (place >= 0) return block->first_row + place;
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
          fmt::format("id {} of row {} is in the index already; remove it first. Nothing was added", ids[i], i));
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
  IdTable after = *this;
  after.rows_ += count;
  after.next_id_ = next_id;
  // The new ids, and before them those of the blocks that are merged with them; all where there was no table.
  Blocks& blocks = after.blocks_;
  const size_t stay = blocks_that_stay(blocks.size(), count, [&](size_t b) { return blocks[b]->size(); });
  const int64_t first_row = plain() ? 0 : stay < blocks.size() ? blocks[stay]->first_row : rows_;
  blocks.resize(stay);
  HostArray<int64_t> merged = id_array(after.rows_ - first_row, resources);
  for (int64_t row = first_row; row < rows_; ++row) merged[row - first_row] = id(row);
  write(merged.data() + (rows_ - first_row));
  blocks.push_back(make_block(std::move(merged), first_row, resources));
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
  if (plain() && next_id_ == rows_) return row_numbers(rows_ + count);
  return grown(count, next_id_ + count, resources, [&](int64_t* to) { std::iota(to, to + count, next_id_); });
}

int64_t IdTable::added_bytes(bool given, int64_t count) const {
  if (!given && plain() && next_id_ == rows_) return 0;
  return (rows_ + count) * static_cast<int64_t>(sizeof(int64_t) + sizeof(uint32_t)) + array_bytes<int64_t>(count);
}

IdTable IdTable::joined(const IdTable& other, bool shift, const Resources& resources) const {
  const int64_t count = other.rows();
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
    const bool numbers = plain() && next_id_ == rows_ && other.plain() && other.next_id_ == count;
    if (numbers) return row_numbers(rows_ + count);
    return grown(count, next_id_ + other.next_id_, resources, write(next_id_));
  }
  for (int64_t row = 0; row < count; ++row) {
    if (this->row(other.id(row)) < 0) continue;
    throw InvalidArgument(
        fmt::format("id {} is in both indexes, and an id names one vector: remove it from one of them, or merge with "
                    "shift_ids, which gives the other's vectors ids behind those here. Nothing was merged",
                    other.id(row)));
  }
  if (rows_ == 0 && other.plain() && next == count) return row_numbers(count);
  return grown(count, next, resources, write(0));
}

IdTable IdTable::kept(const KeptRows& kept, const Resources& resources) const {
  IdTable after;
  after.rows_ = kept.count();
  after.next_id_ = next_id_;
  if (!kept.leaves_some_out()) return *this;
  if (kept.count() == 0) {  // a table all the same: the next row is not its own id
    after.blocks_.clear();
    return after;
  }
  HostArray<int64_t> left = id_array(kept.count(), resources);
  int64_t at = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    if (keeps(kept.bits(), row)) left[at++] = id(row);
  }
  after.blocks_.push_back(make_block(std::move(left), 0, resources));
  return after;
}

}  // namespace kith
