// The folder in which the steps of building a graph are kept, and reading all rows of files into memory.
#pragma once

#include <kith/graph_of_files.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/handle/graph_folder.hpp"
#include "io/disk.hpp"
#include "io/read_rows.hpp"

#include <filesystem>
#include <string>
#include <system_error>

namespace kith {

inline std::string steps_folder(const std::string& folder, const GraphWork& work) {
  return work.folder.empty() ? own_steps_folder(folder) : work.folder;
}

inline DiskWork disk_work(const std::string& folder, const GraphWork& work) {
  return {.disk = real_disk(), .folder = steps_folder(folder, work), .keep = work.keep, .part = work.part};
}

// The least memory of knn_graph_folder() by a method that is named.
Footprint graph_folder_footprint(const VectorFile& x, const KnnGraphParams& params, const Resources& resources);

// Removes the folder of finished work if the user did not name it, unless steps are kept or other parts use it.
inline void remove_own_folder(const GraphWork& work, const std::string& folder) {
  std::error_code ignored;  // leaving an empty folder is harmless
  if (work.folder.empty()) std::filesystem::remove(folder, ignored);
}

// Reads all rows into memory, or counts that memory.
inline MatrixBuffer all_rows(const VectorFile& x, const Resources& resources) {
  if (!counts_only(resources)) return read_rows(x, {}, x.dtype(), resources);
  const ReadMemory chunks = x.reserve_memory(resources);
  return MatrixBuffer(x.dtype(), x.rows(), x.cols(), "the vectors", resources);
}

}  // namespace kith
