#include "fuzz/fuzz_target.hpp"

#include <kith/error.hpp>

#include "io/formats.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace kith::fuzz {

void bin_header(Input input) {
  if (input.empty()) return;
  const ElementType element = kElementTraits[input[0] % kElementTraits.size()].element;
  const std::string_view head(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  FileLayout layout;
  try {
    layout = parse_bin_header(head, element, "input.bin");
  } catch (const CorruptFile& error) {
    if (error.offset() < 0 || error.offset() > static_cast<int64_t>(head.size()))
      throw std::logic_error("an offset outside the input");
    return;
  }
  if (layout.rows < 0 || layout.cols < 0 || layout.file_bytes() == INT64_MAX)
    throw std::logic_error("an impossible shape was let through");
  if (make_bin_header(layout.rows, layout.cols, "again.bin") != head.substr(0, kBinHeaderBytes))
    throw std::logic_error("a header that was read does not survive being written");
}

}  // namespace kith::fuzz
