// The graphs and rows that are merged, extended or refined: whether they belong together, and rows of two parts as one
// collection.
#pragma once

#include <kith/error.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/footprint.hpp"
#include "graph/handle/graph_output.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
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
// That the graph is one, and of these rows: the distances of some edges are computed again. It lies anywhere, as they
// do.
void check_part(const GraphPart& part, std::string_view what, PartDistances distances, const Resources& resources);
// The same of rows in files, whose graph's distances are taken as they are: they must be those that Kith computes.
void check_part(const GraphOfFile& part, std::string_view what, const Resources& resources);
// That parts can be merged: the same k, metric, dimension and dtype.
void check_same(const GraphPart& a, const GraphPart& b);

// Working lists of merges of graphs of k neighbours.
int64_t merge_list_length(const GraphMergeParams& params, int64_t k);
// Whether so many new rows are compared with all: they are few, or a recall of 1 asks for it.
bool extends_exactly(int64_t fresh_rows, const GraphMergeParams& params);
// As GraphMergeParams::validate(), for extensions, of which a recall of 1 may be asked.
void validate_extension(const GraphMergeParams& params);

// Both sets of rows, one after the other: as they lie where the second follows the first, else a copy on the device
// that works. Rows that the CPU works on lie in host memory, others anywhere.
class JoinedRows {
 public:
  JoinedRows(const MatrixView& a, const MatrixView& b, Device device, const Resources& resources);

  const MatrixView& view() const { return view_; }

 private:
  MatrixBuffer memory_;
  std::shared_ptr<std::byte> device_memory_;
  MatrixView view_;
};

}  // namespace kith
