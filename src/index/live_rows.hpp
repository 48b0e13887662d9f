// Which of an index's stored rows are live. A stored row is a place in what the index keeps, fixed until compaction;
// removal marks it as dead and touches nothing else. Callers count live rows alone: masks, size(), files.
//
// Immutable, and shared between versions. Memory: stored rows / 8 bytes, none where nothing is dead.
#pragma once

#include <kith/resources.hpp>
#include <kith/row_filter.hpp>

#include "core/host_array.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace kith {

class LiveRows {
 public:
  // `stored` rows, all live.
  explicit LiveRows(int64_t stored = 0) : stored_(stored) {}

  int64_t stored() const { return stored_; }
  int64_t dead() const { return dead_; }
  int64_t count() const { return stored_ - dead_; }
  bool all() const { return dead_ == 0; }
  bool has(int64_t row) const { return all() || keeps(bits(), row); }
  // Whether so many are dead that they should be dropped: a fifth.
  bool wants_compaction() const { return dead_ > 0 && 5 * dead_ >= stored_; }

  // Bit i % 64 of word i / 64 for stored row i; null where all are live.
  const uint64_t* bits() const { return bits_ == nullptr ? nullptr : bits_->data(); }
  // A filter of the stored rows; none where all are live.
  RowFilter filter() const;

  int64_t bytes() const { return bits_ == nullptr ? 0 : bits_->bytes(); }
  static int64_t bytes_for(int64_t stored) { return array_bytes<uint64_t>(KeptRows::words_for(stored)); }

  // With `count` more rows, live ones.
  LiveRows grown(int64_t count, const Resources& resources) const;

  // Less the rows that `name` calls its argument with; one that is dead already, or named twice, counts once.
  template <typename Name>
  LiveRows without(const Name& name, const Resources& resources) const {
    HostArray<uint64_t> left = copy_of_bits(stored_, resources);
    int64_t dead = dead_;
    name([&](int64_t row) {
      dead += keeps(left.data(), row);
      left[row / 64] &= ~(uint64_t{1} << (row % 64));
    });
    return dead == dead_ ? *this : LiveRows(stored_, dead, std::move(left));
  }

  // Bits of the stored rows for a filter's bits of the live rows: the i-th live row takes bit i.
  HostArray<uint64_t> spread(const uint64_t* of_live, const Resources& resources) const;

 private:
  LiveRows(int64_t stored, int64_t dead, HostArray<uint64_t> bits)
      : stored_(stored), dead_(dead), bits_(std::make_shared<const HostArray<uint64_t>>(std::move(bits))) {}
  // For so many rows; those that are not stored yet are live, as are all bits behind the last row.
  HostArray<uint64_t> copy_of_bits(int64_t rows, const Resources& resources) const;

  int64_t stored_;
  int64_t dead_ = 0;
  std::shared_ptr<const HostArray<uint64_t>> bits_;  // null where nothing is dead
};

}  // namespace kith
