// Records for rows of other blocks on their way through a step of a work folder: gathered in memory, and written by the
// block of their row whenever the memory is full.
//
// A step has sections for each such time: one for every block, in order. What follows them is the caller's.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "io/work_folder.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kith {

// Record: trivially copyable, with the row that it is for in `row`.
template <typename Record>
class RecordSpill {
 public:
  // With room for so many records; rows / block_rows is the block of a row.
  RecordSpill(int64_t room, int64_t rows, int64_t block_rows, const Resources& resources)
      : records_(room, "records for other blocks", resources),
        sorted_(room, "records for other blocks", resources),
        block_rows_(block_rows),
        ends_(static_cast<size_t>((rows + block_rows - 1) / block_rows), 0) {}

  int64_t room() const { return records_.size(); }
  bool has_room(int64_t records) const { return count_.load() + records <= records_.size(); }
  // On any thread; there must be room.
  void add(const Record& record) { records_[count_.fetch_add(1, std::memory_order_relaxed)] = record; }
  void flush(StepWriter& step) {
    const int64_t count = count_.load();
    if (count == 0) return;
    std::fill(ends_.begin(), ends_.end(), 0);
    for (int64_t i = 0; i < count; ++i) ++ends_[block_of(records_[i])];
    int64_t at = 0;
    for (int64_t& end : ends_) at += std::exchange(end, at);  // where the block begins, for now
    for (int64_t i = 0; i < count; ++i) sorted_[ends_[block_of(records_[i])]++] = records_[i];
    int64_t first = 0;
    for (const int64_t end : ends_) {
      step.add(std::as_bytes(std::span(sorted_.data() + first, static_cast<size_t>(end - first))));
      first = end;
    }
    count_ = 0;
  }

 private:
  size_t block_of(const Record& record) const { return static_cast<size_t>(record.row / block_rows_); }

  const HostArray<Record> records_;
  const HostArray<Record> sorted_;
  const int64_t block_rows_;
  std::atomic<int64_t> count_{0};
  std::vector<int64_t> ends_;  // of the blocks in sorted_
};

}  // namespace kith
