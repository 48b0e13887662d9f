#include "index/graph_vectors.hpp"

#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "kernels/codes/code_reader_cpu.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kPrefetchedRowBytes = 512;

}  // namespace

GraphVectors::GraphVectors(const IndexState& store, const Resources& resources)
    : rows_(store.content().rows), cols_(store.content().cols), dtype_(store.content().dtype) {
  IndexParts parts;
  store.give_parts(parts, resources);
  if (counts_only(resources)) return;
  if (parts.lists) {
    const CodecParts& codec = parts.lists->codec;
    codec_ = Codec::from_parts(codec.recipe(), codec.format.cols, codec.values, resources);
    codes_ = std::move(parts.lists->codes);
    return;
  }
  int64_t first = 0;
  for (PartMatrix& block : parts.flat) {
    if (block.rows() == 0) continue;
    first_rows_.push_back(first);
    first += block.rows();
    blocks_.push_back(std::move(block));
  }
}

size_t GraphVectors::block_of(int64_t row) const {
  if (blocks_.size() == 1) return 0;
  return static_cast<size_t>(std::upper_bound(first_rows_.begin(), first_rows_.end(), row) - first_rows_.begin()) - 1;
}

void GraphVectors::prefetch(uint32_t row) const {
  const std::byte* at = nullptr;
  int64_t bytes = 0;
  if (codec_ != nullptr) {
    bytes = codec_->format().bytes();
    at = reinterpret_cast<const std::byte*>(codes_.data() + row * bytes);
  } else {
    const size_t block = block_of(row);
    const MatrixView& view = blocks_[block].view();
    bytes = view.cols() * size_of(view.dtype());
    at = view.row(row - first_rows_[block]);
  }
  for (int64_t i = 0; i < std::min(bytes, kPrefetchedRowBytes); i += 64) __builtin_prefetch(at + i, 0, 2);
}

void GraphVectors::keys(KeyKind kind, const CanonicalQuery& query, const uint32_t* rows, int64_t count, float* floats,
                        float* keys) const {
  if (codec_ != nullptr) {
    uint32_t numbers[kTogether];
    const CodecView codec = codec_->view();
    for (int64_t i = 0; i < count; ++i) {
      numbers[i] = static_cast<uint32_t>(i);
      decode_rows_cpu(codec, codes_.data() + rows[i] * codec.format.bytes(), 1, nullptr, floats + i * cols_);
    }
    return canonical_keys_cpu(kind, query, MatrixView(floats, count, cols_), numbers, count, keys);
  }
  if (blocks_.size() == 1) return canonical_keys_cpu(kind, query, blocks_[0].view(), rows, count, keys);
  for (int64_t i = 0; i < count; ++i) {
    const size_t block = block_of(rows[i]);
    const auto within = static_cast<uint32_t>(rows[i] - first_rows_[block]);
    canonical_keys_cpu(kind, query, blocks_[block].view(), &within, 1, keys + i);
  }
}

CodeFormat GraphVectors::format() const {
  if (codec_ != nullptr) return codec_->format();
  return {.kind = CodeKind::stored, .cols = cols_, .dtype = dtype_};
}

void GraphVectors::copy_to_gpu(std::byte* to, int device, const Resources& given) const {
  const Resources resources = given.with_progress({});
  if (counts_only(resources)) return;
  if (codec_ != nullptr) {
    const int64_t bytes = rows_ * codec_->format().bytes();
    return copy_to_device({codes_.data(), DType::u8, {1, bytes, bytes}}, to, device, resources);
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    copy_to_device(blocks_[i].view(), to + first_rows_[i] * cols_ * size_of(dtype_), device, resources);
  }
}

MatrixView GraphVectors::view(int64_t first, int64_t count, MatrixBuffer& room, const Resources& resources) const {
  if (!counts_only(resources) && codec_ == nullptr && count > 0) {
    const size_t block = block_of(first);
    const MatrixView& all = blocks_[block].view();
    const int64_t within = first - first_rows_[block];
    if (within + count <= all.rows()) return all.slice(within, count);
  }
  room = MatrixBuffer(dtype(), count, cols_, "the vectors of a graph", resources);
  const MutableMatrixView to = room.mutable_view();
  for (int64_t i = 0; i < count && !counts_only(resources); ++i) {
    const int64_t row = first + i;
    if (codec_ != nullptr) {
      decode_rows_cpu(codec_->view(), codes_.data() + row * codec_->format().bytes(), 1, nullptr,
                      reinterpret_cast<float*>(to.row(i)));
      continue;
    }
    const size_t block = block_of(row);
    std::memcpy(to.row(i), blocks_[block].view().row(row - first_rows_[block]),
                static_cast<size_t>(cols_ * size_of(dtype_)));
  }
  return to;
}

}  // namespace kith
