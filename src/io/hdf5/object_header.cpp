#include "io/hdf5/object_header.hpp"
#include "io/hdf5/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr std::string_view kObjectHeader = "an object header";
constexpr size_t kMostBlocks = 256;
constexpr int64_t kSharedFlag = 2;

// Bits of the flags of version 2.
constexpr int64_t kWidthOfSize = 0x03;
constexpr int64_t kHasOrder = 0x04;
constexpr int64_t kHasAttributeLimits = 0x10;
constexpr int64_t kHasTimes = 0x20;

struct Extent {
  int64_t at;
  int64_t bytes;
};

class HeaderReader {
 public:
  explicit HeaderReader(const Hdf5Source& source) : source_(source) {}

  Hdf5ObjectHeader read(int64_t at) {
    header_.at = at;
    constexpr int64_t kLongestPrefix = 4 + 2 + 16 + 4 + 8;
    const Hdf5Block prefix = source_.read(at, std::min(kLongestPrefix, source_.size - at), kObjectHeader);
    Hdf5Cursor cursor(source_, prefix, kObjectHeader);
    if (cursor.accept("OHDR")) {
      read_first_of_version_2(cursor);
    } else {
      read_first_of_version_1(cursor);
    }
    // The list grows while it is followed.
    for (size_t i = 0; i < continuations_.size(); ++i) {
      if (i == kMostBlocks) {
        source_.corrupt(at, fmt::format("the object header has more than {} blocks; do they lead in a circle?", i));
      }
      read_continuation(continuations_[i]);
    }
    return std::move(header_);
  }

 private:
  void read_first_of_version_1(Hdf5Cursor& cursor) {
    const int64_t version_at = cursor.at();
    const int64_t version = cursor.u8();
    if (version != 1) source_.corrupt(version_at, "no object header begins here");
    cursor.skip(1 + 2 + 4);
    const int64_t bytes = cursor.u32();
    cursor.skip(4);
    read_messages(add_block({cursor.at(), bytes}), 0);
  }

  void read_first_of_version_2(Hdf5Cursor& cursor) {
    version_2_ = true;
    const int64_t version_at = cursor.at();
    if (const int64_t version = cursor.u8(); version != 2) {
      source_.unsupported(version_at, fmt::format("object header version {}; known are 1 and 2", version));
    }
    const int64_t flags = cursor.u8();
    has_order_ = (flags & kHasOrder) != 0;
    if ((flags & kHasTimes) != 0) cursor.skip(16);
    if ((flags & kHasAttributeLimits) != 0) cursor.skip(4);
    const int64_t bytes = cursor.number(int64_t{1} << (flags & kWidthOfSize));
    const int64_t prefix = cursor.at() - header_.at;
    source_.check_inside(header_.at, bytes, kObjectHeader);
    read_messages(add_block({header_.at, prefix + bytes + kChecksumBytes}), prefix);
  }

  void read_continuation(Extent extent) {
    const Hdf5Block& block = add_block(extent);
    int64_t skipped = 0;
    if (version_2_) {
      Hdf5Cursor(source_, block, kObjectHeader).expect("OCHK");
      skipped = 4;
    }
    read_messages(block, skipped);
  }

  const Hdf5Block& add_block(Extent extent) {
    Hdf5Block block = source_.read(extent.at, extent.bytes, kObjectHeader);
    total_bytes_ += extent.bytes;
    if (total_bytes_ > kHdf5LargestBlock) {
      source_.unsupported(header_.at, fmt::format("an object header of more than {} bytes", kHdf5LargestBlock));
    }
    header_.blocks.push_back(std::move(block));
    return header_.blocks.back();
  }

  void read_messages(const Hdf5Block& block, int64_t skipped) {
    Hdf5Cursor cursor(source_, block, kObjectHeader);
    if (version_2_) cursor.verify_checksum();
    cursor.skip(skipped);
    // What is too short for the beginning of a message is a gap.
    const int64_t shortest = version_2_ ? 4 + (has_order_ ? 2 : 0) : 8;
    while (cursor.left() >= shortest) {
      const auto type = static_cast<Hdf5MessageType>(version_2_ ? cursor.u8() : cursor.u16());
      const int64_t bytes = cursor.u16();
      const int64_t flags = cursor.u8();
      cursor.skip(version_2_ ? (has_order_ ? 2 : 0) : 3);
      const int64_t at = cursor.at();
      const std::span<const std::byte> content = cursor.take(bytes);
      if (type == Hdf5MessageType::nil) continue;
      if (type == Hdf5MessageType::continuation) {
        follow(Hdf5Cursor(source_, content, at, "a continuation message"));
      } else {
        header_.messages.push_back({type, (flags & kSharedFlag) != 0, content, at});
      }
    }
  }

  void follow(Hdf5Cursor message) {
    const int64_t here = message.at();
    const int64_t at = message.address();
    if (at == kHdf5Nowhere) source_.corrupt(here, "an object header continues at no address");
    continuations_.push_back({at, message.length()});
  }

  const Hdf5Source& source_;
  Hdf5ObjectHeader header_;
  std::vector<Extent> continuations_;
  int64_t total_bytes_ = 0;
  bool version_2_ = false;
  bool has_order_ = false;
};

}  // namespace

const Hdf5Message* Hdf5ObjectHeader::find(Hdf5MessageType type) const {
  const auto found = std::find_if(messages.begin(), messages.end(), [&](const auto& m) { return m.type == type; });
  return found == messages.end() ? nullptr : &*found;
}

Hdf5ObjectHeader read_object_header(const Hdf5Source& source, int64_t at) { return HeaderReader(source).read(at); }

}  // namespace kith
