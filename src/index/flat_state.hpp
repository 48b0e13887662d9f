// The state of a "Flat" index: segments of vectors, which are shared with the states before and after it.
#pragma once

#include "index/index_state.hpp"
#include "index/vector_rows.hpp"

#include <utility>

namespace kith {

class FlatState final : public IndexState {
 public:
  using Vectors = Segments<VectorSegment>;

  // `checked`: the values of all rows have been looked at.
  FlatState(const IndexContent& content, const IndexParams& params, Vectors vectors, bool checked)
      : IndexState(content), params_(params), vectors_(std::move(vectors)), checked_(checked) {}

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override;
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override;
  int64_t smallest_host_bytes(const RowsInfo& queries, const SearchParams& params,
                              const Resources& resources) const override;
  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override;
  IndexBytes bytes() const override;
  void describe(IndexInfo& info, const LiveRows& live) const override;
  int64_t give_parts_bytes() const override;
  void give_parts(IndexParts& parts, const Resources& resources) const override;

  const IndexParams& params() const { return params_; }
  const Vectors& vectors() const { return vectors_; }
  bool checked() const { return checked_; }

 private:
  const IndexParams params_;
  const Vectors vectors_;
  const bool checked_;
};

// How vectors are prepared for queries of a type; rows that were looked at need no check.
inline PrepareOptions flat_prepare_options(const IndexParams& params, DType queries) {
  return {params.metric, queries, false, 0};
}

}  // namespace kith
