#include "io/matrix_file.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "io/bin_header.hpp"
#include "io/hdf5_file.hpp"
#include "io/idx_file.hpp"
#include "io/npy_header.hpp"
#include "io/vecs_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// .npy and the bin formats: one header, then the values.
OpenedMatrix open_plain(OpenedFile opened, const FileName& name, OneAxis one_axis) {
  const bool npy = name.format == FileFormat::npy;
  std::string head(static_cast<size_t>(std::min(opened.size, npy ? kNpyHeadLimit : kBinHeaderBytes)), '\0');
  read_fully(opened.file, name.path, 0, head.data(), static_cast<int64_t>(head.size()));
  const FileLayout layout = npy ? parse_npy_header(head, name.path, one_axis)
                                : parse_bin_header(head, element_of(name.format).value(), name.path);
  check_size(layout, opened.size, name.path);
  return {layout, std::make_unique<PlainValues>(std::move(opened.file), layout, name.path)};
}

OpenedMatrix open_matrix(OpenedFile opened, const FileName& name, OneAxis one_axis) {
  switch (name.format) {
    case FileFormat::fvecs:
    case FileFormat::bvecs:
    case FileFormat::ivecs: return open_vecs(std::move(opened), element_of(name.format).value(), name.path);
    case FileFormat::hdf5: return open_hdf5(std::move(opened), name);
    case FileFormat::idx: return open_idx(std::move(opened), name.path);
    default: return open_plain(std::move(opened), name, one_axis);
  }
}

}  // namespace

MatrixFile::MatrixFile(const std::string& path, OneAxis one_axis) : name_(parse_file_name(path)) {
  OpenedFile opened = open_for_reading(name_.file);
  file_bytes_ = opened.size;
  opened_ = open_matrix(std::move(opened), name_, one_axis);
}

void MatrixFile::check_rows(int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > layout().rows - count) {
    throw InvalidArgument(
        fmt::format("{} rows from row {} were requested, but '{}' has {}", count, first, path(), layout().rows));
  }
}

ReadMemory MatrixFile::reserve_memory(const Resources& resources) const {
  const int64_t bytes = values().memory_bytes();
  if (bytes == 0) return nullptr;
  resources.host_memory()->reserve(bytes, fmt::format("the chunks of '{}'", path()));
  const auto give_back = [reader = opened_.values, budget = resources.host_memory(), bytes](const void*) {
    reader->free_memory();
    budget->release(bytes);
  };
  return {opened_.values.get(), give_back};
}

}  // namespace kith
