// Which memory limit a range search in files needs to keep all that it finds.
#pragma once

#include <kith/export.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

namespace kith {

// Call after a range search in files ran out of memory while its results were kept, once these are freed: searches
// again, counting only, and throws an OutOfMemory that names a limit which holds all results.
[[noreturn]] KITH_EXPORT void throw_kept_range_limit(const VectorFile& queries, const VectorFile& base,
                                                     const RangeParams& params, const Resources& resources);

}  // namespace kith
