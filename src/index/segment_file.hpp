// The payload of one segment as a .kith file of its own, for collections, which keep segments side by side instead of
// one merged index. It is written once and then mapped. Marks of dead rows are stored elsewhere.
//
// Sections: "vectors"; or "codes"; or "offsets", "rows" and "codes" of lists. When a file is mapped, only the
// container's table is checked, not the hashes, which would read all of it. Under a limit on host memory it is read
// into buffers, which count, and its hashes are checked. CorruptFile for a file that is not such a segment.
#pragma once

#include <kith/resources.hpp>

#include "index/refine_gpu.hpp"
#include "index/vector_rows.hpp"
#include "ivf/segment/list_segment.hpp"

#include <memory>
#include <string>

namespace kith {

// Writes a payload from host memory, under a temporary name that is synced and renamed.
void write_segment(const VectorRows& vectors, const std::string& path, const Resources& resources);
void write_segment(const RowCodes& codes, const std::string& path, const Resources& resources);
void write_segment(const ListSegment& lists, const std::string& path, const Resources& resources);

std::shared_ptr<const VectorRows> map_vectors(const std::string& path, const Resources& resources);
std::shared_ptr<const RowCodes> map_codes(const std::string& path, const Resources& resources);
std::shared_ptr<const ListSegment> map_lists(const std::string& path, const Resources& resources);

}  // namespace kith
