#include "io/hdf5/dense_links.hpp"

#include "io/hdf5/checksum.hpp"
#include "io/hdf5/fractal_heap.hpp"
#include "io/hdf5/tree_v2.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

constexpr std::string_view kLink = "a link";
constexpr int64_t kNameRecords = 5;
constexpr int64_t kLinksHaveOrder = 0x01;

// A record of the tree: the checksum of the name, then the link's id in the heap.
Hdf5Link link_of(const Hdf5Source& source, const Hdf5FractalHeap& heap, Hdf5Cursor record) {
  record.skip(4);
  const Hdf5Block message = heap.read(record);
  return parse_link(source, Hdf5Cursor(source, message, kLink));
}

}  // namespace

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

}  // namespace kith
