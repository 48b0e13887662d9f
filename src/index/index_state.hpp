// The vectors of one version of an index, of whatever kind: what they are and how they are searched. A state never
// changes, so any number of threads may read it; a search keeps the state that it began with alive. It speaks of stored
// rows: 0, 1, 2, ... in the order of add. Which of them are live, and the ids that callers know them by, are not its
// concern: a search's filter leaves the dead ones out.
//
// Under a memory limit every call is counted before it is made, with resources that count (core/footprint.hpp): then it
// allocates as always, for the CPU, and touches neither that memory nor what it is given to fill.
#pragma once

#include <kith/index.hpp>

#include "index/index_parts.hpp"
#include "index/live_rows.hpp"
#include "rows/rows_info.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace kith {

// What every kind holds. Training or the first add fixes all but the number of rows and, while there are none, where
// they lie.
struct IndexContent {
  int64_t rows = 0;
  int64_t cols = 0;  // of the caller's vectors
  DType dtype = DType::f32;
  MemorySpace space;       // where the rows lie: on the host or in the memory of one device
  bool any_dtype = false;  // vectors of every dtype may be added, else of that one
  bool any_place = false;  // likewise from any memory, else from where the rows lie

  IndexContent with_rows(int64_t count) const {
    IndexContent other = *this;
    other.rows = count;
    return other;
  }
};

class IndexState {
 public:
  virtual ~IndexState() = default;
  IndexState(const IndexState&) = delete;
  IndexState& operator=(const IndexState&) = delete;

  const IndexContent& content() const { return content_; }

  // Searches at least one row. `queries` have the content's columns and `out` has a place for params.k neighbours of
  // each. What is found, and what a filter lists, are rows.
  virtual void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                      const Resources& resources) const = 0;
  virtual RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                                      const Resources& resources) const = 0;
  // The first k of all kept rows, whatever search() would look at: `params` has k and a filter alone.
  virtual void search_all(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                          const Resources& resources) const {
    search(queries, out, params, resources);
  }
  // Rows and centres that search() compares with these queries, in host memory, all together. Counted, on every device
  // alike, for params without a filter.
  virtual int64_t compared(const MatrixView& queries, const SearchParams&, const Resources&) const {
    return queries.rows() * content().rows;
  }
  // How many lists a search with a filter looks at, where `probes` were asked for: all of them where the filter keeps
  // few of the live rows (kept_decide, ivf_search.hpp). kept() counts those that it keeps.
  virtual int64_t probes_with_filter(int64_t probes, const std::function<int64_t()>& /*kept*/, int64_t /*live*/) const {
    return probes;
  }

  // The listed vectors as they are found, in the caller's columns, f32 in host memory.
  virtual void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const = 0;

  // What it holds in memory of Kith's own; states that share memory count it each.
  virtual IndexBytes bytes() const = 0;
  // Adds what there is to say beside its bytes, of the live rows.
  virtual void describe(IndexInfo&, const LiveRows&) const {}
  // What a file must hold of it, beside ids and the factory string.
  virtual void give_parts(IndexParts& parts, const Resources& resources) const = 0;

 protected:
  explicit IndexState(const IndexContent& content) : content_(content) {}

 private:
  const IndexContent content_;
};

using SharedState = std::shared_ptr<const IndexState>;

// The content after `added` rows came to `before`, which is null where they are the first.
inline IndexContent content_after(const IndexState* before, const MatrixView& added) {
  if (before == nullptr) return {added.rows(), added.cols(), added.dtype(), added.space()};
  IndexContent content = before->content().with_rows(before->content().rows + added.rows());
  if (before->content().rows == 0) content.space = added.space();
  return content;
}

}  // namespace kith
