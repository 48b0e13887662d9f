// Search parameters for tests of many kinds of index: each takes those that it knows, and refuses the others by name.
#pragma once

#include <kith/index.hpp>
#include <kith/index_graph.hpp>

#include <string>
#include <type_traits>

namespace kith {

// What such an index takes of the parameters.
template <typename Params>
Params taken_by(const std::string& factory, Params params) {
  const auto has = [&](const char* part) { return factory.find(part) != std::string::npos; };
  if (!has("IVF")) params.probes = 0;
  if constexpr (!std::is_same_v<Params, RangeSearchParams>) {
    if (!has("Graph") && !has("RFlat") && !has("Refine") && params.refine_from == nullptr) params.refine = 0;
  }
  return params;
}

inline SearchParams taken_by(const Index& index, const SearchParams& params) {
  return taken_by<SearchParams>(index.factory(), params);
}
inline RangeSearchParams range_taken_by(const Index& index, const RangeSearchParams& params) {
  return taken_by<RangeSearchParams>(index.factory(), params);
}
inline IndexGraphParams graph_taken_by(const Index& index, const IndexGraphParams& params) {
  return taken_by<IndexGraphParams>(index.factory(), params);
}

}  // namespace kith
