// A filter in a file: row numbers, or one byte per row.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/row_filter.hpp>

#include <string>

namespace kith::cli {

class FilterFile {
 public:
  // Reads the whole file. An empty path means no filter.
  FilterFile(const std::string& path, const Resources& resources);

  // Valid as long as this object.
  const RowFilter& rows() const { return filter_; }

 private:
  HostArray<int64_t> rows_;
  MatrixBuffer mask_;
  RowFilter filter_;
};

}  // namespace kith::cli
