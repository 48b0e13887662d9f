// An index that compares the first columns of its vectors. A toy: it shows by which calls a kind of index comes to the
// library (ARCHITECTURE.md, "How the next parts will fit") and is tested through Index.
#pragma once

#include <kith/error.hpp>

#include "index/index_access.hpp"
#include "rows/stored_row.hpp"

#include <cstring>

namespace kith {

class PrefixState final : public IndexState {
 public:
  PrefixState(const IndexContent& content, MatrixBuffer kept, const IndexParams& params)
      : IndexState(content), params_(params), kept_(std::move(kept)) {}
  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    knn(prefix(queries), kept_.view(), out, {params.k, params_.metric, true, params.filter}, resources);
  }
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    const RangeParams exact{params.radius, params_.metric, true, params.filter};
    return kith::range_search(prefix(queries), kept_.view(), exact, resources);
  }
  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources&) const override {
    std::memset(out.data(), 0, static_cast<size_t>(out.rows() * out.cols()) * sizeof(float));
    for (int64_t i = 0; i < out.rows(); ++i) widen_row(kept_.view(), rows[i], reinterpret_cast<float*>(out.row(i)));
  }
  MatrixView kept() const { return kept_.view(); }
  void give_parts(IndexParts&, const Resources&) const override { throw Unsupported("a toy is not saved"); }
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
    const IndexContent content = content_after(before, rows);
    MatrixBuffer kept(rows.dtype(), content.rows, cols_, "the index", resources);
    const int64_t old = content.rows - rows.rows();
    for (int64_t i = 0; i < content.rows; ++i) {
      copy_row(i < old ? prefixes(*before).row(i) : rows.row(i - old), kept.mutable_view(), i);
    }
    return std::make_shared<PrefixState>(content, std::move(kept), params_);
  }

  std::shared_ptr<const IndexState> compacted(const IndexState& before, const KeptRows& rows,
                                              const Resources& resources) const override {
    MatrixBuffer kept(before.content().dtype, rows.count(), cols_, "the index", resources);
    for (int64_t i = 0; i < rows.count(); ++i) {
      copy_row(prefixes(before).row(rows.row_at(i)), kept.mutable_view(), i);
    }
    return std::make_shared<PrefixState>(before.content().with_rows(rows.count()), std::move(kept), params_);
  }

  std::shared_ptr<const IndexState> restored(IndexParts&, const Resources&) const override {
    throw Unsupported("a toy is not saved");
  }

 private:
  static MatrixView prefixes(const IndexState& state) { return static_cast<const PrefixState&>(state).kept(); }
  static void copy_row(const std::byte* from, const MutableMatrixView& to, int64_t row) {
    std::memcpy(to.row(row), from, static_cast<size_t>(to.cols() * size_of(to.dtype())));
  }

  const int64_t cols_;
  const IndexParams params_;
};

inline Index make_prefix(int64_t cols, const IndexParams& params = {}) {
  return IndexAccess::make(std::make_shared<PrefixKind>(cols, params), "Prefix", params);
}

}  // namespace kith
