#include "index/code_store.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr std::string_view kCodesPurpose = "the index's codes";

}  // namespace

CodeStore::CodeStore(std::shared_ptr<const Codec> codec, HostArray<uint8_t> codes) : CodeStore(std::move(codec)) {
  const int64_t rows = codes.size() / codec_->format().bytes();
  if (rows > 0) codes_.push_back(std::make_shared<Codes>(std::make_shared<const RowCodes>(std::move(codes), rows)));
}

template <typename Write>
CodeStore CodeStore::grown(int64_t count, const Resources& resources, const Write& write) const {
  CodeStore after = *this;
  if (count == 0) return after;
  const size_t stay = codes_.staying(count);
  const int64_t rows = codes_.rows() - codes_.first_row(stay) + count;
  HostArray<uint8_t> codes(rows * codec_->format().bytes(), kCodesPurpose, resources);
  write(copy_from(stay, codes.data()));
  after.codes_ =
      codes_.with(stay, std::make_shared<Codes>(std::make_shared<const RowCodes>(std::move(codes), rows)));
  return after;
}

CodeStore CodeStore::added(const MatrixView& rows, const Resources& resources) const {
  return grown(rows.rows(), resources, [&](uint8_t* to) { codec_->encode(rows, to, resources); });
}

int64_t CodeStore::added_bytes(const RowsInfo& rows, const Resources& resources) const {
  const int64_t joined = codes_.rows() - codes_.first_row(codes_.staying(rows.rows)) + rows.rows;
  return joined * codec_->format().bytes() + codec_->encoding_footprint(rows, resources).host;
}

CodeStore CodeStore::joined(const CodeStore& other, const Resources& resources) const {
  return grown(other.rows(), resources, [&](uint8_t* to) { other.copy_from(0, to); });
}

CodeStore CodeStore::kept(const KeptRows& kept, const Resources& resources) const {
  const int64_t each = codec_->format().bytes();
  HostArray<uint8_t> left(kept.count() * each, kCodesPurpose, resources);
  int64_t at = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    if (!keeps(kept.bits(), row)) continue;
    std::memcpy(left.data() + at++ * each, code(row), static_cast<size_t>(each));
  }
  return {codec_, std::move(left)};
}

const uint8_t* CodeStore::code(int64_t row) const {
  const size_t segment = codes_.number_of(row);
  return codes_.all()[segment]->made().data() + (row - codes_.first_row(segment)) * codec_->format().bytes();
}

HostArray<uint8_t> CodeStore::copy(const Resources& resources) const {
  HostArray<uint8_t> all(bytes(), "codes to be saved", resources);
  copy_from(0, all.data());
  return all;
}

int64_t CodeStore::device_bytes() const {
  int64_t total = codec_there_->bytes(DeviceKind::cuda);
  for (const auto& segment : codes_) total += segment->bytes(DeviceKind::cuda);
  return total;
}

GpuCodes CodeStore::on_gpu(int device, const Resources& given) const {
  const Resources resources = given.with_progress({});
  GpuCodes there{device, codec_->format(), nullptr, {}};
  there.codec = codec_there_->get(Device::cuda(device), [&] { return codec_on_gpu(device, *codec_, resources); });
  for (size_t i = 0; i < codes_.count(); ++i) {
    there.blocks.push_back({codes_.all()[i]->on(Device::cuda(device), resources), codes_.first_row(i)});
  }
  return there;
}

uint8_t* CodeStore::copy_from(size_t segment, uint8_t* to) const {
  for (; segment < codes_.count(); ++segment) {
    const RowCodes& codes = codes_.all()[segment]->made();
    to = std::copy_n(codes.data(), codes.bytes(), to);
  }
  return to;
}

}  // namespace kith
