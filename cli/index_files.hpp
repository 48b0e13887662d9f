// Indexes in files: those whose name ends in .kith are Kith's, in .faiss or .index FAISS's. Others are read as FAISS's, and
// no command makes them.
#pragma once

#include <kith/index.hpp>

#include "core/host_array.hpp"
#include "json_output.hpp"

#include <cstdint>
#include <string>

namespace kith::cli {

// Whether the name is that of a file of Kith's own format; any other is one of FAISS's.
bool is_kith_file(const std::string& path);

// InvalidArgument for a name that says neither format. Before long work whose result goes there.
void check_index_name(const std::string& path);

Index open_index(const std::string& path, const Resources& resources, const LoadParams& params = {});
void write_index(const Index& index, const std::string& path, const Resources& resources);

// What a report says of an index: a few lines, and JSON.
std::string index_text(const IndexInfo& info, bool with_memory = true);
JsonObject index_json(const IndexInfo& info);

// One for each of `rows` vectors, in one row or column of a file of ids. None where the path is empty.
HostArray<int64_t> read_index_ids(const std::string& path, int64_t rows, const Resources& resources);

}  // namespace kith::cli
