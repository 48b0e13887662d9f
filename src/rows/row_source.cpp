#include "rows/row_source.hpp"

#include "rows/row_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

namespace kith {

BlockSource::BlockSource(ReusedVector<MatrixView> blocks) : blocks_(std::move(blocks)), info_(blocks_.front()) {
  info_.rows = 0;
  for (const MatrixView& block : blocks_) info_.rows += block.rows();
}

BlockSource::Block BlockSource::block_of(int64_t row, Block from) const {
  while (row - from.first_row >= blocks_[from.index].rows()) from.first_row += blocks_[from.index++].rows();
  return from;
}

int64_t BlockSource::together(int64_t first) const {
  const Block block = block_of(first, Block());
  return block.first_row + blocks_[block.index].rows() - first;
}

MatrixView BlockSource::fetch(int64_t first, int64_t count) {
  if (count == 0) return blocks_.front().slice(0, 0);
  const Block block = block_of(first, Block());
  return blocks_[block.index].slice(first - block.first_row, count);
}

void BlockSource::gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out,
                         const Resources& resources) {
  constexpr int64_t kBytesPerTask = 64 << 10;
  const int64_t bytes = info_.row_bytes();
  const int64_t per_task = std::max<int64_t>(1, kBytesPerTask / bytes);
  // Gathered rows are scattered in memory, so they are prefetched before they are copied.
  constexpr int64_t kLine = 64;
  constexpr int64_t kAheadBytes = 4096;
  const int64_t ahead = std::clamp<int64_t>(kAheadBytes / bytes, 1, 16);
  const int64_t fetched = std::min(bytes, kAheadBytes);
  const auto gather_some = [&](int64_t first, int64_t end) {
    Block block;
    Block next;
    for (int64_t i = first; i < end; ++i) {
      if (i + ahead < end) {
        next = block_of(rows[i + ahead], next);
        const auto* const row = blocks_[next.index].row(rows[i + ahead] - next.first_row);
        for (int64_t at = 0; at < fetched; at += kLine) __builtin_prefetch(row + at);
      }
      block = block_of(rows[i], block);
      std::memcpy(out.row(i), blocks_[block.index].row(rows[i] - block.first_row), static_cast<size_t>(bytes));
    }
  };
  // A part of a longer work, which reports its own progress.
  for_row_blocks("gather", count, resources.with_progress({}), gather_some, per_task);
}

void FileSource::open(int64_t most, const Resources& resources) {
  most_ = std::min(most, file_.rows());
  for (int i = 0; i < (most_ < file_.rows() ? 2 : 1); ++i) {
    buffers_[i] = MatrixBuffer(file_.dtype(), most_, file_.cols(), "rows read from a file", resources);
  }
}

MutableMatrixView FileSource::piece(int buffer, int64_t count) {
  return buffers_[buffer].mutable_view().slice(0, count);
}

void FileSource::read_ahead(int64_t first, int64_t count) {
  const MutableMatrixView out = piece(1 - used_, count);
  const auto read = [this, first, out] { file_.read(first, out); };
  ahead_first_ = first;
  ahead_count_ = count;
  try {
    ahead_ = std::async(std::launch::async, read);
  } catch (const std::system_error&) {  // no thread is to be had: it is read when it is asked for
    ahead_ = std::async(std::launch::deferred, read);
  }
}

MatrixView FileSource::fetch(int64_t first, int64_t count) {
  if (ahead_.valid()) {
    const bool wanted = first == ahead_first_ && count <= ahead_count_;
    std::future<void> read = std::exchange(ahead_, {});
    if (wanted) {
      used_ = 1 - used_;
      read.get();
    } else {
      read.wait();  // its error, if any, concerned rows that are no longer needed
      file_.read(first, piece(used_, count));
    }
  } else {
    file_.read(first, piece(used_, count));
  }
  // A fetch of single rows does not start reading ahead.
  const int64_t next = first + count;
  if (count == most_ && next < file_.rows()) read_ahead(next, std::min(most_, file_.rows() - next));
  return piece(used_, count);
}

void FileSource::gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) {
  for (int64_t i = 0; i < count;) {
    int64_t run = 1;
    while (i + run < count && rows[i + run] == rows[i] + run) ++run;
    file_.read(rows[i], out.slice(i, run));
    i += run;
    if (i % 1024 < run) resources.check_cancelled();
  }
}

}  // namespace kith
