// The memory limit that a range search in files needs to keep all of its results.
#pragma once

#include <kith/export.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

namespace kith {

// Call when a range search in files ran out of memory because its sink keeps all results, after freeing these: searches
// again, only counting, and throws an OutOfMemory that names a limit with room for all.
[[noreturn]] KITH_EXPORT void throw_kept_range_limit(const VectorFile& queries, const VectorFile& base,
                                                     const RangeParams& params, const Resources& resources);

}  // namespace kith
