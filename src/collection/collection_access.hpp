// For tests: collections on another disk.
#pragma once

#include <kith/collection.hpp>

#include "collection/environment.hpp"

#include <string>

namespace kith {

class CollectionAccess {
 public:
  static Collection create(const std::string& path, const CollectionParams& params, const OpenParams& open,
                           const CollectionEnvironment& environment, const Resources& resources = Resources());
  static Collection open(const std::string& path, const OpenParams& params, const CollectionEnvironment& environment,
                         const Resources& resources = Resources());
};

}  // namespace kith
