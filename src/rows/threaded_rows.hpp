// Divides large reads of a file among all threads, for passes over rows that the disk delivers faster than one thread
// can copy them.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

namespace kith {

// The same rows; `file` must outlive it. Files that are read from front to back, or under a lock, stay unchanged.
VectorFile read_by_threads(const VectorFile& file, const Resources& resources);

}  // namespace kith
