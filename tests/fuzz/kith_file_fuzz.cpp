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
    if (about_parts(parse_about<IndexParts>(about_parts(parts).text)).text != about_parts(parts).text) {
      throw std::logic_error("what was read does not survive being written");
    }
  });
  read_file("input.kith", input,
            [](const std::string& path, const Resources& resources) { load_codec(path, resources); });
  read_file("input.kith", input,
            [](const std::string& path, const Resources& resources) { load_transforms(path, resources); });
}

}  // namespace kith::fuzz
