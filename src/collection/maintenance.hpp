// Making a collection's directory, checking all of it, and copying it.
#pragma once

#include <kith/collection.hpp>

#include "collection/directory.hpp"
#include "collection/state.hpp"

#include <string>

namespace kith {

// The directory with an empty collection. The database gets its name last, so that there is a whole one or none.
void create_directory(const CollectionDirectory& directory, const CollectionParams& params);

VerifyReport verify_state(const CollectionState& state, const Resources& resources);
void snapshot_directory(const CollectionDirectory& from, const std::string& to, const Resources& resources);

// Throws Unsupported for a file system on which SQLite's shared log does not work.
void refuse_network(const std::string& path);

}  // namespace kith
