// A source of rows piece by piece, from memory or from a file: the queries and the base of a search, the data of
// k-means. All passes over rows use one of these.
//
// Files: after a fetch of a whole piece a thread reads the next one while the caller works, so that a pass over all
// rows seldom waits. Gathered rows that follow each other are one read.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "core/reused_memory.hpp"
#include "rows/rows_info.hpp"

#include <cstdint>
#include <future>
#include <vector>

namespace kith {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual RowsInfo info() const = 0;
  int64_t rows() const { return info().rows; }
  MemorySpace space() const { return info().space; }

  // How many rows, from `first` on, one fetch may return.
  virtual int64_t together(int64_t first) const { return rows() - first; }
  // Call before the first fetch: at most `most` rows will be fetched at a time. Allocates info().read_bytes(most).
  virtual void open(int64_t, const Resources&) {}
  // The result is valid until the next fetch.
  virtual MatrixView fetch(int64_t first, int64_t count) = 0;
  // Copies the listed rows to the host. Rows of several blocks must be listed in ascending order.
  virtual void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out,
                      const Resources& resources) = 0;

  // The source from which these rows are made, by transforms for example, so that a caller can make only a few of them.
  // Null if rows are as stored.
  virtual RowSource* made_from() { return nullptr; }
  // Makes rows of this source from rows of made_from(); both in host memory or in that of one GPU.
  virtual void make(const MatrixView&, const MutableMatrixView&, const Resources&) {}
};

// Rows in memory, in blocks with consecutive numbers. gather() requires host-readable memory.
class BlockSource : public RowSource {
 public:
  // At least one block; all of one dtype and in one memory space.
  explicit BlockSource(ReusedVector<MatrixView> blocks);

  RowsInfo info() const override { return info_; }
  int64_t together(int64_t first) const override;
  MatrixView fetch(int64_t first, int64_t count) override;
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override;

 private:
  // A block and the number of its first row.
  struct Block {
    size_t index = 0;
    int64_t first_row = 0;
  };
  // The block that holds a row, searched from `from` on.
  Block block_of(int64_t row, Block from) const;

  ReusedVector<MatrixView> blocks_;
  RowsInfo info_;
};

class ViewSource final : public BlockSource {
 public:
  explicit ViewSource(const MatrixView& view) : BlockSource({view}) {}
};

class FileSource final : public RowSource {
 public:
  explicit FileSource(const VectorFile& file) : file_(file) {}

  RowsInfo info() const override { return RowsInfo(file_); }
  void open(int64_t most, const Resources& resources) override;
  MatrixView fetch(int64_t first, int64_t count) override;
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override;

 private:
  MutableMatrixView piece(int buffer, int64_t count);
  void read_ahead(int64_t first, int64_t count);

  const VectorFile& file_;
  MatrixBuffer buffers_[2];
  int64_t most_ = 0;
  int used_ = 0;  // the buffer of the last fetch
  int64_t ahead_first_ = -1;
  int64_t ahead_count_ = 0;
  std::future<void> ahead_;  // the last member: it ends first
};

}  // namespace kith
