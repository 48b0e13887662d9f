// A matrix file of any format, open for reading: what VectorFile and IdFile share. Reads are const and thread-safe.
#pragma once

#include <kith/vector_file.hpp>

#include "io/file_format.hpp"
#include "io/npy_header.hpp"
#include "io/value_reader.hpp"

#include <string>

namespace kith {

class MatrixFile {
 public:
  // Checks the header, and, where it can be known without reading all, that the file has the size it promises.
  // `one_axis` is for .npy.
  explicit MatrixFile(const std::string& path, OneAxis one_axis = OneAxis::of_lists);

  const std::string& path() const { return name_.path; }
  FileFormat format() const { return name_.format; }
  const FileLayout& layout() const { return opened_.layout; }
  int64_t file_bytes() const { return file_bytes_; }
  const ValueReader& values() const { return *opened_.values; }

  // Throws InvalidArgument unless the rows first .. first + count - 1 are there.
  void check_rows(int64_t first, int64_t count) const;
  // The values `first` .. `first + count - 1`, counted along the rows.
  void read_values(int64_t first, int64_t count, void* out) const { opened_.values->read(first, count, out); }
  ReadMemory reserve_memory(const Resources& resources) const;

 private:
  FileName name_;
  int64_t file_bytes_ = 0;
  OpenedMatrix opened_;
};

}  // namespace kith
