// One step of a transform as plain data, which files hold too.
#pragma once

#include <kith/vector_transform.hpp>

namespace kith {

using TransformParts = TransformStep;

}  // namespace kith
