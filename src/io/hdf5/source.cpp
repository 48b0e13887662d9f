#include "io/hdf5/source.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "io/file_error.hpp"
#include "io/hdf5/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

}  // namespace

Hdf5Block Hdf5Source::read(int64_t at, int64_t bytes, std::string_view what) const {
  check_inside(at, bytes, what);
  if (bytes > kHdf5LargestBlock) {
    unsupported(at,
                fmt::format("{} of {}; the limit is {}", what, format_bytes(bytes), format_bytes(kHdf5LargestBlock)));
  }
  Hdf5Block block{std::vector<std::byte>(static_cast<size_t>(bytes)), at};
  read_fully(file, path, at, block.bytes.data(), bytes);
  return block;
}

void Hdf5Source::check_inside(int64_t at, int64_t bytes, std::string_view what) const {
  if (bytes <= size - at) return;
  corrupt(size, fmt::format("the file ends here, inside of {}, which begins at byte {} and takes {}; it is truncated "
                            "or is damaged",
                            what, at, bytes));
}

void Hdf5Source::corrupt(int64_t at, std::string_view reason) const { throw_corrupt(path, at, reason); }
void Hdf5Source::refused(int64_t at, std::string_view reason) const { throw_refused(path, at, reason); }
void Hdf5Source::unsupported(int64_t at, std::string_view reason) const {
  throw Unsupported(fmt::format("'{}', byte {}: {}", path, at, reason));
}

std::span<const std::byte> Hdf5Cursor::take(int64_t bytes) {
  if (bytes > left()) source_->corrupt(at(), fmt::format("{} ends {} bytes early", what_, bytes - left()));
  const auto taken = bytes_.subspan(next_, static_cast<size_t>(bytes));
  next_ += static_cast<size_t>(bytes);
  return taken;
}

std::string_view Hdf5Cursor::text(int64_t bytes) {
  const auto taken = take(bytes);
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

bool Hdf5Cursor::accept(std::string_view signature) {
  const auto bytes = static_cast<int64_t>(signature.size());
  if (bytes > left()) return false;
  Hdf5Cursor ahead = *this;
  if (ahead.text(bytes) != signature) return false;
  *this = ahead;
  return true;
}

void Hdf5Cursor::expect(std::string_view signature) {
  if (!accept(signature))
    source_->corrupt(at(), fmt::format("'{}' was expected here, the signature of {}", signature, what_));
}

int64_t Hdf5Cursor::number(int64_t bytes) {
  return static_cast<int64_t>(std::min<uint64_t>(little_endian(take(bytes)), INT64_MAX));
}

int64_t Hdf5Cursor::address() {
  const int64_t here = at();
  const auto bytes = take(source_->offset_bytes);
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0xff}; })) return kHdf5Nowhere;
  const uint64_t address = little_endian(bytes);
  if (address > static_cast<uint64_t>(source_->size - source_->base)) {
    source_->corrupt(here, fmt::format("{} has the address {}, past the end of the file", what_, address));
  }
  return source_->base + static_cast<int64_t>(address);
}

void Hdf5Cursor::verify_checksum() {
  if (left() < kChecksumBytes) source_->corrupt(at(), fmt::format("{} has no room for its checksum", what_));
  const size_t covered = bytes_.size() - static_cast<size_t>(kChecksumBytes);
  const auto stored = static_cast<uint32_t>(little_endian(bytes_.subspan(covered)));
  if (!matches_hdf5_checksum(bytes_.first(covered), stored)) {
    source_->corrupt(at_, fmt::format("the checksum of {} is wrong; the file is damaged", what_));
  }
  bytes_ = bytes_.first(covered);
}

const Hdf5Block& Hdf5BlockCache::find(const Hdf5Source& source, int64_t at, int64_t bytes, std::string_view what,
                                      bool checked) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Entry& entry) { return entry.block.at == at && entry.bytes == bytes; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->block;
  }
  Hdf5Block block = source.read(at, bytes, what);
  if (checked) {
    Hdf5Cursor(source, block, what).verify_checksum();
    block.bytes.resize(block.bytes.size() - size_t{kChecksumBytes});
  }
  if (kept_.size() == kMostKept) kept_.pop_back();
  kept_.push_front({bytes, std::move(block)});
  return kept_.front().block;
}

}  // namespace kith
