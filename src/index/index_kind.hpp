// A kind of index: how to make a new state from an old one. Immutable, without locks: Index takes care of versions, of
// one writer at a time, of ids, and of the checks that all kinds share.
#pragma once

#include <kith/error.hpp>

#include "index/index_state.hpp"
#include "rows/kept_rows.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <memory>
#include <string_view>

namespace kith {

// The parts of SearchParams that a kind of index uses; the others are refused by name.
struct SearchUse {
  bool lists = false;    // it probes lists: probes
  bool walks = false;    // it walks over a graph: beam, width, refine, and recall without tune()
  bool refines = false;  // it stores vectors for refinement: refine
};

class IndexKind {
 public:
  virtual ~IndexKind() = default;

  virtual SearchUse search_use() const { return {}; }

  // Whether rows can be added only after training.
  virtual bool needs_training() const { return false; }
  // Trains, and returns a state without rows. Checks values.
  virtual SharedState trained(RowSource&, const Resources&) const {
    throw InvalidState("this kind of index needs no training");
  }
  // The least memory that trained() takes, on the host and on a GPU.
  virtual Footprint training_footprint(const RowsInfo&, const Resources&) const { return {}; }

  // The state `before` followed by `rows`. `before` is of this kind and does not change; it may be null, except for
  // kinds that need training. There is at least one row; shape, dtype and place fit the state. Host rows have been
  // checked for NaN and infinities; device rows are checked here or by the first search.
  virtual SharedState added(const IndexState* before, const MatrixView& rows, Ownership ownership,
                            const Resources& resources) const = 0;
  // The least memory that added() takes, including the new state, on the host and on a GPU.
  virtual Footprint add_footprint(const IndexState*, const RowsInfo&, const Resources&) const { return {}; }

  // Finishes a state after one or more calls of added(), merged() or compacted(), by building what needs all rows at
  // once. Only completed states are searched. Most kinds have nothing to do.
  virtual SharedState completed(const SharedState& state, const Resources&) const { return state; }
  // The same for the first rows of a graph index, built from their nearest neighbours: rows x k in host memory, as in
  // KnnGraph. Only for kinds that accept them.
  virtual SharedState completed_from(const NeighborsView& /*start*/, const SharedState& state,
                                     const Resources& resources) const {
    return completed(state, resources);
  }
  virtual bool takes_start() const { return false; }
  // What that takes at most, of so many rows, with the new state. `before`: the state that they were added to, or null.
  virtual Footprint completion_footprint(const IndexState* /*before*/, const RowsInfo&, const Resources&) const {
    return {};
  }
  // The same after compacted() has dropped `dropped` rows, beside the memory of `before`.
  virtual Footprint compaction_footprint(const IndexState& before, int64_t /*dropped*/,
                                         const Resources& resources) const {
    const IndexContent& content = before.content();
    return completion_footprint(nullptr, {content.rows, content.cols, content.dtype, content.space}, resources);
  }

  // The kept rows of the state `before`, in their order; at least one row is dropped. `kept` has bits. Index only marks
  // removed rows; this drops them.
  virtual SharedState compacted(const IndexState& before, const KeptRows& kept, const Resources& resources) const = 0;

  // The state `before` followed by all rows of `other`, the state of an index with the same metric and columns.
  // InvalidArgument by throw_not_alike() if `other` is of another kind, or was trained differently. `before` may be
  // null as in added().
  virtual SharedState merged(const IndexState*, const IndexState&, const Resources&) const {
    throw Unsupported("this kind of index cannot be merged");
  }
  // Whether merged() works in the memory space of the rows; otherwise on the host.
  virtual bool merges_in_place() const { return false; }

  // From checked parts, as give_parts() makes them.
  virtual SharedState restored(IndexParts& parts, const Resources& resources) const = 0;
};

// The error for two indexes that cannot be merged.
[[noreturn]] inline void throw_not_alike(std::string_view difference) {
  throw InvalidArgument(
      fmt::format("the indexes cannot be merged: {}; both must have the same factory string and the same training, as "
                  "copies of one trained index have",
                  difference));
}

}  // namespace kith
