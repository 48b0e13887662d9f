#include "graph/build/method/folder_sink.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "io/disk.hpp"
#include "io/same_disk.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace kith {

int64_t FolderSink::bytes_beside(const std::string& folder) const {
  const int64_t value = (form_.int32_ids ? 4 : 8) + (form_.ids_only ? 0 : 4);
  const int64_t bytes = shape_.rows * shape_.k * value;
  real_disk().make_folder(folder_);
  if (on_the_same_disk(folder_, folder)) return bytes;
  const int64_t free = real_disk().free_bytes(folder_);
  if (free >= bytes) return 0;
  throw IoError(
      fmt::format("not enough space for the graph in '{}': {} ({} bytes) are needed, {} are free; free some, or "
                  "name a folder on another disk",
                  folder_, format_bytes(bytes), bytes, format_bytes(free)),
      folder_, ENOSPC);
}

void FolderSink::begin() {
  writer_.reset();
  writer_ = std::make_unique<GraphFolderWriter>(folder_, shape_.rows, shape_.k, form_);
}

void FolderSink::finish(const GraphReport& report) {
  if (report.reached || !exact_follows_) writer_->finish(metric_, report);
  writer_.reset();
}

}  // namespace kith
