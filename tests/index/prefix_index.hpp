// "Prefix#": an index that compares the first # columns of its vectors. A toy: it shows the five calls by which a kind
// of index comes to the library (ARCHITECTURE.md, "How the next parts will fit") and is tested through Index.
#pragma once

#include <kith/error.hpp>

#include "index/index_kinds.hpp"

#include <cstring>

namespace kith {

class PrefixState final : public IndexState {
 public:
  PrefixState(const PrefixState* before, const MatrixView& added, int64_t cols, const IndexParams& params,
              const Resources& resources)
      : IndexState(before, added), params_(params), kept_(added.dtype(), content().rows, cols, "the index", resources) {
    const int64_t old_rows = content().rows - added.rows();
    for (int64_t i = 0; i < content().rows; ++i) {
      const std::byte* from = i < old_rows ? before->kept_.view().row(i) : added.row(i - old_rows);
      std::memcpy(kept_.mutable_view().row(i), from, static_cast<size_t>(cols * size_of(added.dtype())));
    }
  }
  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    knn(prefix(queries), kept_.view(), out, {params.k, params_.metric, true, params.filter}, resources);
  }
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    const RangeParams exact{params.radius, params_.metric, true, params.filter};
    return kith::range_search(prefix(queries), kept_.view(), exact, resources);
  }
  IndexBytes bytes() const override { return {kept_.rows() * kept_.cols() * size_of(kept_.dtype()), 0}; }

 private:
  MatrixView prefix(const MatrixView& rows) const {
    return {rows.data(), rows.dtype(), {rows.rows(), kept_.cols(), rows.row_stride()}, rows.space()};
  }
  const IndexParams params_;
  MatrixBuffer kept_;
};

class PrefixKind final : public IndexKind {
 public:
  PrefixKind(int64_t cols, const IndexParams& params) : cols_(cols), params_(params) {}
  std::shared_ptr<const IndexState> added(const IndexState* before, const MatrixView& rows, Ownership,
                                          const Resources& resources) const override {
    if (rows.cols() < cols_) throw InvalidArgument("vectors shorter than the prefix");
    return std::make_shared<PrefixState>(static_cast<const PrefixState*>(before), rows, cols_, params_, resources);
  }

 private:
  const int64_t cols_;
  const IndexParams params_;
};

inline void add_prefix(IndexKinds& kinds) {
  kinds.add("Prefix#", [](const std::vector<int64_t>& numbers, const IndexParams& params) {
    if (numbers[0] < 1) throw InvalidArgument("a prefix of no columns");
    return std::make_shared<PrefixKind>(numbers[0], params);
  });
}

}  // namespace kith
