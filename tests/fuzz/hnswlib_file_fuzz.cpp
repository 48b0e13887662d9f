#include <kith/hnswlib_file.hpp>

#include "fuzz/fuzz_target.hpp"
#include "fuzz/visit_parts.hpp"
#include "index/index_access.hpp"

namespace kith::fuzz {

void hnswlib_file(Input input) {
  read_file("input.bin", input, [](const std::string& path, const Resources& resources) {
    visit(IndexAccess::parts(read_hnswlib(path, Metric::l2, resources), resources));
  });
}

}  // namespace kith::fuzz
