#include "index/segment_file.hpp"

#include <kith/error.hpp>

#include "io/container/container_file.hpp"
#include "io/file_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kKind = "segment";

template <typename T>
ContainerWriter::Piece bytes_of(const T* values, int64_t count) {
  return std::as_bytes(std::span(values, static_cast<size_t>(count)));
}

DType dtype_of(const ContainerFile& file, const Section& section) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8}) {
    if (section.type == section_type(dtype)) return dtype;
  }
  file.corrupt(section, "vectors are numbers of a dtype");
}

// A segment's file and its arrays: mapped, or read under a memory limit.
class SegmentReader {
 public:
  SegmentReader(const std::string& path, const Resources& resources) : file_(path), resources_(resources) {
    if (file_.kind() != kKind) {
      throw InvalidArgument(fmt::format("'{}' holds {}; give a .kith file of one segment", path, file_.kind()));
    }
    if (resources.options().host_memory_limit != kNoLimit) return;
    const OpenedFile opened = open_for_reading(path);
    for (const Section& section : file_.sections()) {
      if (section.offset + section.bytes > opened.size) file_.corrupt(section, "the file was cut short meanwhile");
    }
    held_->mapping = FileMapping(opened.file, opened.size, path);
  }

  const ContainerFile& file() const { return file_; }
  // The owner of the arrays.
  std::shared_ptr<const void> keeper() const { return held_; }

  const Section& expect(std::string_view name, size_t axes) {
    const Section* const section = file_.find(name);
    if (section == nullptr || section->shape.size() != axes) {
      file_.corrupt(fmt::format("there is no section '{}' of {} axes", name, axes));
    }
    return *section;
  }

  const void* values(const Section& section) {
    if (held_->mapping.data() != nullptr) return held_->mapping.data() + section.offset;
    held_->read.emplace_back(section.bytes, "a segment read from a file", resources_);
    file_.read(section, held_->read.back().data(), resources_);
    return held_->read.back().data();
  }

  template <typename T>
  const T* array(std::string_view name, SectionType type, size_t axes) {
    const Section& section = expect(name, axes);
    if (section.type != type) file_.corrupt(section, fmt::format("it must be {}", name_of(type)));
    return static_cast<const T*>(values(section));
  }

 private:
  struct Held {
    FileMapping mapping;
    std::vector<HostArray<std::byte>> read;
  };

  ContainerFile file_;
  const Resources resources_;
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

}  // namespace

void write_segment(const VectorRows& vectors, const std::string& path, const Resources& resources) {
  const MatrixView& view = vectors.view();
  const auto row_bytes = static_cast<size_t>(view.cols() * size_of(view.dtype()));
  std::vector<ContainerWriter::Piece> pieces;
  if (view.row_stride() == view.cols() && !view.empty()) {
    pieces.emplace_back(view.row(0), row_bytes * static_cast<size_t>(view.rows()));
  } else {
    for (int64_t i = 0; i < view.rows(); ++i) pieces.emplace_back(view.row(i), row_bytes);
  }
  ContainerWriter writer(kKind);
  writer.add("vectors", section_type(view.dtype()), {view.rows(), view.cols()}, std::move(pieces));
  writer.write(path, resources);
}

void write_segment(const RowCodes& codes, const std::string& path, const Resources& resources) {
  ContainerWriter writer(kKind);
  writer.add("codes", SectionType::u8, {codes.size(), codes.bytes() / std::max<int64_t>(codes.size(), 1)},
             {bytes_of(codes.data(), codes.bytes())});
  writer.write(path, resources);
}

void write_segment(const ListSegment& lists, const std::string& path, const Resources& resources) {
  ContainerWriter writer(kKind);
  writer.add("offsets", SectionType::i64, {lists.lists() + 1}, {bytes_of(lists.offsets(), lists.lists() + 1)});
  writer.add("rows", SectionType::u32, {lists.size()}, {bytes_of(lists.rows(), lists.size())});
  writer.add("codes", SectionType::u8, {lists.size(), lists.code_bytes()},
             {bytes_of(lists.codes(), lists.size() * lists.code_bytes())});
  writer.write(path, resources);
}

std::shared_ptr<const VectorRows> map_vectors(const std::string& path, const Resources& resources) {
  SegmentReader reader(path, resources);
  const Section& section = reader.expect("vectors", 2);
  const int64_t cols = section.shape[1];
  const MatrixView view(reader.values(section), dtype_of(reader.file(), section), {section.shape[0], cols, cols});
  return std::make_shared<const VectorRows>(view, reader.keeper());
}

std::shared_ptr<const RowCodes> map_codes(const std::string& path, const Resources& resources) {
  SegmentReader reader(path, resources);
  const auto* const codes = reader.array<uint8_t>("codes", SectionType::u8, 2);
  const Section& section = reader.expect("codes", 2);
  return std::make_shared<const RowCodes>(codes, section.shape[0], section.bytes, MemorySpace::host(),
                                          reader.keeper());
}

std::shared_ptr<const ListSegment> map_lists(const std::string& path, const Resources& resources) {
  SegmentReader reader(path, resources);
  const Section& codes = reader.expect("codes", 2);
  ListSegment::Arrays arrays;
  arrays.offsets = reader.array<int64_t>("offsets", SectionType::i64, 1);
  arrays.codes = reader.array<uint8_t>("codes", SectionType::u8, 2);
  arrays.rows = reader.array<uint32_t>("rows", SectionType::u32, 1);
  arrays.lists = reader.expect("offsets", 1).shape[0] - 1;
  arrays.size = codes.shape[0];
  if (reader.expect("rows", 1).shape[0] != arrays.size) reader.file().corrupt("lists have a row for each code");
  try {
    return std::make_shared<const ListSegment>(arrays, codes.shape[1], reader.keeper(), resources);
  } catch (const InvalidArgument& error) {
    reader.file().corrupt(error.what());
  }
}

}  // namespace kith
