// The links of groups: of the old style, a B-tree, sorted by name, whose leaves are lists of links ("symbol table
// nodes"), with the names in a heap; and those that messages hold.
//
// A lookup descends the tree once, with a few small reads on each level; each level must be one less than the one above
// it, so that no circle can hold it.
#include "io/hdf5/group.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr std::string_view kTree = "a group's tree node";
constexpr std::string_view kSymbols = "a symbol table node";
constexpr std::string_view kHeap = "a local heap";
constexpr int64_t kScratchBytes = 16;
constexpr int64_t kSoftLink = 2;
constexpr int64_t kMostTargetBytes = 4096;
constexpr int64_t kMostNameBytes = 256;  // in a list of names
constexpr int64_t kMostNodes = 300;      // for a list of names

class Hdf5SymbolTable {
 public:
  // `message` is the group's symbol table message.
  Hdf5SymbolTable(const Hdf5Source& source, Hdf5Cursor message) : source_(source) {
    const int64_t here = message.at();
    tree_at_ = message.address();
    const int64_t heap = message.address();
    if (tree_at_ == kHdf5Nowhere || heap == kHdf5Nowhere) source.corrupt(here, "a group without a tree or a heap");
    const Hdf5Block block = source.read(heap, 8 + 2 * source.length_bytes + source.offset_bytes, kHeap);
    Hdf5Cursor cursor(source, block, kHeap);
    cursor.expect("HEAP");
    cursor.skip(4);
    heap_bytes_ = cursor.length();
    cursor.skip(source.length_bytes);
    heap_at_ = cursor.address();
    if (heap_at_ == kHdf5Nowhere) source.corrupt(heap, "a local heap without its text");
    source.check_inside(heap_at_, heap_bytes_, kHeap);
  }

  std::optional<Hdf5Link> find(std::string_view name) const {
    int64_t at = tree_at_;
    int64_t level = -1;  // of the node at `at`; -1 where it may be any
    do {
      const Node node = read_node(at);
      if (level >= 0 && node.level != level) source_.corrupt(at, "a node of a group's tree has the wrong level");
      at = child_for(node, name);
      if (at == kHdf5Nowhere) return std::nullopt;
      level = node.level - 1;
    } while (level >= 0);
    const auto bytes = static_cast<int64_t>(name.size());
    for (const Symbol& symbol : read_symbols(at)) {
      if (heap_text(symbol.name, bytes + 1) != name) continue;
      if (symbol.kind == kSoftLink) {
        return Hdf5Link{std::string(name), Hdf5LinkKind::soft, kHdf5Nowhere,
                        heap_text(symbol.target, kMostTargetBytes)};
      }
      if (symbol.header_at == kHdf5Nowhere) source_.corrupt(at, "a link leads nowhere");
      return Hdf5Link{std::string(name), Hdf5LinkKind::hard, symbol.header_at, ""};
    }
    return std::nullopt;
  }

  // The first names, up to `most` of them.
  std::vector<std::string> names(size_t most) const {
    std::vector<std::string> names;
    int64_t budget = kMostNodes;
    collect(tree_at_, -1, most, budget, names);
    return names;
  }

 private:
  // Between two children stands the last name of the one before.
  struct Node {
    int64_t level = 0;
    std::vector<int64_t> children;
    std::vector<int64_t> last_names;  // of each child, in the heap
  };

  struct Symbol {
    int64_t name = 0;  // in the heap
    int64_t header_at = kHdf5Nowhere;
    int64_t kind = 0;
    int64_t target = 0;  // in the heap, for soft links
  };

  Node read_node(int64_t at) const {
    const int64_t head_bytes = 8 + 2 * source_.offset_bytes;
    const Hdf5Block head = source_.read(at, head_bytes, kTree);
    Hdf5Cursor cursor(source_, head, kTree);
    cursor.expect("TREE");
    if (cursor.u8() != 0) source_.corrupt(at, "a group's tree has a node of another kind");
    Node node{cursor.u8(), {}, {}};
    const int64_t entries = cursor.u16();
    const int64_t entry_bytes = source_.length_bytes + source_.offset_bytes;
    const Hdf5Block body = source_.read(at + head_bytes, entries * entry_bytes + source_.length_bytes, kTree);
    Hdf5Cursor entry(source_, body, kTree);
    entry.skip(source_.length_bytes);
    for (int64_t i = 0; i < entries; ++i) {
      node.children.push_back(entry.address());
      node.last_names.push_back(entry.length());
    }
    return node;
  }

  int64_t child_for(const Node& node, std::string_view name) const {
    const auto bytes = static_cast<int64_t>(name.size());
    const auto found = std::partition_point(node.last_names.begin(), node.last_names.end(),
                                            [&](int64_t last) { return heap_text(last, bytes + 1) < name; });
    if (found == node.last_names.end()) return kHdf5Nowhere;
    return node.children[static_cast<size_t>(found - node.last_names.begin())];
  }

  std::vector<Symbol> read_symbols(int64_t at) const {
    constexpr int64_t kHeadBytes = 8;
    const Hdf5Block head = source_.read(at, kHeadBytes, kSymbols);
    Hdf5Cursor cursor(source_, head, kSymbols);
    cursor.expect("SNOD");
    cursor.skip(2);
    const int64_t count = cursor.u16();
    // A name's place in the heap is called an offset, and has the width of lengths.
    const int64_t symbol_bytes = source_.length_bytes + source_.offset_bytes + 8 + kScratchBytes;
    const Hdf5Block body = source_.read(at + kHeadBytes, count * symbol_bytes, kSymbols);
    Hdf5Cursor entry(source_, body, kSymbols);
    std::vector<Symbol> symbols;
    for (int64_t i = 0; i < count; ++i) {
      Symbol symbol;
      symbol.name = entry.length();
      symbol.header_at = entry.address();
      symbol.kind = entry.u32();
      entry.skip(4);
      symbol.target = entry.u32();
      entry.skip(kScratchBytes - 4);
      symbols.push_back(symbol);
    }
    return symbols;
  }

  // Up to a zero byte, or the first `most` bytes.
  std::string heap_text(int64_t offset, int64_t most) const {
    if (offset >= heap_bytes_) source_.corrupt(heap_at_, fmt::format("a name is outside its heap, at {}", offset));
    const Hdf5Block block = source_.read(heap_at_ + offset, std::min(most, heap_bytes_ - offset), kHeap);
    const std::string_view text(reinterpret_cast<const char*>(block.bytes.data()), block.bytes.size());
    return std::string(text.substr(0, text.find('\0')));
  }

  // Stops after enough names, and after as many nodes as could hold them: in a hostile tree many ways lead to one node.
  void collect(int64_t at, int64_t level, size_t most, int64_t& budget, std::vector<std::string>& names) const {
    const Node node = read_node(at);
    if (level >= 0 && node.level != level) source_.corrupt(at, "a node of a group's tree has the wrong level");
    for (const int64_t child : node.children) {
      if (names.size() >= most || child == kHdf5Nowhere || --budget < 0) return;
      if (node.level > 0) {
        collect(child, node.level - 1, most, budget, names);
        continue;
      }
      for (const Symbol& symbol : read_symbols(child)) {
        if (names.size() < most) names.push_back(heap_text(symbol.name, kMostNameBytes));
      }
    }
  }

  const Hdf5Source& source_;
  int64_t tree_at_ = kHdf5Nowhere;
  int64_t heap_at_ = kHdf5Nowhere;  // of its text
  int64_t heap_bytes_ = 0;
};

// Bits of a link's flags.
constexpr int64_t kWidthOfNameLength = 0x03;
constexpr int64_t kLinkHasOrder = 0x04;
constexpr int64_t kHasKind = 0x08;
constexpr int64_t kHasCharacterSet = 0x10;

constexpr int64_t kHard = 0;
constexpr int64_t kSoft = 1;

}  // namespace

std::optional<Hdf5Link> find_symbol(const Hdf5Source& source, Hdf5Cursor message, std::string_view name) {
  return Hdf5SymbolTable(source, message).find(name);
}

std::vector<std::string> symbol_names(const Hdf5Source& source, Hdf5Cursor message, size_t most) {
  return Hdf5SymbolTable(source, message).names(most);
}

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
