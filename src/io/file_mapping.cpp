#include "io/file_mapping.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace kith {

FileMapping::FileMapping(const FileDescriptor& file, int64_t bytes, const std::string& path) : bytes_(bytes) {
  if (bytes == 0) return;  // which mmap refuses
  void* const data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) throw_io_error("map", path, errno);
  data_ = static_cast<std::byte*>(data);
}

FileMapping::~FileMapping() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
}

void expect_mapped(const void* data, int64_t bytes) noexcept {
  if (bytes <= 0) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = at / page * page;
  ::madvise(reinterpret_cast<void*>(first), at + static_cast<size_t>(bytes) - first, MADV_WILLNEED);
}

void release_mapped(const void* data, int64_t bytes) noexcept {
  if (bytes <= 0) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = at / page * page;
  ::madvise(reinterpret_cast<void*>(first), at + static_cast<size_t>(bytes) - first, MADV_DONTNEED);
}

void check_mappable(const MatrixFile& file) {
  if (file.values().mappable() == nullptr) {
    throw InvalidArgument(fmt::format(
        "'{}' cannot be mapped: its values are compressed or scattered; read it, or convert it to .npy", file.path()));
  }
  const FileLayout& layout = file.layout();
  const int64_t begin = layout.data_offset + layout.row_header_bytes;
  if (begin % layout.element_bytes() != 0 || layout.row_step() % layout.element_bytes() != 0) {
    throw InvalidArgument(fmt::format(
        "'{}' cannot be mapped: its values begin at byte {}, which is not a multiple of their {} bytes; read "
        "it, or rewrite it",
        file.path(), begin, layout.element_bytes()));
  }
}

MappedMatrix map_matrix(const MatrixFile& file) {
  check_mappable(file);
  const FileLayout& layout = file.layout();
  MappedMatrix mapped;
  mapped.row_stride = layout.row_step() / layout.element_bytes();
  if (layout.rows == 0) return mapped;
  mapped.mapping = FileMapping(*file.values().mappable(), layout.file_bytes(), file.path());
  mapped.values = mapped.mapping.data() + layout.data_offset + layout.row_header_bytes;
  return mapped;
}

}  // namespace kith
