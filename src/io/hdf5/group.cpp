#include "io/hdf5/group.hpp"

#include "io/file_error.hpp"
#include "io/hdf5/checksum.hpp"
#include "io/hdf5/source.hpp"
#include "io/hdf5/tree_v2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace kith {
namespace {

// The links of a group of the new style that has many: they stand in a fractal heap, and a tree sorted by the checksums
// of their names finds them.
struct Hdf5DenseLinks {
  int64_t heap_at;
  int64_t tree_at;
};

constexpr std::string_view kHeapHeader = "the header of a fractal heap";
constexpr std::string_view kTable = "a table of a fractal heap's blocks";
constexpr std::string_view kBlock = "a block of a fractal heap";
constexpr int64_t kMostHeapLevels = 16;

bool is_power_of_2(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

// A fractal heap: the place of many small objects, in blocks whose sizes double from row to row of a table. Here it
// holds the links of large groups, so only what they need is read: objects inside of unfiltered blocks.
class Hdf5FractalHeap {
 public:
  Hdf5FractalHeap(const Hdf5Source& source, int64_t at) : source_(source), at_(at) {
    const int64_t o = source.offset_bytes;
    const int64_t l = source.length_bytes;
    const Hdf5Block block = source.read(at, 22 + 12 * l + 3 * o + kChecksumBytes, kHeapHeader);
    Hdf5Cursor cursor(source, block, kHeapHeader);
    Hdf5Cursor filters(source, block, kHeapHeader);
    filters.skip(7);
    if (filters.u16() != 0)
      source.unsupported(at, "the links of a group are compressed; rewrite the file with h5repack");
    cursor.verify_checksum();
    cursor.expect("FRHP");
    cursor.skip(1);
    id_bytes_ = cursor.u16();
    cursor.skip(2 + 1);
    const int64_t most_object_bytes = cursor.u32();
    cursor.skip(l + o + l + o + 8 * l);  // huge objects, free space, and counts
    table_width_ = cursor.u16();
    first_block_bytes_ = cursor.length();
    most_direct_bytes_ = cursor.length();
    const int64_t heap_bits = cursor.u16();
    cursor.skip(2);
    root_at_ = cursor.address();
    root_rows_ = cursor.u16();
    if (!is_power_of_2(table_width_) || !is_power_of_2(first_block_bytes_) || !is_power_of_2(most_direct_bytes_) ||
        first_block_bytes_ > most_direct_bytes_ || most_direct_bytes_ > kHdf5LargestBlock || heap_bits < 1 ||
        heap_bits > 62 || most_object_bytes < 1) {
      source.corrupt(at, "the sizes of the heap of a group's links are impossible");
    }
    offset_width_ = (heap_bits + 7) / 8;
    length_width_ = std::min((hdf5_log2(most_direct_bytes_) + 7) / 8, hdf5_log2(most_object_bytes) / 8 + 1);
  }

  int64_t id_bytes() const { return id_bytes_; }

  // The object that an id names.
  Hdf5Block read(Hdf5Cursor id) const {
    const int64_t kind_at = id.at();
    if (const int64_t kind = id.u8() >> 4; kind != 0) {
      source_.unsupported(kind_at, fmt::format("an object of kind {} in the heap of a group's links", kind));
    }
    const int64_t offset = id.number(offset_width_);
    const int64_t bytes = id.number(length_width_);
    const Place place = locate(offset);
    if (bytes > place.block_bytes - place.offset) source_.corrupt(kind_at, "an object of a heap leaves its block");
    return source_.read(place.block_at + place.offset, bytes, kBlock);
  }

 private:
  struct Place {
    int64_t block_at;
    int64_t block_bytes;
    int64_t offset;  // in the block
  };

  Place locate(int64_t offset) const {
    int64_t at = root_at_;
    int64_t rows = root_rows_;
    if (rows == 0) {
      if (at == kHdf5Nowhere || offset >= first_block_bytes_) source_.corrupt(at_, "an object is outside its heap");
      source_.check_inside(at, first_block_bytes_, kBlock);
      return {at, first_block_bytes_, offset};
    }
    const int64_t direct_rows = hdf5_log2(most_direct_bytes_) - hdf5_log2(first_block_bytes_) + 2;
    const int64_t first_row = table_width_ * row_bytes(0);
    if (first_row <= 0) source_.corrupt(at_, "a heap has rows of no blocks");
    for (int64_t level = 0; level < kMostHeapLevels; ++level) {
      const int64_t row = offset < first_row ? 0 : hdf5_log2(offset / first_row) + 1;
      if (at == kHdf5Nowhere || row >= rows) source_.corrupt(at_, "an object is outside its heap");
      const int64_t bytes = row_bytes(row);
      const int64_t row_begin = row == 0 ? 0 : bytes * table_width_;
      const int64_t entry = row * table_width_ + (offset - row_begin) / bytes;

      const int64_t prefix = 5 + source_.offset_bytes + offset_width_;
      const int64_t table_bytes = prefix + rows * table_width_ * source_.offset_bytes + kChecksumBytes;
      const Hdf5Block block = source_.read(at, table_bytes, kTable);
      Hdf5Cursor cursor(source_, block, kTable);
      cursor.verify_checksum();
      cursor.expect("FHIB");
      cursor.skip(prefix - 4 + entry * source_.offset_bytes);
      at = cursor.address();
      offset = (offset - row_begin) % bytes;
      if (row < direct_rows) {
        if (at == kHdf5Nowhere) source_.corrupt(at_, "an object is outside its heap");
        source_.check_inside(at, bytes, kBlock);
        return {at, bytes, offset};
      }
      // A table below has as many rows as make up the size of its entry.
      rows = hdf5_log2(bytes) - hdf5_log2(first_row) + 1;
    }
    source_.corrupt(at_, "the tables of a heap lead in a circle");
  }
  // The first two rows have blocks of the first size, each other twice that of the row before.
  int64_t row_bytes(int64_t row) const {
    const int64_t doublings = row == 0 ? 0 : row - 1;
    const bool countable = doublings + hdf5_log2(first_block_bytes_) + hdf5_log2(table_width_) <= 61;
    const int64_t bytes = countable ? first_block_bytes_ << doublings : 0;
    if (bytes <= 0) source_.corrupt(at_, "a heap has more rows of blocks than can be counted");
    return bytes;
  }

  const Hdf5Source& source_;
  int64_t at_;
  int64_t id_bytes_ = 0;
  int64_t offset_width_ = 0;
  int64_t length_width_ = 0;
  int64_t table_width_ = 0;
  int64_t first_block_bytes_ = 0;
  int64_t most_direct_bytes_ = 0;
  int64_t root_at_ = kHdf5Nowhere;
  int64_t root_rows_ = 0;  // 0 where the root is a block of objects itself
};

constexpr std::string_view kLink = "a link";
constexpr int64_t kNameRecords = 5;
constexpr int64_t kLinksHaveOrder = 0x01;

// A record of the tree: the checksum of the name, then the link's id in the heap.
Hdf5Link link_of(const Hdf5Source& source, const Hdf5FractalHeap& heap, Hdf5Cursor record) {
  record.skip(4);
  const Hdf5Block message = heap.read(record);
  return parse_link(source, Hdf5Cursor(source, message, kLink));
}

// What a group's link info message says of them; none where the links stand in the group's header.
std::optional<Hdf5DenseLinks> open_dense_links(const Hdf5Source& source, Hdf5Cursor message) {
  const int64_t version_at = message.at();
  if (const int64_t version = message.u8(); version != 0) {
    source.unsupported(version_at, fmt::format("version {} of a group's links; known is 0", version));
  }
  const int64_t flags = message.u8();
  if ((flags & kLinksHaveOrder) != 0) message.skip(8);
  const int64_t heap_at = message.address();
  const int64_t tree_at = message.address();
  if (heap_at == kHdf5Nowhere) return std::nullopt;
  if (tree_at == kHdf5Nowhere) source.corrupt(version_at, "a group has a heap of links, but no tree to find them");
  return Hdf5DenseLinks{heap_at, tree_at};
}

std::optional<Hdf5Link> find_dense_link(const Hdf5Source& source, const Hdf5DenseLinks& links, std::string_view name) {
  const Hdf5FractalHeap heap(source, links.heap_at);
  Hdf5BlockCache cache;
  const Hdf5TreeV2 tree(source, cache, links.tree_at, kNameRecords);
  const int64_t wanted = hdf5_checksum(std::as_bytes(std::span(name.data(), name.size())));
  std::optional<Hdf5Link> found;
  tree.find([&](Hdf5Cursor record) {
    Hdf5Cursor hash = record;
    if (const int64_t given = hash.u32(); given != wanted) return wanted < given ? -1 : 1;
    Hdf5Link link = link_of(source, heap, record);
    const int way = name.compare(link.name);
    if (way == 0) found = std::move(link);
    return way;
  });
  return found;
}

// Up to `most` names, in no order.
std::vector<std::string> dense_link_names(const Hdf5Source& source, const Hdf5DenseLinks& links, size_t most) {
  const Hdf5FractalHeap heap(source, links.heap_at);
  Hdf5BlockCache cache;
  const Hdf5TreeV2 tree(source, cache, links.tree_at, kNameRecords);
  std::vector<std::string> names;
  tree.visit([&](Hdf5Cursor record) {
    names.push_back(link_of(source, heap, record).name);
    return names.size() < most;
  });
  return names;
}

// Each soft link may lead to another; in a circle they never end.
constexpr int kMostSoftLinks = 16;
// No path that a person writes is longer, but soft links can make one.
constexpr size_t kLongestPath = 16 * 1024;

Hdf5Cursor cursor_of(const Hdf5Source& source, const Hdf5Message& message, std::string_view what) {
  return {source, message.content, message.at, what};
}

const Hdf5Message* symbol_table_of(const Hdf5ObjectHeader& group) { return group.find(Hdf5MessageType::symbol_table); }

std::optional<Hdf5DenseLinks> dense_links_of(const Hdf5Source& source, const Hdf5ObjectHeader& group) {
  const Hdf5Message* const info = group.find(Hdf5MessageType::link_info);
  if (info == nullptr) return std::nullopt;
  return open_dense_links(source, cursor_of(source, *info, "a link info message"));
}

// Calls visit(link) for the links in a group's header until it returns true.
template <typename Visit>
void visit_own_links(const Hdf5Source& source, const Hdf5ObjectHeader& group, const Visit& visit) {
  for (const Hdf5Message& message : group.messages) {
    if (message.type != Hdf5MessageType::link) continue;
    if (visit(parse_link(source, cursor_of(source, message, "a link message")))) return;
  }
}

// "a/b/c" becomes "a" and "b/c". Slashes before, between and behind names are all the same.
std::pair<std::string, std::string> split_first(const std::string& path) {
  const size_t begin = path.find_first_not_of('/');
  if (begin == std::string::npos) return {"", ""};
  const size_t end = std::min(path.find('/', begin), path.size());
  return {path.substr(begin, end - begin), path.substr(end)};
}

}  // namespace

bool is_hdf5_group(const Hdf5ObjectHeader& header) {
  return header.find(Hdf5MessageType::symbol_table) != nullptr || header.find(Hdf5MessageType::link_info) != nullptr;
}

std::optional<Hdf5Link> find_link(const Hdf5Source& source, const Hdf5ObjectHeader& group, std::string_view name) {
  if (const Hdf5Message* const table = symbol_table_of(group)) {
    return find_symbol(source, cursor_of(source, *table, "a symbol table message"), name);
  }
  if (const auto dense = dense_links_of(source, group)) return find_dense_link(source, *dense, name);
  std::optional<Hdf5Link> found;
  visit_own_links(source, group, [&](Hdf5Link link) {
    if (link.name != name) return false;
    found = std::move(link);
    return true;
  });
  return found;
}

std::vector<std::string> link_names(const Hdf5Source& source, const Hdf5ObjectHeader& group, size_t most) {
  if (const Hdf5Message* const table = symbol_table_of(group)) {
    return symbol_names(source, cursor_of(source, *table, "a symbol table message"), most);
  }
  std::vector<std::string> names;
  if (const auto dense = dense_links_of(source, group)) {
    names = dense_link_names(source, *dense, most);
  } else {
    visit_own_links(source, group, [&](Hdf5Link link) {
      names.push_back(std::move(link.name));
      return false;
    });
  }
  std::sort(names.begin(), names.end());
  if (names.size() > most) names.resize(most);
  return names;
}

std::string list_links(const Hdf5Source& source, int64_t group_at) {
  constexpr size_t kMost = 20;
  const std::vector<std::string> names = link_names(source, read_object_header(source, group_at), kMost + 1);
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : ", ", i < kMost ? printable(names[i]) : "...");
  }
  return list.empty() ? "nothing" : list;
}

std::optional<Hdf5ObjectHeader> find_object(const Hdf5Source& source, int64_t root_at, std::string_view path) {
  Hdf5ObjectHeader here = read_object_header(source, root_at);
  std::string rest(path);
  for (int soft_links = 0; !rest.empty();) {
    auto [name, behind] = split_first(rest);
    rest = std::move(behind);
    if (name.empty() || name == ".") continue;
    if (!is_hdf5_group(here)) return std::nullopt;
    const std::optional<Hdf5Link> link = find_link(source, here, name);
    if (!link) return std::nullopt;
    if (link->kind == Hdf5LinkKind::external) {
      source.unsupported(here.at, fmt::format("'{}' is a link to another file; name that one", printable(name)));
    }
    if (link->kind == Hdf5LinkKind::hard) {
      here = read_object_header(source, link->header_at);
      continue;
    }
    rest.insert(0, link->target);
    if (++soft_links > kMostSoftLinks || rest.size() > kLongestPath) {
      source.refused(here.at, fmt::format("the link '{}' leads through too many others; do they lead in a circle?",
                                          printable(name)));
    }
    if (link->target.starts_with('/')) here = read_object_header(source, root_at);
  }
  return here;
}

}  // namespace kith
