// Index files: .kith is Kith's format, .faiss and .index are FAISS's. Files of other names are read as FAISS's, but
// never written.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/index.hpp>

#include "json_output.hpp"

#include <cstdint>
#include <string>

namespace kith::cli {

// Whether the name is that of Kith's own format; any other is treated as FAISS's.
bool is_kith_file(const std::string& path);

// InvalidArgument for a name of neither format. Call it before long work whose result goes there.
void check_index_name(const std::string& path);

Index open_index(const std::string& path, const Resources& resources, const LoadParams& params = {});
void write_index(const Index& index, const std::string& path, const Resources& resources);

// The part of a report about an index, as text and as JSON.
std::string index_text(const IndexInfo& info, bool with_memory = true);
JsonObject index_json(const IndexInfo& info);

// The ids of `rows` vectors, from a file with one row or one column of ids. None for an empty path.
HostArray<int64_t> read_index_ids(const std::string& path, int64_t rows, const Resources& resources);

}  // namespace kith::cli
