// A kind of index: how a new state is made from an old one. It is immutable and has no lock: versions, one writer at a
// time, ids, and the checks that all kinds share are the Index's.
#pragma once

#include <kith/error.hpp>

#include "index/index_state.hpp"
#include "rows/kept_rows.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <memory>
#include <string_view>

namespace kith {

// The parts of SearchParams that mean something to a kind of index; the others are refused by name.
struct SearchUse {
  bool lists = false;    // it looks at lists: probes
  bool walks = false;    // it walks over a graph: beam and width, recall without tune(), and refine
  bool refines = false;  // it keeps vectors for a second look: refine
};

class IndexKind {
 public:
  virtual ~IndexKind() = default;

  virtual SearchUse search_use() const { return {}; }

  // Whether there must be a trained state before rows are added.
  virtual bool needs_training() const { return false; }
  // A state without rows. Values are checked here.
  virtual SharedState trained(RowSource&, const Resources&) const {
    throw InvalidState("this kind of index needs no training");
  }
  // The least memory that this takes, on the host and on a GPU.
  virtual Footprint training_footprint(const RowsInfo&, const Resources&) const { return {}; }

  // The state `before` with `rows` behind its own. `before` is of this kind and stays as it is; it is null where there
  // is none, which a kind that needs training never sees. There is at least one row; shape, dtype and place fit those
  // before. Host rows are already checked for NaN and infinities; device rows are checked here or by the first search.
  virtual SharedState added(const IndexState* before, const MatrixView& rows, Ownership ownership,
                            const Resources& resources) const = 0;
  // The least memory that this takes, with the new state, on the host and on a GPU.
  virtual Footprint add_footprint(const IndexState*, const RowsInfo&, const Resources&) const { return {}; }

  // The state with all that is made of its rows at once, after added(), merged() or compacted(), piece by piece: what
  // is searched. Most kinds make all as rows come.
  virtual SharedState completed(const SharedState& state, const Resources&) const { return state; }
  // The same of the first rows, whose nearest neighbours were found before: a graph is made of these. In host memory,
  // rows x k, as KnnGraph has them. For kinds that take them.
  virtual SharedState completed_from(const NeighborsView& /*start*/, const SharedState& state,
                                     const Resources& resources) const {
    return completed(state, resources);
  }
  virtual bool takes_start() const { return false; }
  // What that takes at most, of so many rows, with the new state. `before`: the state that they were added to, or null.
  virtual Footprint completion_footprint(const IndexState* /*before*/, const RowsInfo&, const Resources&) const {
    return {};
  }
  // The same after compacted(), of so many rows less, beside the memory that `before` holds.
  virtual Footprint compaction_footprint(const IndexState& before, int64_t /*dropped*/,
                                         const Resources& resources) const {
    const IndexContent& content = before.content();
    return completion_footprint(nullptr, {content.rows, content.cols, content.dtype, content.space}, resources);
  }

  // The state `before` without the rows that are not kept, some of them; the others close up in their order. There are
  // bits. Removed rows are marked by the Index; this drops them.
  virtual SharedState compacted(const IndexState& before, const KeptRows& kept, const Resources& resources) const = 0;

  // The state `before` with all rows of `other`, a state of some index with the same metric and columns, behind its
  // own. InvalidArgument by throw_not_alike() where `other` is of another kind, or was trained to other values.
  // `before` is null as in added().
  virtual SharedState merged(const IndexState*, const IndexState&, const Resources&) const {
    throw Unsupported("this kind of index cannot be merged");
  }
  // Whether merged() joins rows in the memory where they lie; else it does so on the host.
  virtual bool merges_in_place() const { return false; }

  // From what give_parts() has put there, which was checked.
  virtual SharedState restored(IndexParts& parts, const Resources& resources) const = 0;
};

// For two indexes that cannot be merged.
[[noreturn]] inline void throw_not_alike(std::string_view difference) {
  throw InvalidArgument(
      fmt::format("the indexes cannot be merged: {}; both must have the same factory string and the same training, as "
                  "copies of one trained index have",
                  difference));
}

}  // namespace kith
