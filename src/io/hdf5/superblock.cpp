#include "io/hdf5/superblock.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr std::string_view kSuperblock = "the superblock";
constexpr int64_t kFirstPlaceBehind0 = 512;
constexpr int64_t kMostBytes = 8 + 20 + 6 * 8;  // more than any version needs up to the root group's address

int64_t locate(const Hdf5Source& source) {
  const auto signature_bytes = static_cast<int64_t>(kSignature.size());
  for (int64_t at = 0; at <= source.size - signature_bytes; at = at == 0 ? kFirstPlaceBehind0 : 2 * at) {
    const Hdf5Block block = source.read(at, signature_bytes, kSuperblock);
    if (Hdf5Cursor(source, block, kSuperblock).accept(kSignature)) return at;
  }
  source.corrupt(0, "not an HDF5 file: its signature is neither at the beginning nor at byte 512, 1024, 2048, ...");
}

void check_width(const Hdf5Source& source, int64_t at, int64_t bytes) {
  if (bytes != 2 && bytes != 4 && bytes != 8) {
    source.corrupt(at, fmt::format("addresses or lengths of {} bytes; known are 2, 4 and 8", bytes));
  }
}

// Where the file should end, counted from its beginning. The stored address counts from the beginning too, as it was
// when the file was made: a block of the user's that was added or taken away since has moved everything.
void check_end(const Hdf5Source& source, int64_t stored_base, int64_t stored_end, int64_t at) {
  if (stored_end < stored_base) source.corrupt(at, "the end of the file is said to be before its beginning");
  const int64_t bytes = stored_end - stored_base;
  if (bytes <= source.size - source.base) return;
  source.corrupt(source.size, fmt::format("the file ends here, but its superblock promises {} bytes more; it is "
                                          "truncated",
                                          bytes - (source.size - source.base)));
}

}  // namespace

int64_t read_superblock(Hdf5Source& source) {
  source.base = locate(source);
  const int64_t bytes = std::min(kMostBytes, source.size - source.base);
  Hdf5Block block = source.read(source.base, bytes, kSuperblock);
  Hdf5Cursor cursor(source, block, kSuperblock);
  cursor.expect(kSignature);
  const int64_t version_at = cursor.at();
  const int64_t version = cursor.u8();
  if (version > 3) source.unsupported(version_at, fmt::format("superblock version {}; known are 0 to 3", version));
  const bool old = version < 2;
  if (old) cursor.skip(4);  // versions of other parts, which had no other yet
  const int64_t widths_at = cursor.at();
  source.offset_bytes = cursor.u8();
  source.length_bytes = cursor.u8();
  check_width(source, widths_at, source.offset_bytes);
  check_width(source, widths_at + 1, source.length_bytes);
  if (old) {
    cursor.skip(1 + 2 + 2 + 4);             // widths of tree nodes, which say themselves how full they are; flags
    cursor.skip(version == 1 ? 2 + 2 : 0);  // the same for chunks
  } else {
    cursor.skip(1);
    block.bytes.resize(static_cast<size_t>(std::min(cursor.at() - block.at + 4 * source.offset_bytes + 4, bytes)));
    Hdf5Cursor(source, block, kSuperblock).verify_checksum();
  }
  const int64_t stored_base = cursor.number(source.offset_bytes);
  cursor.skip(source.offset_bytes);  // of free space, or of the superblock's extension
  const int64_t end_at = cursor.at();
  check_end(source, stored_base, cursor.number(source.offset_bytes), end_at);
  if (old) cursor.skip(source.offset_bytes + source.length_bytes);  // of the driver's block; the root's name
  const int64_t root_at = cursor.at();
  const int64_t root = cursor.address();
  if (root == kHdf5Nowhere) source.corrupt(root_at, "the file has no root group");
  return root;
}

}  // namespace kith
