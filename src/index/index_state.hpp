// One version of an index, of whatever kind: what it holds and how it is searched. It never changes, so any number of
// threads may read it; a search keeps the state that it began with alive. A kind of index derives its state from this
// and brings search, range_search and bytes.
#pragma once

#include <kith/index.hpp>

#include <cstdint>

namespace kith {

// What every kind holds. The first add fixes all but the number of rows.
struct IndexContent {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;
  MemorySpace space;  // where the rows lie: on the host or in the memory of one device
};

class IndexState {
 public:
  virtual ~IndexState() = default;
  IndexState(const IndexState&) = delete;
  IndexState& operator=(const IndexState&) = delete;

  const IndexContent& content() const { return content_; }

  // `queries` have the content's columns and `out` has a place for params.k neighbours of each.
  virtual void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                      const Resources& resources) const = 0;
  virtual RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                                      const Resources& resources) const = 0;
  // What it holds in memory of Kith's own; states that share memory count it each.
  virtual IndexBytes bytes() const = 0;

 protected:
  // The content after `added` rows came to `before`, which is null where they are the first.
  IndexState(const IndexState* before, const MatrixView& added)
      : content_{(before == nullptr ? 0 : before->content_.rows) + added.rows(), added.cols(), added.dtype(),
                 added.space()} {}

 private:
  const IndexContent content_;
};

}  // namespace kith
