// Rows as they are after transforms: what an index behind them is trained on. They lie where those before them do.
#pragma once

#include <kith/matrix_buffer.hpp>

#include "cuda/device_memory.hpp"
#include "rows/row_source.hpp"
#include "transform/transform_chain.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

class TransformedSource final : public RowSource {
 public:
  // Both must outlive it.
  TransformedSource(const TransformChain& chain, RowSource& rows) : chain_(chain), rows_(rows) {}

  RowsInfo info() const override {
    RowsInfo info = rows_.info();
    info.cols = chain_.out();
    info.dtype = DType::f32;
    if (info.space.host_readable()) info.space = {};
    return info;
  }
  int64_t together(int64_t first) const override { return rows_.together(first); }
  void open(int64_t most, const Resources& resources) override {
    resources_ = resources;
    rows_.open(most, resources);
    if (!rows_.space().host_readable()) return;
    buffer_ = MatrixBuffer(DType::f32, std::min(most, rows_.rows()), chain_.out(), "transformed vectors", resources);
  }
  MatrixView fetch(int64_t first, int64_t count) override {
    if (!rows_.space().host_readable()) return fetch_there(first, count);
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
  RowSource* made_from() override { return &rows_; }
  void make(const MatrixView& from, const MutableMatrixView& out, const Resources& resources) override {
    chain_.apply(from, out, resources.with_progress({}));
  }

 private:
  MatrixView fetch_there(int64_t first, int64_t count) {
    const MemorySpace space = rows_.space();
    const int64_t bytes = count * chain_.out() * static_cast<int64_t>(sizeof(float));
    there_ = allocate_on_device(bytes, "transformed vectors", space.device, resources_);
    const MutableMatrixView out(there_.get(), DType::f32, {count, chain_.out(), chain_.out()}, space);
    chain_.apply(rows_.fetch(first, count), out, resources_);
    return out;
  }

  const TransformChain& chain_;
  RowSource& rows_;
  Resources resources_;
  MatrixBuffer buffer_;               // for rows on the host
  std::shared_ptr<std::byte> there_;  // for rows on a GPU
};

}  // namespace kith
