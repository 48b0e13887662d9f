#include <kith/error.hpp>
#include <kith/faiss_file.hpp>

#include "index/index_access.hpp"
#include "interop/faiss_file.hpp"
#include "io/container/section.hpp"

#include <fmt/format.h>

#include <fstream>

namespace kith {
namespace {

// Asked only where a file was no index of FAISS's: the answer is worth more than what was wrong with it.
bool is_container(const std::string& path) {
  std::string head(kContainerMagic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && head == kContainerMagic;
}

}  // namespace

Index read_faiss_index(const std::string& path, const Resources& resources) {
  try {
    return IndexAccess::from_parts(read_faiss(path, resources), resources);
  } catch (const CorruptFile&) {
    if (!is_container(path)) throw;
    throw InvalidArgument(
        fmt::format("'{}' is a .kith file, not FAISS's; read it with kith.load, and name it *.kith for "
                    "the program",
                    path));
  }
}

void write_faiss_index(const Index& index, const std::string& path, const Resources& resources) {
  if (!index.offset().empty()) {
    throw InvalidArgument(
        "the index subtracts an offset from float64 vectors, which FAISS's files do not hold; add float32 vectors");
  }
  write_faiss(IndexAccess::parts(index, resources), path, resources);
}

}  // namespace kith
