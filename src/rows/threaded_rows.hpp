// A file whose large reads are divided between all threads, for passes over rows that a disk delivers sooner than one thread
// copies them.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

namespace kith {

// The same rows; `file` must outlive it. Files that are read from front to back, or under a lock, stay as they are.
VectorFile read_by_threads(const VectorFile& file, const Resources& resources);

}  // namespace kith
