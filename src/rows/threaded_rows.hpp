// Divides large reads of a file among all threads, for passes over rows that the disk delivers faster than one thread
// can copy them.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

namespace kith {

// Whether several threads that read a file at once do so sooner than one: not where it is read from front to back, or under
// a lock.
bool reads_in_parallel(const VectorFile& file);

// The same rows; `file` must outlive it. Other files stay unchanged.
VectorFile read_by_threads(const VectorFile& file, const Resources& resources);

}  // namespace kith
