#include "capi/arguments.hpp"
#include "capi/status.hpp"

#include <kith/file_info.hpp>
#include <kith/vector_file.hpp>

#include <algorithm>
#include <string>

namespace kith::capi {
namespace {

// The rest of `to` is 0 already.
template <size_t size>
void copy_text(const std::string& text, char (&to)[size]) {
  std::copy_n(text.data(), std::min(text.size(), size - 1), to);
}

}  // namespace

}  // namespace kith::capi

using namespace kith;
using namespace kith::capi;

extern "C" {

kith_status kith_file_get_info(const char* path, kith_file_info* out) {
  return guarded([&] {
    const FileInfo info = file_info(required_text(path, "path"));
    kith_file_info told = {};
    told.rows = info.rows;
    told.cols = info.cols;
    told.file_bytes = info.file_bytes;
    told.holds_ids = info.content == FileContent::ids ? 1 : 0;
    copy_text(info.format, told.format);
    copy_text(info.dtype, told.dtype);
    give(out, told, "out", "kith_file_info");
  });
}

kith_status kith_read_vectors(const char* path, int64_t first, const kith_mutable_matrix* out,
                              const kith_resources* resources) {
  return guarded([&] {
    const MutableMatrixView to = view_of(out, "out");
    if (!to.space().host_readable()) throw InvalidArgument("files are read into host memory; out is on a GPU");
    const VectorFile file(required_text(path, "path"));
    const ReadMemory memory = file.reserve_memory(resources_of(resources));
    file.read(first, to);
  });
}

kith_status kith_write_vectors(const char* path, const kith_matrix* rows, const kith_resources* resources) {
  return guarded([&] { write_vectors(required_text(path, "path"), view_of(rows, "rows"), resources_of(resources)); });
}

kith_status kith_read_ids(const char* path, int64_t first, int64_t count, int64_t* out,
                          const kith_resources* resources) {
  return guarded([&] {
    const IdFile file(required_text(path, "path"));
    values_of(out, count, "out");
    const ReadMemory memory = file.reserve_memory(resources_of(resources));
    file.read(first, count, out);
  });
}

}  // extern "C"
