#include "fuzz/fuzz_target.hpp"
#include "fuzz/visit_parts.hpp"
#include "interop/faiss_file.hpp"

namespace kith::fuzz {

void faiss_file(Input input) {
  read_file("input.faiss", input,
            [](const std::string& path, const Resources& resources) { visit(read_faiss(path, resources)); });
}

}  // namespace kith::fuzz
