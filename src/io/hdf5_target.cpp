#include "io/hdf5_target.hpp"

#include <kith/error.hpp>

#include "io/hdf5/dataset.hpp"
#include "io/hdf5/file_header.hpp"
#include "io/hdf5/group.hpp"
#include "io/hdf5/superblock.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace kith {
namespace {

constexpr std::string_view kRemedy = "choose another file name, or remove the file first";

bool has_attributes(const Hdf5Source& source, const Hdf5ObjectHeader& header) {
  if (header.find(Hdf5MessageType::attribute) != nullptr) return true;
  const Hdf5Message* const info = header.find(Hdf5MessageType::attribute_info);
  if (info == nullptr) return false;
  constexpr int64_t kOrderIsTracked = 0x01;
  Hdf5Cursor cursor(source, info->content, info->at, "an attribute info message");
  cursor.skip(1);
  cursor.skip((cursor.u8() & kOrderIsTracked) != 0 ? 2 : 0);
  return cursor.address() != kHdf5Nowhere;
}

[[noreturn]] void throw_unreadable(const FileName& name, std::string_view reason) {
  throw InvalidArgument(
      fmt::format("'{}' already exists and cannot be read as HDF5, so what would be lost is unknown; {} ({})",
                  name.file, kRemedy, reason));
}

// Each group on the way holds the next step and nothing else, and the last step is a dataset; or the way ends early, in
// a group that holds nothing.
bool holds_only(const Hdf5Source& source, int64_t root_at, const std::vector<std::string>& steps) {
  Hdf5ObjectHeader here = read_object_header(source, root_at);
  for (const std::string& step : steps) {
    if (!is_hdf5_group(here) || has_attributes(source, here)) return false;
    const size_t links = link_names(source, here, 2).size();
    if (links == 0) return true;
    const std::optional<Hdf5Link> link = find_link(source, here, step);
    if (links > 1 || !link || link->kind != Hdf5LinkKind::hard) return false;
    here = read_object_header(source, link->header_at);
  }
  return is_hdf5_dataset(here);
}

}  // namespace

void check_hdf5_target(const FileName& name) {
  std::error_code ignored;  // what cannot be looked at is the writer's to refuse
  if (!std::filesystem::is_regular_file(name.file, ignored)) return;
  OpenedFile opened = open_for_reading(name.file);
  if (opened.size == 0) return;
  std::string held;
  try {
    Hdf5Source source{std::move(opened.file), name.file, opened.size};
    const int64_t root_at = read_superblock(source);
    if (holds_only(source, root_at, dataset_steps(name))) return;
    held = list_links(source, root_at);
    if (has_attributes(source, read_object_header(source, root_at))) held += ", and attributes";
  } catch (const CorruptFile& error) {
    throw_unreadable(name, error.what());
  } catch (const Unsupported& error) {
    throw_unreadable(name, error.what());
  }
  throw InvalidArgument(
      fmt::format("'{}' already exists and holds: {}; writing '{}' would replace all of it by this one dataset; {}",
                  name.file, held, name.dataset, kRemedy));
}

}  // namespace kith
