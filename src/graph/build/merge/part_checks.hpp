// Whether graphs and rows belong together, before anything is made of them.
#pragma once

#include <kith/error.hpp>
#include <kith/graph_merge.hpp>

#include <cstdint>
#include <vector>

namespace kith {

// Whether a graph's distances must be those of its rows, or may be others, as those of compressed rows are.
enum class PartDistances : uint8_t { of_rows, any };

// A graph that was built of other vectors than its rows.
class OtherVectors : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

// That they have as many rows, and neighbours, and can be compared.
void check_part_shape(const GraphPart& part, std::string_view what);
// That the graph is one, and of these rows: the distances of some edges are computed again. It lies anywhere, as they do.
void check_part(const GraphPart& part, std::string_view what, PartDistances distances, const Resources& resources);
// That parts can be merged: the same k, metric, dimension and dtype.
void check_same(const GraphPart& a, const GraphPart& b);

}  // namespace kith
