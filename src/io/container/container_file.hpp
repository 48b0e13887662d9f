// Reads a .kith container. Nothing in a file is trusted: the table is checked against its hash and against the one
// layout that a writer makes, and a section against its hash when it is read. Memory is taken for sections only, and
// none is larger than the file.
//
// What is no container of this version, or damaged, is an error that names the file, the section and what is wrong:
// CorruptFile, Unsupported for another version, InvalidArgument for a FAISS file.
#pragma once

#include <kith/resources.hpp>

#include "io/container/section.hpp"
#include "io/posix_file.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

class ContainerFile {
 public:
  explicit ContainerFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& kind() const { return kind_; }
  uint32_t version() const { return version_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* find(std::string_view name) const;  // null: there is none

  // All bytes of a section, which are then as they were written.
  void read(const Section& section, void* out, const Resources& resources) const;

  // CorruptFile at the beginning of the section.
  [[noreturn]] void corrupt(const Section& section, std::string_view reason) const;
  // CorruptFile of the file as a whole.
  [[noreturn]] void corrupt(std::string_view reason) const;

 private:
  void read_header();
  void read_table(uint32_t count, std::span<const std::byte> header);
  void check_layout() const;

  std::string path_;
  OpenedFile file_;
  std::string kind_;
  uint32_t version_ = 0;
  std::vector<Section> sections_;
};

// Writes a .kith container. Sections refer to the caller's memory, which is gone over twice: to hash it, since the
// table stands in front, and to write it.

class ContainerWriter {
 public:
  using Piece = std::span<const std::byte>;

  // `kind` says what the file is: "index", "codec", ...; `version`: the first that knows all that is written.
  explicit ContainerWriter(std::string_view kind, uint32_t version = kFirstContainerVersion);

  // The values in one piece or in several, one behind the other. They must stay as they are until write() is done.
  void add(std::string_view name, SectionType type, std::vector<int64_t> shape, std::vector<Piece> pieces);

  // Under a temporary name, synced, renamed.
  void write(const std::string& path, const Resources& resources);

 private:
  struct Source {
    Section section;
    std::vector<Piece> pieces;
  };

  void place_sections(const Resources& resources);
  std::vector<std::byte> head() const;

  std::string kind_;
  uint32_t version_;
  std::vector<Source> sources_;
  int64_t file_bytes_ = 0;
};

}  // namespace kith
