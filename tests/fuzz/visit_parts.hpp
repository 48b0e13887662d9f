// What a search does with the parts of an index, as far as memory goes: decodes every vector. A sanitizer sees a read
// outside of an array.
#pragma once

#include "fuzz/fuzz_target.hpp"
#include "index/index_parts.hpp"

#include <string>

namespace kith::fuzz {

void visit(const IndexParts& parts);

// Calls `read(path, resources)` for a file of these bytes, under a memory limit; throws std::logic_error for an error
// that is not one of Kith's, or does not know its place.
void read_file(const std::string& name, Input bytes, void (*read)(const std::string& path, const Resources& resources));

}  // namespace kith::fuzz
