// Rows that can be read in any range, whatever holds them: a file, several files, or a class of the caller's (rows made
// by a generator, a remote store). VectorFile reads from one of these, so all calls that take files take them.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string>

namespace kith {

// A row as its file counts it.
struct RowPlace {
  std::string path;
  int64_t row = 0;
};

// Reads are const and may come from several threads at once.
class KITH_EXPORT RowReader {
 public:
  virtual ~RowReader() = default;

  // What errors call it.
  virtual const std::string& path() const = 0;
  // The dtype in which rows are stored; not f64.
  virtual DType dtype() const = 0;
  virtual int64_t rows() const = 0;
  virtual int64_t cols() const = 0;

  // The rows first .. first + count - 1, which are there, one behind the other.
  virtual void read_rows(int64_t first, int64_t count, void* out) const = 0;
  // The same into host memory where rows may be apart and of another dtype, by the rules of VectorFile::read.
  virtual void read(int64_t first, const MutableMatrixView& out) const;

  // The most host memory that reads take beside their output, and keep until it is freed.
  virtual int64_t memory_bytes() const { return 0; }
  virtual void free_memory() const {}

  // How many files the rows lie in, and where a row does.
  virtual int64_t files() const { return 1; }
  virtual RowPlace place_of(int64_t row) const { return {path(), row}; }
};

}  // namespace kith
