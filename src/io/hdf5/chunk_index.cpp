#include "io/hdf5/chunk_index.hpp"

#include "core/byte_size.hpp"
#include "io/hdf5/checksum.hpp"
#include "io/hdf5/tree_v2.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// Chunks found by B-trees: sorted by where they lie in the dataset, rows first.

using Place = std::array<int64_t, 2>;

constexpr std::string_view kChunkTreeNode = "a node of the tree of chunks";

// Before a child of a tree of version 1: the first chunk below it.
struct Key {
  int64_t bytes;
  int64_t skipped_filters;
  Place first_value;
};

Key read_key(Hdf5Cursor& cursor) {
  Key key{};
  key.bytes = cursor.u32();
  key.skipped_filters = cursor.u32();
  for (int64_t& axis : key.first_value) axis = cursor.number(8);
  cursor.skip(8);  // inside of an element
  return key;
}

Hdf5Chunk find_in_tree_v1(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking, Place place) {
  constexpr int64_t kChunkNode = 1;
  constexpr int64_t kKeyBytes = 4 + 4 + 3 * 8;
  const Place wanted{place[0] * chunking.chunk[0], place[1] * chunking.chunk[1]};
  const int64_t head_bytes = 8 + 2 * source.offset_bytes;
  const int64_t entry_bytes = kKeyBytes + source.offset_bytes;
  int64_t at = chunking.index_at;
  int64_t expected_level = -1;  // any
  while (true) {
    const Hdf5Block& head = cache.read(source, at, head_bytes, kChunkTreeNode);
    Hdf5Cursor cursor(source, head, kChunkTreeNode);
    cursor.expect("TREE");
    if (cursor.u8() != kChunkNode) source.corrupt(at, "a tree of chunks has a node that holds none");
    const int64_t level = cursor.u8();
    if (expected_level >= 0 && level != expected_level) source.corrupt(at, "a tree of chunks has a wrong level");
    const int64_t entries = cursor.u16();

    // The last entry that does not begin behind the chunk.
    const Hdf5Block& body = cache.read(source, at + head_bytes, entries * entry_bytes, kChunkTreeNode);
    const auto entry_at = [&](int64_t i) {
      Hdf5Cursor entry(source, body, kChunkTreeNode);
      entry.skip(i * entry_bytes);
      return entry;
    };
    int64_t low = 0;
    int64_t high = entries;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      Hdf5Cursor entry = entry_at(middle);
      if (read_key(entry).first_value > wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low == 0) return {};
    Hdf5Cursor entry = entry_at(low - 1);
    const Key key = read_key(entry);
    const int64_t child = entry.address();
    if (level == 0) {
      return key.first_value == wanted ? Hdf5Chunk{child, key.bytes, key.skipped_filters} : Hdf5Chunk{};
    }
    if (child == kHdf5Nowhere) return {};
    at = child;
    expected_level = level - 1;
  }
}

// A record is the chunk's address, if filtered its bytes and the filters' mask, and where it lies, counted in chunks.
Hdf5Chunk find_in_tree_v2(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking, Place place) {
  constexpr int64_t kPlainRecords = 10;
  constexpr int64_t kFilteredRecords = 11;
  constexpr int64_t kMaskBytes = 4;
  constexpr int64_t kPlaceBytes = 2 * 8;
  const Hdf5TreeV2 tree(source, cache, chunking.index_at, chunking.filtered ? kFilteredRecords : kPlainRecords);
  const int64_t size_bytes =
      chunking.filtered ? tree.record_bytes() - source.offset_bytes - kMaskBytes - kPlaceBytes : 0;
  if (size_bytes < 0 || size_bytes > 8) source.corrupt(chunking.index_at, "a tree of chunks has impossible records");

  Hdf5Chunk chunk;
  tree.find([&](Hdf5Cursor record) {
    const int64_t at = record.address();
    const int64_t bytes = chunking.filtered ? record.number(size_bytes) : chunking.chunk_bytes;
    const int64_t skipped = chunking.filtered ? record.u32() : 0;
    Place given{};
    for (int64_t& axis : given) axis = record.number(8);
    if (given != place) return place < given ? -1 : 1;
    chunk = {at, bytes, skipped};
    return 0;
  });
  return chunk;
}

// Chunks found by arrays of their addresses: fixed, where the number of chunks is known, and extensible, where one axis
// of the dataset has no end.

constexpr std::string_view kFixed = "a fixed array of chunks";
constexpr std::string_view kExtensible = "an extensible array of chunks";
constexpr std::string_view kPage = "a page of an array of chunks";
constexpr int64_t kPrefixBytes = 6;  // signature, version, whether filtered
constexpr int64_t kMaskBytes = 4;
constexpr int64_t kMostBits = 20;  // of the number of elements that are read at once

// What one chunk takes in an array: its address; if filtered its bytes and the filters' mask.
class Elements {
 public:
  Elements(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking, int64_t bytes)
      : source_(source), cache_(cache), chunking_(chunking), bytes_(bytes) {
    size_bytes_ = chunking.filtered ? bytes - source.offset_bytes - kMaskBytes : 0;
    const bool right = chunking.filtered ? size_bytes_ >= 1 && size_bytes_ <= 8 : bytes == source.offset_bytes;
    if (!right) source.corrupt(chunking.index_at, fmt::format("an array of chunks with elements of {} bytes", bytes));
  }

  int64_t bytes() const { return bytes_; }

  Hdf5Chunk take(Hdf5Cursor& cursor) const {
    const int64_t at = cursor.address();
    if (!chunking_.filtered) return {at, chunking_.chunk_bytes, 0};
    const int64_t stored = cursor.number(size_bytes_);
    return {at, stored, cursor.u32()};
  }

  // Element `i` of a page, which is `count` of them and a checksum.
  Hdf5Chunk from_page(int64_t at, int64_t count, int64_t i) const {
    const Hdf5Block& page = cache_.read_checked(source_, at, count * bytes_ + kChecksumBytes, kPage);
    Hdf5Cursor cursor(source_, page, kPage);
    cursor.skip(i * bytes_);
    return take(cursor);
  }

 private:
  const Hdf5Source& source_;
  Hdf5BlockCache& cache_;
  const Hdf5Chunking& chunking_;
  int64_t bytes_;
  int64_t size_bytes_ = 0;
};

// A cursor behind what all blocks of arrays begin with.
Hdf5Cursor open_block(const Hdf5Source& source, const Hdf5Block& block, const char* signature, std::string_view what) {
  Hdf5Cursor cursor(source, block, what);
  cursor.expect(signature);
  cursor.skip(2);
  return cursor;
}

bool bit_at(std::span<const std::byte> bits, int64_t i) {
  return (std::to_integer<int>(bits[static_cast<size_t>(i / 8)]) & 0x80 >> i % 8) != 0;
}

// A header, then one block of elements. A long one is divided into pages, and says by a bit which of them are in use.
Hdf5Chunk find_in_fixed_array(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                              int64_t number) {
  const int64_t header_bytes = kPrefixBytes + 2 + source.length_bytes + source.offset_bytes + kChecksumBytes;
  const Hdf5Block& header_block = cache.read_checked(source, chunking.index_at, header_bytes, kFixed);
  Hdf5Cursor header = open_block(source, header_block, "FAHD", kFixed);
  const Elements elements(source, cache, chunking, header.u8());
  const int64_t page_bits = header.u8();
  const int64_t count = header.length();
  const int64_t at = header.address();
  if (at == kHdf5Nowhere) return {};
  if (number >= count) source.corrupt(chunking.index_at, fmt::format("an array of {} chunks has no {}", count, number));
  if (page_bits > kMostBits) source.unsupported(chunking.index_at, "pages of more than a million chunks");

  const int64_t prefix = kPrefixBytes + source.offset_bytes;
  const int64_t page = int64_t{1} << page_bits;
  if (count <= page) {
    const Hdf5Block& block = cache.read_checked(source, at, prefix + count * elements.bytes() + kChecksumBytes, kFixed);
    Hdf5Cursor cursor = open_block(source, block, "FADB", kFixed);
    cursor.skip(source.offset_bytes + number * elements.bytes());
    return elements.take(cursor);
  }
  const int64_t pages = (count - 1) / page + 1;
  const int64_t bitmap_bytes = (pages - 1) / 8 + 1;
  const int64_t block_bytes = prefix + bitmap_bytes + kChecksumBytes;
  const Hdf5Block& block = cache.read_checked(source, at, block_bytes, kFixed);
  Hdf5Cursor cursor = open_block(source, block, "FADB", kFixed);
  cursor.skip(source.offset_bytes);
  const int64_t index = number / page;
  if (!bit_at(cursor.take(bitmap_bytes), index)) return {};
  const int64_t before = index * (page * elements.bytes() + kChecksumBytes);
  source.check_inside(at + block_bytes, before, kFixed);
  return elements.from_page(at + block_bytes + before, std::min(page, count - index * page), number % page);
}

// An index block holds the first elements, the addresses of the first blocks of elements, and those of super blocks,
// which hold the addresses of ever more and larger blocks: in super block s there are 2^(s/2) of 2^((s+1)/2) times the
// smallest length. The first super blocks are not there; the index block does their work.
Hdf5Chunk find_in_extensible_array(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                                   std::array<int64_t, 2> place) {
  const int64_t o = source.offset_bytes;
  const int64_t header_bytes = kPrefixBytes + 6 + 6 * source.length_bytes + o + kChecksumBytes;
  const Hdf5Block& header_block = cache.read_checked(source, chunking.index_at, header_bytes, kExtensible);
  Hdf5Cursor header = open_block(source, header_block, "EAHD", kExtensible);
  const Elements elements(source, cache, chunking, header.u8());
  const int64_t count_bits = header.u8();
  const int64_t in_index = header.u8();
  const int64_t smallest = header.u8();
  const int64_t fewest_pointers = header.u8();
  const int64_t page_bits = header.u8();
  header.skip(6 * source.length_bytes);
  const int64_t index_at = header.address();
  if (index_at == kHdf5Nowhere) return {};
  const auto is_power_of_2 = [](int64_t value) { return std::has_single_bit(static_cast<uint64_t>(value)); };
  if (!is_power_of_2(smallest) || !is_power_of_2(fewest_pointers) || count_bits > 62 || page_bits > kMostBits ||
      count_bits < hdf5_log2(smallest)) {
    source.corrupt(chunking.index_at, "the sizes of an array of chunks are impossible");
  }

  // Numbers run along the other axis first, whichever has no end.
  const size_t endless = chunking.most[0] == kHdf5Unlimited ? 0 : 1;
  const int64_t others = chunking.most_chunks_along(1 - endless);
  int64_t number = saturating_multiply(place[endless], others);
  number = number > INT64_MAX - place[1 - endless] ? INT64_MAX : number + place[1 - endless];

  const int64_t super_blocks = 1 + count_bits - hdf5_log2(smallest);
  const int64_t skipped_super_blocks = std::min(2 * hdf5_log2(fewest_pointers), super_blocks);
  const int64_t direct_blocks = 2 * (fewest_pointers - 1);
  const int64_t prefix = kPrefixBytes + o;
  const int64_t index_bytes = prefix + in_index * elements.bytes() + direct_blocks * o +
                              (super_blocks - skipped_super_blocks) * o + kChecksumBytes;
  const Hdf5Block& index_block = cache.read_checked(source, index_at, index_bytes, kExtensible);
  Hdf5Cursor index = open_block(source, index_block, "EAIB", kExtensible);
  index.skip(o);
  if (number < in_index) {
    index.skip(number * elements.bytes());
    return elements.take(index);
  }
  index.skip(in_index * elements.bytes());
  number -= in_index;

  const int64_t super = number >> count_bits != 0 ? super_blocks : hdf5_log2(number / smallest + 1);
  if (super < 0 || super >= super_blocks)
    source.corrupt(chunking.index_at, "a chunk is past the end of the array of chunks");
  const int64_t in_super = number - ((int64_t{1} << super) - 1) * smallest;
  const int64_t blocks = int64_t{1} << super / 2;
  const int64_t length = smallest << (super + 1) / 2;
  const int64_t block = in_super / length;
  const int64_t in_block = in_super % length;
  const int64_t page = int64_t{1} << page_bits;
  const bool paged = length > page;
  const int64_t offset_bytes = (count_bits + 7) / 8;
  const int64_t data_prefix = prefix + offset_bytes;

  int64_t data_at = kHdf5Nowhere;
  if (super < skipped_super_blocks) {
    if (paged) source.unsupported(chunking.index_at, "an array of chunks whose first blocks have pages");
    // Number of blocks in the super blocks before: 1, 1, 2, 2, 4, 4, ...
    const int64_t before = super % 2 == 0 ? 2 * (blocks - 1) : 3 * blocks - 2;
    index.skip((before + block) * o);
    data_at = index.address();
  } else {
    index.skip((direct_blocks + super - skipped_super_blocks) * o);
    const int64_t super_at = index.address();
    if (super_at == kHdf5Nowhere) return {};
    const int64_t pages = paged ? length / page : 0;
    const int64_t bitmap_bytes = (pages + 7) / 8;  // for each block
    const int64_t super_bytes = data_prefix + blocks * bitmap_bytes + blocks * o + kChecksumBytes;
    const Hdf5Block& super_block = cache.read_checked(source, super_at, super_bytes, kExtensible);
    Hdf5Cursor cursor = open_block(source, super_block, "EASB", kExtensible);
    cursor.skip(o + offset_bytes);
    const auto bitmap = cursor.take(blocks * bitmap_bytes);
    if (paged && !bit_at(bitmap, block * pages + in_block / page)) return {};
    cursor.skip(block * o);
    data_at = cursor.address();
  }
  if (data_at == kHdf5Nowhere) return {};
  if (paged) {
    const int64_t before = in_block / page * (page * elements.bytes() + kChecksumBytes);
    source.check_inside(data_at, data_prefix + kChecksumBytes + before, kExtensible);
    return elements.from_page(data_at + data_prefix + kChecksumBytes + before, page, in_block % page);
  }
  const Hdf5Block& data =
      cache.read_checked(source, data_at, data_prefix + length * elements.bytes() + kChecksumBytes, kExtensible);
  Hdf5Cursor cursor = open_block(source, data, "EADB", kExtensible);
  cursor.skip(o + offset_bytes + in_block * elements.bytes());
  return elements.take(cursor);
}

// Its number, row after row, in a dataset that has grown as far as it may.
int64_t number_of(const Hdf5Chunking& chunking, std::array<int64_t, 2> place) {
  const int64_t before = saturating_multiply(place[0], chunking.most_chunks_along(1));
  return before > INT64_MAX - place[1] ? INT64_MAX : before + place[1];
}

Hdf5Chunk implicit_chunk(const Hdf5Source& source, const Hdf5Chunking& chunking, int64_t number) {
  const int64_t offset = saturating_multiply(number, chunking.chunk_bytes);
  source.check_inside(chunking.index_at, offset, "the chunks");
  return {chunking.index_at + offset, chunking.chunk_bytes, 0};
}

Hdf5Chunk look_up(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                  std::array<int64_t, 2> place) {
  switch (chunking.kind) {
    case Hdf5IndexKind::tree_v1: return find_in_tree_v1(source, cache, chunking, place);
    case Hdf5IndexKind::single:
      return chunking.filtered ? chunking.single : Hdf5Chunk{chunking.index_at, chunking.chunk_bytes, 0};
    case Hdf5IndexKind::implicit: return implicit_chunk(source, chunking, number_of(chunking, place));
    case Hdf5IndexKind::fixed_array: return find_in_fixed_array(source, cache, chunking, number_of(chunking, place));
    case Hdf5IndexKind::extensible_array: return find_in_extensible_array(source, cache, chunking, place);
    case Hdf5IndexKind::tree_v2: return find_in_tree_v2(source, cache, chunking, place);
  }
  return {};
}

bool is_cut(const Hdf5Chunking& chunking, std::array<int64_t, 2> place) {
  for (size_t axis = 0; axis < 2; ++axis) {
    if (place[axis] + 1 == chunking.chunks_along(axis) && chunking.shape[axis] % chunking.chunk[axis] != 0) return true;
  }
  return false;
}

}  // namespace

Hdf5Chunk find_chunk(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                     std::array<int64_t, 2> place) {
  if (chunking.index_at == kHdf5Nowhere) return {};
  Hdf5Chunk chunk = look_up(source, cache, chunking, place);
  if (chunk.at == kHdf5Nowhere) return chunk;
  source.check_inside(chunk.at, chunk.bytes, "a chunk");
  if (chunking.plain_edges && is_cut(chunking, place)) chunk.skipped_filters = -1;
  return chunk;
}

}  // namespace kith
