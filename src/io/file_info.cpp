#include <kith/file_info.hpp>

#include <kith/error.hpp>

#include "io/file_format.hpp"
#include "io/file_kind.hpp"
#include "io/file_list.hpp"
#include "io/matrix_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace kith {
namespace {

FileContent content_of_element(ElementType element) {
  return traits_of(element).dtype ? FileContent::vectors : FileContent::ids;
}

}  // namespace

FileInfo MatrixFile::info() const {
  return {std::string(name_of(format())),
          content_of_element(layout().element),
          std::string(traits_of(layout().element).name),
          layout().rows,
          layout().cols,
          file_bytes()};
}

FileInfo file_info(const std::string& path) { return MatrixFile(path).info(); }

FileKind file_kind(const std::string& path) { return kind_of_file(path, head_of_file(path)); }

std::string head_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)), path, errno);
  std::string head(16, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

std::optional<FileContent> content_by_extension(const std::string& path) {
  const FileFormat format = parse_file_name(path).format;
  if (format == FileFormat::idx) return FileContent::vectors;
  const std::optional<ElementType> element = element_of(format);
  return element ? std::optional(content_of_element(*element)) : std::nullopt;
}

FileContent content_of(const std::string& path) {
  const std::string file = files_of(path).front();  // those of a pattern are alike
  static_cast<void>(parse_name_to_read(file));  // a file that is not there is told first
  const std::optional<FileContent> content = content_by_extension(file);
  return content ? *content : content_of_element(MatrixFile(file).layout().element);
}

DType dtype_in(const std::string& path, DType otherwise) {
  const std::optional<ElementType> element = element_of(parse_file_name(path).format);
  return element ? traits_of(*element).dtype.value_or(otherwise) : otherwise;
}

std::string file_of(const std::string& path) {
  try {
    return parse_file_name(path).file;
  } catch (const InvalidArgument&) {
    return path;  // of no format of ours: the whole is the file's name
  }
}

std::vector<std::string> files_of(const std::string& path) {
  return is_file_pattern(path) ? matching_files(path) : std::vector<std::string>{path};
}

}  // namespace kith
