// "IVF4096,PQ32", "IVF100,Flat", "SQ8", ...: an index of codes in lists. Without IVF there is one list without a
// centre.
#pragma once

#include <kith/index.hpp>

#include "index/factory.hpp"
#include "index/index_kind.hpp"

#include <memory>

namespace kith {

// Unsupported for a metric that lists cannot be searched by.
std::shared_ptr<const IndexKind> make_lists_kind(const FactorySpec& spec, const IndexParams& params);

}  // namespace kith
