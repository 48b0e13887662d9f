// An index of vectors in files, written in steps that a folder keeps: a build that is killed goes on where it was.
//
//   Index index("IVF4096,PQ32");
//   const VectorFile rows("parts/*.npy");
//   save_added(index, rows, {}, "large.kith", {.folder = "work", .train = &rows}, resources);
#pragma once

#include <kith/export.hpp>
#include <kith/index.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <string>

namespace kith {

struct IndexWork {
  std::string folder = {};  // for the steps, on any disk; it is made where it is not there
  bool keep = false;   // its files, once the index is there
  // Vectors that an index is trained with first, which needs training and has none; its training is a step too. Read
  // during the call.
  const VectorFile* train = nullptr;
};

// Writes the file that Index::save_added() writes, with the same bytes under any limit. Rows that are coded are kept as
// steps in the folder, whatever the limit, and so is the training: the same call after a kill goes on behind the last
// step, also with another limit, number of threads or device, and deletes the steps at the end. A damaged step is made
// again. The vectors are read once more at each start, to see that they are the same. InvalidArgument, which says what
// differs, for another index, other vectors or ids; InvalidState while another process works in the folder; Unsupported
// for graph indexes, which are built in memory.
KITH_EXPORT void save_added(const Index& index, const VectorFile& rows, VectorView<const int64_t> ids,
                            const std::string& path, const IndexWork& work, const Resources& resources = Resources());

}  // namespace kith
