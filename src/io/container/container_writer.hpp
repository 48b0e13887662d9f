// Writes a .kith container. Sections refer to the caller's memory, which is gone over twice: to hash it, since the
// table stands in front, and to write it.
#pragma once

#include <kith/resources.hpp>

#include "io/container/section.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

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
