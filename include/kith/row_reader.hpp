// A source of rows that can be read in any range: a file, several files, or a class of the caller's (a generator, a
// remote store). VectorFile wraps one, so every call that takes a file takes a RowReader too.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string>

namespace kith {

// A row by its file and its number in it.
struct RowPlace {
  std::string path;
  int64_t row = 0;
};

// Reads are const and may come from several threads at once.
class KITH_EXPORT RowReader {
 public:
  virtual ~RowReader() = default;

  // Its name in error messages.
  virtual const std::string& path() const = 0;
  // The stored dtype; not f64.
  virtual DType dtype() const = 0;
  virtual int64_t rows() const = 0;
  virtual int64_t cols() const = 0;

  // Rows first .. first + count - 1, which are in range, contiguous in `out`.
  virtual void read_rows(int64_t first, int64_t count, void* out) const = 0;
  // The same into host memory with gaps between rows or of another dtype, converted as by VectorFile::read.
  virtual void read(int64_t first, const MutableMatrixView& out) const;

  // The most host memory that reads use beside their output; they keep it until free_memory().
  virtual int64_t memory_bytes() const { return 0; }
  virtual void free_memory() const {}

  // The number of files, and the place of a row in them.
  virtual int64_t files() const { return 1; }
  virtual RowPlace place_of(int64_t row) const { return {path(), row}; }
};

}  // namespace kith
