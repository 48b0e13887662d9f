// Rows that can be had piece by piece, from memory or from a file: the queries and the base of a search, the data of
// k-means. Whoever goes over rows goes over one of these.
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

  // How many rows, from `first` on, one fetch may bring.
  virtual int64_t together(int64_t first) const { return rows() - first; }
  // Before the first fetch: up to `most` rows will be fetched at a time. Takes info().read_bytes(most).
  virtual void open(int64_t, const Resources&) {}
  // What is returned stays valid until the next fetch.
  virtual MatrixView fetch(int64_t first, int64_t count) = 0;
  // Copies the listed rows to the host. Where they lie in several blocks they must ascend.
  virtual void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out,
                      const Resources& resources) = 0;

  // Where rows are made from others, as transforms do, those others; whoever wants a few then makes them from a few.
  // Null where rows are as they lie.
  virtual RowSource* made_from() { return nullptr; }
  // Rows, as info() has them, from some of the others; both in host memory or in that of one GPU.
  virtual void make(const MatrixView&, const MutableMatrixView&, const Resources&) {}
};

// Rows in memory, in blocks that are numbered through. Only those that the host can read are gathered.
class BlockSource : public RowSource {
 public:
  // At least one block; all of one type and in one kind of memory.
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
  // The one that holds a row, not before the one given.
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
