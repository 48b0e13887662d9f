#include <kith/faiss_file.hpp>

#include "index/index_access.hpp"
#include "interop/faiss_file.hpp"

namespace kith {

Index read_faiss_index(const std::string& path, const Resources& resources) {
  return IndexAccess::from_parts(read_faiss(path, resources), resources);
}

void write_faiss_index(const Index& index, const std::string& path, const Resources& resources) {
  write_faiss(IndexAccess::parts(index, resources), path, resources);
}

}  // namespace kith
