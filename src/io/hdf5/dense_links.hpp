// The links of a group of the new style that has many: they stand in a fractal heap, and a tree sorted by the checksums
// of their names finds them.
#pragma once

#include "io/hdf5/link.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

struct Hdf5DenseLinks {
  int64_t heap_at;
  int64_t tree_at;
};

// What a group's link info message says of them; none where the links stand in the group's header.
std::optional<Hdf5DenseLinks> open_dense_links(const Hdf5Source& source, Hdf5Cursor message);

std::optional<Hdf5Link> find_dense_link(const Hdf5Source& source, const Hdf5DenseLinks& links, std::string_view name);

// Up to `most` names, in no order.
std::vector<std::string> dense_link_names(const Hdf5Source& source, const Hdf5DenseLinks& links, size_t most);

}  // namespace kith
