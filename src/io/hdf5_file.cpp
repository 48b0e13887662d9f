#include "io/hdf5_file.hpp"

#include <kith/error.hpp>

#include "io/hdf5/chunked_values.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/hdf5/group.hpp"
#include "io/hdf5/superblock.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {
namespace {

Hdf5ObjectHeader find_dataset(const Hdf5Source& source, const FileName& name, int64_t root_at) {
  std::optional<Hdf5ObjectHeader> found = find_object(source, root_at, name.dataset);
  if (!found) {
    throw InvalidArgument(fmt::format("'{}' has no dataset '{}'; it holds: {}. Name one as {}::DATASET", name.file,
                                      name.dataset, list_links(source, root_at), name.file));
  }
  if (!is_hdf5_dataset(*found)) {
    throw InvalidArgument(fmt::format("'{}' is not a dataset but {}", name.path,
                                      is_hdf5_group(*found) ? "a group" : "something else, a type perhaps"));
  }
  return std::move(*found);
}

}  // namespace

OpenedMatrix open_hdf5(OpenedFile opened, const FileName& name) {
  Hdf5Source source{std::move(opened.file), name.path, opened.size};
  const int64_t root_at = read_superblock(source);
  Hdf5Dataset dataset = parse_dataset(source, find_dataset(source, name, root_at));
  const FileLayout layout = dataset.layout;
  if (dataset.storage == Hdf5Storage::plain || layout.rows == 0) {
    return {layout, std::make_unique<PlainValues>(std::move(source.file), layout, name.path)};
  }
  return {layout, make_chunked_values(std::move(source), std::move(dataset))};
}

}  // namespace kith
