// The links of a group of the old style: a B-tree, sorted by name, whose leaves are lists of links ("symbol table
// nodes"); the names stand in a heap.
//
// A lookup descends the tree once, with a few small reads on each level; each level must be one less than the one above
// it, so that no circle can hold it.
#pragma once

#include "io/hdf5/source.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// A link of a group: a name that leads to an object's header, to another path of the file, or to another file.

enum class Hdf5LinkKind : uint8_t { hard, soft, external };

struct Hdf5Link {
  std::string name;
  Hdf5LinkKind kind = Hdf5LinkKind::hard;
  int64_t header_at = kHdf5Nowhere;  // of a hard link
  std::string target;                // of a soft link
};

// A link message, as it stands in a group's header or in its heap.
Hdf5Link parse_link(const Hdf5Source& source, Hdf5Cursor message);

class Hdf5SymbolTable {
 public:
  // `message` is the group's symbol table message.
  Hdf5SymbolTable(const Hdf5Source& source, Hdf5Cursor message);

  std::optional<Hdf5Link> find(std::string_view name) const;
  // The first names, up to `most` of them.
  std::vector<std::string> names(size_t most) const;

 private:
  struct Node;
  struct Symbol;

  Node read_node(int64_t at) const;
  int64_t child_for(const Node& node, std::string_view name) const;
  std::vector<Symbol> read_symbols(int64_t at) const;
  std::string heap_text(int64_t offset, int64_t most) const;
  void collect(int64_t at, int64_t level, size_t most, int64_t& budget, std::vector<std::string>& names) const;

  const Hdf5Source& source_;
  int64_t tree_at_ = kHdf5Nowhere;
  int64_t heap_at_ = kHdf5Nowhere;  // of its text
  int64_t heap_bytes_ = 0;
};

}  // namespace kith
