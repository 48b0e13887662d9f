#include "io/hdf5/link.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

// Bits of a link's flags.
constexpr int64_t kWidthOfNameLength = 0x03;
constexpr int64_t kLinkHasOrder = 0x04;
constexpr int64_t kHasKind = 0x08;
constexpr int64_t kHasCharacterSet = 0x10;

constexpr int64_t kHard = 0;
constexpr int64_t kSoft = 1;

}  // namespace

Hdf5Link parse_link(const Hdf5Source& source, Hdf5Cursor message) {
  const int64_t version_at = message.at();
  if (const int64_t version = message.u8(); version != 1) {
    source.corrupt(version_at, fmt::format("unknown version {} of a link; known is 1", version));
  }
  const int64_t flags = message.u8();
  const int64_t kind = (flags & kHasKind) != 0 ? message.u8() : kHard;
  if ((flags & kLinkHasOrder) != 0) message.skip(8);
  if ((flags & kHasCharacterSet) != 0) message.skip(1);
  Hdf5Link link;
  link.name = message.text(message.number(int64_t{1} << (flags & kWidthOfNameLength)));
  if (kind == kHard) {
    const int64_t at = message.at();
    link.header_at = message.address();
    if (link.header_at == kHdf5Nowhere) source.corrupt(at, "a link leads nowhere");
  } else if (kind == kSoft) {
    link.kind = Hdf5LinkKind::soft;
    link.target = message.text(message.u16());
  } else {
    link.kind = Hdf5LinkKind::external;
  }
  return link;
}

}  // namespace kith
