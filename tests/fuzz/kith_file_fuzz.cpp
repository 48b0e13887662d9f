#include "fuzz/fuzz_target.hpp"
#include "fuzz/visit_parts.hpp"
#include "index/index_about.hpp"
#include "index/index_file.hpp"

#include <stdexcept>

namespace kith::fuzz {

void kith_file(Input input) {
  read_file("input.kith", input, [](const std::string& path, const Resources& resources) {
    const IndexParts parts = load_parts(path, resources);
    visit(parts);
    if (about_index(parse_about_index(about_index(parts))) != about_index(parts)) {
      throw std::logic_error("what was read does not survive being written");
    }
  });
  read_file("input.kith", input,
            [](const std::string& path, const Resources& resources) { load_codec(path, resources); });
  read_file("input.kith", input,
            [](const std::string& path, const Resources& resources) { load_transforms(path, resources); });
}

}  // namespace kith::fuzz
