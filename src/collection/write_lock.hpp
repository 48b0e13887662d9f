// The right to write: one handle over all processes has it, from open() to close().
#pragma once

#include <kith/resources.hpp>

#include "collection/directory.hpp"
#include "io/disk.hpp"

#include <chrono>
#include <memory>

namespace kith {

// The write lock, with words in its file about who holds it. InvalidState with these words after the timeout.
std::unique_ptr<DiskLock> take_write_lock(const CollectionDirectory& directory, std::chrono::milliseconds timeout,
                                          const Resources& resources);

}  // namespace kith
