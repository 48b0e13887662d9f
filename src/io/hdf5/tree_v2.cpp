#include "io/hdf5/tree_v2.hpp"

#include "core/byte_size.hpp"
#include "io/hdf5/checksum.hpp"

#include <fmt/format.h>

#include <bit>

namespace kith {
namespace {

constexpr std::string_view kTreeHeader = "the header of a tree";
constexpr std::string_view kTreeNode = "a tree node";
constexpr int64_t kNodePrefixBytes = 6;
constexpr int64_t kMostTreeLevels = 32;
constexpr int64_t kMostVisited = 4096;

// The bytes that numbers up to `largest` are stored in.
int64_t bytes_for(int64_t largest) {
  return (static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(largest))) + 7) / 8;
}

}  // namespace

Hdf5TreeV2::Hdf5TreeV2(const Hdf5Source& source, Hdf5BlockCache& cache, int64_t at, int64_t record_type)
    : source_(source), cache_(cache) {
  const Hdf5Block& block =
      cache.read_checked(source, at, 16 + source.offset_bytes + 2 + source.length_bytes + kChecksumBytes, kTreeHeader);
  Hdf5Cursor cursor(source, block, kTreeHeader);
  cursor.expect("BTHD");
  if (const int64_t version = cursor.u8(); version != 0) {
    source.unsupported(at, fmt::format("version {} of a tree; known is 0", version));
  }
  type_ = cursor.u8();
  if (type_ != record_type) {
    source.corrupt(at, fmt::format("the tree holds records of type {}, not {}", type_, record_type));
  }
  const int64_t node_bytes = cursor.u32();
  record_bytes_ = cursor.u16();
  levels_ = cursor.u16();
  cursor.skip(2);
  root_.at = cursor.address();
  root_.records = cursor.u16();
  if (record_bytes_ == 0 || levels_ > kMostTreeLevels || node_bytes <= kNodePrefixBytes + kChecksumBytes) {
    source.corrupt(at, "the tree's sizes are impossible");
  }

  // How wide a node's counts are follows from how many records could be below it.
  const int64_t room = node_bytes - kNodePrefixBytes - kChecksumBytes;
  int64_t most_below = room / record_bytes_;
  count_bytes_ = bytes_for(most_below);
  for (int64_t level = 1; level <= levels_; ++level) {
    total_bytes_.push_back(level == 1 ? 0 : bytes_for(most_below));
    const int64_t child_bytes = source.offset_bytes + count_bytes_ + total_bytes_.back();
    const int64_t most = room < child_bytes ? 0 : (room - child_bytes) / (record_bytes_ + child_bytes);
    const int64_t below = saturating_multiply(most + 1, most_below);
    most_below = below > INT64_MAX - most ? INT64_MAX : below + most;
  }
}

void Hdf5TreeV2::find(const std::function<int(Hdf5Cursor record)>& order) const {
  Child here = root_;
  for (int64_t level = levels_; level >= 0; --level) {
    if (here.at == kHdf5Nowhere) return;
    const Hdf5Block& node = read_node(here, level);
    int64_t low = 0;
    int64_t high = here.records;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const Hdf5Block candidate = record(node, middle);
      const int way = order(Hdf5Cursor(source_, candidate, kTreeNode));
      if (way == 0) return;
      if (way < 0) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (level > 0) here = child(node, here.records, level, low);
  }
}

void Hdf5TreeV2::visit(const std::function<bool(Hdf5Cursor record)>& visit) const {
  int64_t budget = kMostVisited;
  visit_node(root_, levels_, budget, visit);
}

// What a node of this level holds for each child: its address, how many records it has, and how many are below it.
int64_t Hdf5TreeV2::child_bytes(int64_t level) const {
  return level == 0 ? 0 : source_.offset_bytes + count_bytes_ + total_bytes_[static_cast<size_t>(level - 1)];
}

const Hdf5Block& Hdf5TreeV2::read_node(Child node, int64_t level) const {
  const int64_t children = (node.records + 1) * child_bytes(level);
  const int64_t bytes = kNodePrefixBytes + node.records * record_bytes_ + children + kChecksumBytes;
  const Hdf5Block& block = cache_.read_checked(source_, node.at, bytes, kTreeNode);
  Hdf5Cursor cursor(source_, block, kTreeNode);
  cursor.expect(level == 0 ? "BTLF" : "BTIN");
  cursor.skip(1);
  if (cursor.u8() != type_) source_.corrupt(node.at, "a tree node holds other records than its tree");
  return block;
}

Hdf5Block Hdf5TreeV2::record(const Hdf5Block& node, int64_t i) const {
  const int64_t offset = kNodePrefixBytes + i * record_bytes_;
  const auto first = node.bytes.begin() + offset;
  return {std::vector<std::byte>(first, first + record_bytes_), node.at + offset};
}

Hdf5TreeV2::Child Hdf5TreeV2::child(const Hdf5Block& node, int64_t records, int64_t level, int64_t i) const {
  Hdf5Cursor cursor(source_, node, kTreeNode);
  cursor.skip(kNodePrefixBytes + records * record_bytes_ + i * child_bytes(level));
  Child below;
  below.at = cursor.address();
  below.records = cursor.number(count_bytes_);
  if (below.records > kHdf5LargestBlock) source_.corrupt(node.at, "a tree node has too many records");
  return below;
}

bool Hdf5TreeV2::visit_node(Child here, int64_t level, int64_t& budget,
                            const std::function<bool(Hdf5Cursor)>& visit) const {
  if (here.at == kHdf5Nowhere || --budget < 0) return false;
  const Hdf5Block node = read_node(here, level);  // a copy: those below push it out of the cache
  for (int64_t i = 0; i <= here.records; ++i) {
    if (level > 0 && !visit_node(child(node, here.records, level, i), level - 1, budget, visit)) return false;
    if (i == here.records) break;
    const Hdf5Block found = record(node, i);
    if (!visit(Hdf5Cursor(source_, found, kTreeNode))) return false;
  }
  return true;
}

}  // namespace kith
