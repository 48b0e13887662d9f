// A link of a group: a name that leads to an object's header, to another path of the file, or to another file.
#pragma once

#include "io/hdf5/source.hpp"

#include <cstdint>
#include <string>

namespace kith {

enum class Hdf5LinkKind : uint8_t { hard, soft, external };

struct Hdf5Link {
  std::string name;
  Hdf5LinkKind kind = Hdf5LinkKind::hard;
  int64_t header_at = kHdf5Nowhere;  // of a hard link
  std::string target;                // of a soft link
};

// A link message, as it stands in a group's header or in its heap.
Hdf5Link parse_link(const Hdf5Source& source, Hdf5Cursor message);

}  // namespace kith
