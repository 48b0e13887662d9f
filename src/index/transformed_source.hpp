// Rows as they are after transforms: what an index behind them is trained on.
#pragma once

#include <kith/matrix_buffer.hpp>

#include "quantize/transform_chain.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

class TransformedSource final : public RowSource {
 public:
  // Both must outlive it.
  TransformedSource(const TransformChain& chain, RowSource& rows) : chain_(chain), rows_(rows) {}

  RowsInfo info() const override {
    RowsInfo info = rows_.info();
    info.cols = chain_.out();
    info.dtype = DType::f32;
    info.space = {};
    return info;
  }
  int64_t together(int64_t first) const override { return rows_.together(first); }
  void open(int64_t most, const Resources& resources) override {
    resources_ = resources;
    rows_.open(most, resources);
    buffer_ = MatrixBuffer(DType::f32, std::min(most, rows_.rows()), chain_.out(), "transformed vectors", resources);
  }
  MatrixView fetch(int64_t first, int64_t count) override {
    if (buffer_.rows() < count) {
      buffer_ = MatrixBuffer(DType::f32, count, chain_.out(), "transformed vectors", resources_);
    }
    const MutableMatrixView out = buffer_.mutable_view().slice(0, count);
    chain_.apply(rows_.fetch(first, count), out, resources_);
    return out;
  }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    const RowsInfo info = rows_.info();
    MatrixBuffer before(info.dtype, count, info.cols, "rows to transform", resources);
    rows_.gather(rows, count, before.mutable_view(), resources);
    chain_.apply(before.view(), out, resources);
  }

 private:
  const TransformChain& chain_;
  RowSource& rows_;
  Resources resources_;
  MatrixBuffer buffer_;
};

}  // namespace kith
