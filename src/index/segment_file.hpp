// The payload of one segment as a .kith file of its own, for whoever keeps segments beside each other instead of one
// merged index: it is written once and then mapped. Which rows are dead is not part of it.
//
// Sections: "vectors"; or "codes"; or "offsets", "rows" and "codes" of lists. A mapped file is checked as a container's
// table allows: its hashes are not, since that would read all of it. Under a limit on the host's memory it is read into
// buffers that count instead (and then its hashes are checked). CorruptFile for what is no such segment.
#pragma once

#include <kith/resources.hpp>

#include "index/refine_gpu.hpp"
#include "index/vector_rows.hpp"
#include "ivf/segment/list_segment.hpp"

#include <memory>
#include <string>

namespace kith {

// Writes a payload in host memory. Under a temporary name, synced, renamed.
void write_segment(const VectorRows& vectors, const std::string& path, const Resources& resources);
void write_segment(const RowCodes& codes, const std::string& path, const Resources& resources);
void write_segment(const ListSegment& lists, const std::string& path, const Resources& resources);

std::shared_ptr<const VectorRows> map_vectors(const std::string& path, const Resources& resources);
std::shared_ptr<const RowCodes> map_codes(const std::string& path, const Resources& resources);
std::shared_ptr<const ListSegment> map_lists(const std::string& path, const Resources& resources);

}  // namespace kith
