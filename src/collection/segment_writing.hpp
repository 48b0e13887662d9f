// What a new segment is made of, and its file.
#pragma once

#include <kith/collection.hpp>

#include "collection/schema.hpp"
#include "collection/state.hpp"
#include "collection/stored_rows.hpp"
#include "io/disk.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// Rows that a new segment takes from one place: all, or those of some places.
struct SegmentSource {
  std::shared_ptr<const StoredRows> rows;
  std::vector<int64_t> places;  // those that are kept, ascending; empty with `all`
  bool all = false;

  int64_t size() const { return all ? rows->size() : static_cast<int64_t>(places.size()); }
  int64_t place(int64_t i) const { return all ? i : places[static_cast<size_t>(i)]; }
};

// The living rows of a part.
SegmentSource source_of(const StatePart& part);
int64_t items_in(const std::vector<SegmentSource>& sources);

// Writes them into `file`, in the order of their rows; the caller syncs. Gives the entry what it says of the file.
void write_segment_file(DiskFile& file, const std::vector<SegmentSource>& sources, const CollectionParams& params,
                        SegmentRow& entry, const Resources& resources);

}  // namespace kith
