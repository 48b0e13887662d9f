// What get() returns of items.
#pragma once

#include <kith/collection.hpp>

#include "collection/state.hpp"

namespace kith {

// InvalidArgument that names an id which is not there. Under a memory limit what values and payloads take is asked first.
ItemTable read_items(const CollectionState& state, const ItemIds& ids, const Resources& resources);

}  // namespace kith
