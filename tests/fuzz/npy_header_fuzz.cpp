#include "fuzz/fuzz_target.hpp"

#include <kith/error.hpp>

#include "io/formats.hpp"

#include <stdexcept>
#include <string_view>

namespace kith::fuzz {

void npy_header(Input input) {
  const std::string_view head(reinterpret_cast<const char*>(input.data()), input.size());
  FileLayout layout;
  try {
    layout = parse_npy_header(head, "input.npy");
  } catch (const InvalidArgument&) {
    return;
  } catch (const CorruptFile& error) {
    if (error.offset() < 0 || error.offset() > static_cast<int64_t>(head.size()))
      throw std::logic_error("an offset outside the input");
    return;
  }
  if (layout.data_offset > static_cast<int64_t>(head.size()))
    throw std::logic_error("values begin behind the header's end");
  if (layout.rows < 0 || layout.cols < 0 || layout.file_bytes() == INT64_MAX)
    throw std::logic_error("an impossible shape was let through");
  const FileLayout again = parse_npy_header(make_npy_header(layout.element, layout.rows, layout.cols), "again.npy");
  if (again.element != layout.element || again.rows != layout.rows || again.cols != layout.cols) {
    throw std::logic_error("a header that was read does not survive being written");
  }
}

}  // namespace kith::fuzz
