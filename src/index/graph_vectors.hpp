// The vectors that stand behind a graph, in another state ("Flat" or codes of one list): for the distances that are
// returned, and for building. What they hold is shared, not copied, where it lies together.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "index/index_state.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/codec.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class GraphVectors {
 public:
  // The state may go before this.
  GraphVectors(const IndexState& store, const Resources& resources);

  DType dtype() const { return codec_ == nullptr ? dtype_ : DType::f32; }
  int64_t rows() const { return rows_; }

  // The reported keys of these rows, up to kTogether. `floats` has room for as many vectors, and is used for codes.
  static constexpr int64_t kTogether = 64;
  void keys(KeyKind kind, const CanonicalQuery& query, const uint32_t* rows, int64_t count, float* floats,
            float* keys) const;
  // Number of values that `floats` has room for.
  int64_t float_room() const { return codec_ == nullptr ? 0 : kTogether * cols_; }
  // Asks for the memory of a row.
  void prefetch(uint32_t row) const;

  // Rows first .. first + count - 1: as they are stored, where they lie together, else in `room`, which is made for it.
  MatrixView view(int64_t first, int64_t count, MatrixBuffer& room, const Resources& resources) const;

  // For a copy on a GPU: what the bytes are, and all of them in the order of rows, to packed device memory.
  CodeFormat format() const;
  const std::shared_ptr<const Codec>& codec() const { return codec_; }  // null: the vectors as they are
  void copy_to_gpu(std::byte* to, int device, const Resources& resources) const;

 private:
  size_t block_of(int64_t row) const;

  int64_t rows_;
  int64_t cols_;
  DType dtype_;
  std::vector<PartMatrix> blocks_;
  std::vector<int64_t> first_rows_;
  std::shared_ptr<const Codec> codec_;  // null: the vectors as they are
  PartArray<uint8_t> codes_;
};

}  // namespace kith
