#include "index/code_store.hpp"

#include "cuda/device_memory.hpp"
#include "index/block_merge.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr std::string_view kCodesPurpose = "the index's codes";

}  // namespace

CodeStore::CodeStore(std::shared_ptr<const Codec> codec, HostArray<uint8_t> codes) : CodeStore(std::move(codec)) {
  rows_ = codes.size() / codec_->format().bytes();
  if (rows_ == 0) return;
  auto block = std::make_shared<Block>();
  block->codes = std::move(codes);
  blocks_.push_back(std::move(block));
}

template <typename Write>
CodeStore CodeStore::grown(int64_t count, const Resources& resources, const Write& write) const {
  const int64_t each = codec_->format().bytes();
  CodeStore after = *this;
  if (count == 0) return after;
  after.rows_ += count;
  const size_t stay =
      blocks_that_stay(blocks_.size(), count, [&](size_t b) { return blocks_[b]->codes.size() / each; });
  const int64_t first_row = stay < blocks_.size() ? blocks_[stay]->first_row : rows_;
  after.blocks_.resize(stay);
  auto block = std::make_shared<Block>();
  block->first_row = first_row;
  block->codes = HostArray<uint8_t>((after.rows_ - first_row) * each, kCodesPurpose, resources);
  uint8_t* to = block->codes.data();
  for (size_t b = after.blocks_.size(); b < blocks_.size(); ++b) {
    to = std::copy(blocks_[b]->codes.begin(), blocks_[b]->codes.end(), to);
  }
  write(to);
  after.blocks_.push_back(std::move(block));
  return after;
}

CodeStore CodeStore::added(const MatrixView& rows, const Resources& resources) const {
  return grown(rows.rows(), resources, [&](uint8_t* to) { codec_->encode(rows, to, resources); });
}

int64_t CodeStore::added_bytes(const RowsInfo& rows, const Resources& resources) const {
  const int64_t each = codec_->format().bytes();
  const auto rows_in = [&](size_t b) { return blocks_[b]->codes.size() / each; };
  int64_t joined = rows.rows;
  for (size_t b = blocks_that_stay(blocks_.size(), rows.rows, rows_in); b < blocks_.size(); ++b) joined += rows_in(b);
  return joined * each + codec_->encoding_bytes(rows.rows, rows.dtype, resources.threads());
}

CodeStore CodeStore::joined(const CodeStore& other, const Resources& resources) const {
  return grown(other.rows(), resources, [&](uint8_t* to) { other.copy_to(to); });
}

CodeStore CodeStore::kept(const KeptRows& kept, const Resources& resources) const {
  const int64_t each = codec_->format().bytes();
  HostArray<uint8_t> left(kept.count() * each, kCodesPurpose, resources);
  int64_t at = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    if (!keeps(kept.bits(), row)) continue;
    std::memcpy(left.data() + at++ * each, code(row), static_cast<size_t>(each));
  }
  return {codec_, std::move(left)};
}

const uint8_t* CodeStore::code(int64_t row) const {
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), row,
                                      [](int64_t wanted, const auto& block) { return wanted < block->first_row; });
  const Block& block = **(after - 1);
  return block.codes.data() + (row - block.first_row) * codec_->format().bytes();
}

HostArray<uint8_t> CodeStore::copy(const Resources& resources) const {
  HostArray<uint8_t> all(bytes(), "codes to be saved", resources);
  copy_to(all.data());
  return all;
}

int64_t CodeStore::device_bytes() const {
  int64_t total = codec_there_->bytes();
  for (const auto& block : blocks_) total += block->there.bytes();
  return total;
}

GpuCodes CodeStore::on_gpu(int device, const Resources& given) const {
  const Resources resources = given.with_progress({});
  GpuCodes codes{device, codec_->format(), nullptr, {}};
  codes.codec = codec_there_->get(device, [&] { return codec_on_gpu(device, *codec_, resources); });
  for (const auto& block : blocks_) {
    const auto upload = [&] {
      const int64_t bytes = block->codes.bytes();
      CodesOnDevice there{allocate_on_device(bytes, "vectors to refine with on the device", device, resources), bytes};
      copy_to_device({block->codes.data(), DType::u8, {1, bytes, bytes}}, there.memory.get(), device, resources);
      return std::make_shared<const CodesOnDevice>(std::move(there));
    };
    codes.blocks.push_back({block->there.get(device, upload), block->first_row});
  }
  return codes;
}

void CodeStore::copy_to(uint8_t* to) const {
  for (const auto& block : blocks_) to = std::copy(block->codes.begin(), block->codes.end(), to);
}

}  // namespace kith
