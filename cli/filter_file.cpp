#include "filter_file.hpp"

#include <kith/column_file.hpp>
#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace kith::cli {
namespace {

// The reader speaks of vectors where a dtype is none that it knows.
FileContent content_in(const std::string& path) {
  try {
    return content_of(path);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("--filter holds row numbers (int32, int64), or a bool or uint8 for each row; {}", error.what()));
  }
}

}  // namespace

FilterFile::FilterFile(const std::string& path, const Resources& resources) {
  if (path.empty()) return;
  if (content_in(path) == FileContent::ids) {
    const IdFile file(path);
    const int64_t count = file.rows() * file.cols();
    const ReadMemory memory = file.reserve_memory(resources);
    rows_ = HostArray<int64_t>(count, "the filter's rows", resources);
    file.read(0, file.rows(), rows_.data());
    filter_ = RowFilter::rows(rows_.data(), count);
    return;
  }
  const FileInfo file = file_info(path);
  if (file.dtype != name_of(DType::u8) || std::min(file.rows, file.cols) > 1) {
    throw InvalidArgument(fmt::format("--filter {} holds {} x {} {}; a mask is one row or column of u8", path,
                                      file.rows, file.cols, file.dtype));
  }
  mask_ = read_column(path, resources);
  filter_ = RowFilter::mask(static_cast<const uint8_t*>(mask_.view().data()), mask_.rows());
}

}  // namespace kith::cli
