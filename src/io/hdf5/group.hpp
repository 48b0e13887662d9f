// Groups: what their links are called and where they lead, for groups of the old style (a symbol table) and of the new
// one, whose links stand in their header or, when there are many, in a heap with an index of names.
#pragma once

#include "io/hdf5/object_header.hpp"

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
// Looks in a group of the old style: `message` is its symbol table message. The first names, up to `most` of them.
std::optional<Hdf5Link> find_symbol(const Hdf5Source& source, Hdf5Cursor message, std::string_view name);
std::vector<std::string> symbol_names(const Hdf5Source& source, Hdf5Cursor message, size_t most);

bool is_hdf5_group(const Hdf5ObjectHeader& header);

std::optional<Hdf5Link> find_link(const Hdf5Source& source, const Hdf5ObjectHeader& group, std::string_view name);

// In the order of their names; `most` of them.
std::vector<std::string> link_names(const Hdf5Source& source, const Hdf5ObjectHeader& group, size_t most);

// The first of them for an error's text: "a, b, c, ...".
std::string list_links(const Hdf5Source& source, int64_t group_at);

// The header of what `path` leads to from the root on, soft links included; none where there is no such thing. A link
// to another file is Unsupported.
std::optional<Hdf5ObjectHeader> find_object(const Hdf5Source& source, int64_t root_at, std::string_view path);

}  // namespace kith
