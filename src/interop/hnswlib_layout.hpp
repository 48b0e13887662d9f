// The layout of hnswlib's files (HierarchicalNSW::saveIndex): numbers as the machine has them, no magic, no version, no
// checksum; neither the metric nor the dimension is there.
//
//   u64 where level 0 begins in an element (0) · u64 room for elements · u64 elements · u64 bytes of an element ·
//   u64 where its label begins · u64 where its vector begins · i32 highest level · u32 entry · u64 most links above
//   level 0 · u64 most links on level 0 · u64 M · f64 1 / ln M · u64 ef of its construction
//   elements, each: u16 links, u8 marks (1: deleted), u8 0, u32 x most links, the vector, u64 label
//   for each element: u32 bytes of its upper levels, then these, each: u16 links, u16 0, u32 x most links
#pragma once

#include <cstdint>

namespace kith {

struct HnswlibHeader {
  uint64_t level_offset = 0;
  uint64_t capacity = 0;
  uint64_t count = 0;
  uint64_t element_bytes = 0;
  uint64_t label_offset = 0;
  uint64_t vector_offset = 0;
  int32_t highest_level = -1;
  uint32_t entry = 0;
  uint64_t most_links = 0;
  uint64_t most_links_below = 0;
  uint64_t m = 0;
  double level_factor = 0;
  uint64_t ef = 0;

  // Calls use(field) for each, in the order of the file.
  template <typename Use>
  void visit(const Use& use) {
    use(level_offset);
    use(capacity);
    use(count);
    use(element_bytes);
    use(label_offset);
    use(vector_offset);
    use(highest_level);
    use(entry);
    use(most_links);
    use(most_links_below);
    use(m);
    use(level_factor);
    use(ef);
  }
};

inline constexpr uint8_t kHnswlibDeleted = 1;
constexpr uint64_t hnswlib_list_bytes(uint64_t links) { return 4 + 4 * links; }

}  // namespace kith
