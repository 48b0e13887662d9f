// What a search takes under a memory limit, asked before it begins: an error names a limit with which all of it works.
#pragma once

#include <kith/collection.hpp>

#include "collection/state.hpp"

#include <functional>

namespace kith {

// What a call of the library's takes beyond what is held: that which its own error names. It is made with a limit of one
// byte, so that nothing is done.
int64_t memory_of_call(const Resources& resources, const std::function<void(const Resources&)>& call);

// NamedLimit where less is left; nothing without a limit.
void require_host_memory(const char* job, int64_t bytes, const Resources& resources);

// What a filter takes while it is made: SQLite, bits for all places, and the order of items where there is a mask.
int64_t memory_of_filter(const CollectionState& state, const ItemFilter& filter);

// That there is room for the results, and to search the parts, one after the other, beside what is held already. Indexes
// are loaded by this.
void require_search_memory(const CollectionState& state, const MatrixView& queries, const CollectionSearchParams& params,
                           const Resources& resources);

}  // namespace kith
