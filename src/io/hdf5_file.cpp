#include "io/hdf5_file.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"
#include "io/hdf5_library.hpp"
#include "io/hdf5_types.hpp"
#include "io/python_literal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace kith {
namespace {

// libhdf5 unpacks a chunk at a time, outside of any memory limit: larger chunks are refused.
constexpr int64_t kLargestChunkBytes = int64_t{16} << 20;
constexpr size_t kMostChunkSlots = 521;

// The dataset with the file that it lies in. The members close in the other order.
struct OpenDataset {
  Hdf5Id file;
  Hdf5Id dataset;
  Hdf5Id type;
};

std::string link_names(const Hdf5Session& hdf5, hid_t file) {
  constexpr hsize_t kMost = 20;
  H5G_info_t group{};
  if (hdf5->H5Gget_info(file, &group) < 0) return "unreadable";
  std::string names;
  for (hsize_t i = 0; i < std::min(group.nlinks, kMost); ++i) {
    std::array<char, 100> name{};
    if (hdf5->H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT) < 0)
      break;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(name.data()));
  }
  if (group.nlinks > kMost) names += ", ...";
  return names.empty() ? "nothing" : names;
}

// Whether there are links all the way to `name`. Asked before anything is opened: once libhdf5 has stumbled over a
// damaged file, asking it more of that file is how it crashes.
bool is_linked(const Hdf5Session& hdf5, hid_t file, const FileName& name) {
  size_t end = 0;
  do {
    const bool below_another = end > 0;
    end = name.dataset.find('/', end + 1);
    const htri_t found = hdf5->H5Lexists(file, name.dataset.substr(0, end).c_str(), H5P_DEFAULT);
    if (found < 0 && below_another) return false;  // below what is no group
    if (found < 0) throw_corrupt(name.path, 0, fmt::format("libhdf5 cannot look up the dataset: {}", hdf5.reason()));
    if (found == 0) return false;
  } while (end != std::string::npos);
  return true;
}

herr_t follow_no_other_file(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) { return -1; }

// How datasets are opened. The cache holds the chunks that a row passes through where they are of the usual size.
Hdf5Id access_list(const Hdf5Session& hdf5) {
  Hdf5Id list(hdf5->H5Pcreate(*hdf5->H5P_CLS_DATASET_ACCESS_ID_g));
  hdf5->H5Pset_chunk_cache(list.get(), kMostChunkSlots, static_cast<size_t>(kLargestChunkBytes), 1.0);
  hdf5->H5Pset_elink_cb(list.get(), follow_no_other_file, nullptr);
  return list;
}

OpenDataset open_dataset(const Hdf5Session& hdf5, const FileDescriptor& opened, const FileName& name) {
  OpenDataset open;
  // Through the descriptor that was examined, whatever has taken its name by now.
  open.file = Hdf5Id(hdf5->H5Fopen(fmt::format("/proc/self/fd/{}", opened.get()).c_str(), kHdf5ReadOnly, H5P_DEFAULT));
  if (!open.file.valid()) {
    throw_corrupt(name.path, 0, fmt::format("libhdf5 cannot open the file: {}", hdf5.reason()));
  }
  if (!is_linked(hdf5, open.file.get(), name)) {
    throw InvalidArgument(fmt::format("'{}' has no dataset '{}'; it holds: {}. Name one as {}::DATASET", name.file,
                                      name.dataset, link_names(hdf5, open.file.get()), name.file));
  }
  const Hdf5Id access = access_list(hdf5);  // kept over the error below: giving it back would clear the reason
  open.dataset = Hdf5Id(hdf5->H5Dopen2(open.file.get(), name.dataset.c_str(), access.get()));
  if (!open.dataset.valid()) {
    throw InvalidArgument(fmt::format("'{}' is no dataset that libhdf5 can open: {}", name.path, hdf5.reason()));
  }
  open.type = Hdf5Id(hdf5->H5Dget_type(open.dataset.get()));
  if (!open.type.valid()) throw_corrupt(name.path, 0, fmt::format("the dataset has no type: {}", hdf5.reason()));
  return open;
}

FileLayout shape_of(const Hdf5Session& hdf5, const OpenDataset& open, const std::string& path) {
  const Hdf5Id space(hdf5->H5Dget_space(open.dataset.get()));
  const int axes = space.valid() ? hdf5->H5Sget_simple_extent_ndims(space.get()) : -1;
  if (axes < 0) throw_corrupt(path, 0, fmt::format("the dataset has no shape: {}", hdf5.reason()));
  if (axes != 2) {
    throw_refused(path, 0, fmt::format("the dataset has {} dimensions; taken are 2: rows and columns", axes));
  }
  std::array<hsize_t, 2> lengths{};
  hdf5->H5Sget_simple_extent_dims(space.get(), lengths.data(), nullptr);
  const auto length = [](hsize_t axis) { return static_cast<int64_t>(std::min<hsize_t>(axis, INT64_MAX)); };
  const FileLayout layout{element_of_hdf5(hdf5, open.type, path), length(lengths[0]), length(lengths[1])};
  check_shape(layout, path, 0);
  return layout;
}

// Refuses what would leave the file or the memory limit.
void check_storage(const Hdf5Session& hdf5, const Hdf5Id& properties, const FileLayout& layout,
                   const std::string& path) {
  const H5D_layout_t kind = hdf5->H5Pget_layout(properties.get());
  if (kind == H5D_VIRTUAL || hdf5->H5Pget_external_count(properties.get()) > 0) {
    throw_refused(path, 0, "the dataset's values lie in other files; copy them into one with h5repack");
  }
  if (kind != H5D_CHUNKED) return;
  std::array<hsize_t, 2> chunk{};
  hdf5->H5Pget_chunk(properties.get(), 2, chunk.data());
  const auto values = saturating_multiply(static_cast<int64_t>(std::min<hsize_t>(chunk[0], INT64_MAX)),
                                          static_cast<int64_t>(std::min<hsize_t>(chunk[1], INT64_MAX)));
  if (const int64_t bytes = saturating_multiply(values, layout.element_bytes()); bytes > kLargestChunkBytes) {
    throw_refused(path, 0,
                  fmt::format("the dataset's chunks of {} x {} values take {}; at most {} are taken: rewrite the file "
                              "with h5repack, in smaller chunks or none",
                              chunk[0], chunk[1], format_bytes(bytes), format_bytes(kLargestChunkBytes)));
  }
  if (hdf5->H5Pall_filters_avail(properties.get()) <= 0) {
    throw Unsupported(
        fmt::format("'{}' is compressed by a method that this libhdf5 lacks; rewrite it with h5repack", path));
  }
}

// Where the values lie if they do so in one piece, else -1.
int64_t offset_of(const Hdf5Session& hdf5, const OpenDataset& open, const Hdf5Id& properties) {
  if (hdf5->H5Pget_layout(properties.get()) != H5D_CONTIGUOUS) return -1;
  const Hdf5Id file_properties(hdf5->H5Fget_create_plist(open.file.get()));
  hsize_t user_block = 0;  // with one, versions of libhdf5 differ in what an offset is relative to
  if (hdf5->H5Pget_userblock(file_properties.get(), &user_block) < 0 || user_block != 0) return -1;
  const haddr_t offset = hdf5->H5Dget_offset(open.dataset.get());
  return offset == HADDR_UNDEF || offset > INT64_MAX ? -1 : static_cast<int64_t>(offset);
}

// Values that only libhdf5 can find.
class Hdf5Values final : public ValueReader {
 public:
  Hdf5Values(FileDescriptor file, OpenDataset open, const FileLayout& layout, std::string path)
      : file_(std::move(file)), open_(std::move(open)), layout_(layout), path_(std::move(path)) {}
  ~Hdf5Values() override {
    const Hdf5Session hdf5;
    open_.type.reset();
    open_.dataset.reset();
    open_.file.reset();
  }

  void read(int64_t first, int64_t count, void* out) const override {
    const Hdf5Session hdf5;
    auto* to = static_cast<std::byte*>(out);
    const int64_t cols = layout_.cols;
    while (count > 0) {
      const int64_t col = first % cols;
      const bool whole_rows = col == 0 && count >= cols;
      const int64_t rows = whole_rows ? count / cols : 1;
      const int64_t width = whole_rows ? cols : std::min(count, cols - col);
      read_block(hdf5, {first / cols, col}, {rows, width}, to);
      first += rows * width;
      count -= rows * width;
      to += rows * width * layout_.element_bytes();
    }
  }

 private:
  struct Pair {
    int64_t row;
    int64_t col;
  };

  void read_block(const Hdf5Session& hdf5, Pair from, Pair size, void* out) const {
    const std::array start{static_cast<hsize_t>(from.row), static_cast<hsize_t>(from.col)};
    const std::array count{static_cast<hsize_t>(size.row), static_cast<hsize_t>(size.col)};
    const Hdf5Id space(hdf5->H5Dget_space(open_.dataset.get()));
    const Hdf5Id memory(hdf5->H5Screate_simple(2, count.data(), nullptr));
    if (hdf5->H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >= 0 &&
        hdf5->H5Dread(open_.dataset.get(), open_.type.get(), memory.get(), space.get(), H5P_DEFAULT, out) >= 0) {
      return;
    }
    throw_corrupt(path_, 0,
                  fmt::format("libhdf5 cannot read {} rows of the dataset from row {} on: {}", size.row, from.row,
                              hdf5.reason()));
  }

  FileDescriptor file_;
  OpenDataset open_;
  FileLayout layout_;
  std::string path_;
};

}  // namespace

OpenedMatrix open_hdf5(OpenedFile opened, const FileName& name) {
  const Hdf5Session hdf5;
  OpenDataset open = open_dataset(hdf5, opened.file, name);
  FileLayout layout = shape_of(hdf5, open, name.path);
  const Hdf5Id properties(hdf5->H5Dget_create_plist(open.dataset.get()));
  if (!properties.valid()) throw_corrupt(name.path, 0, fmt::format("libhdf5: {}", hdf5.reason()));
  check_storage(hdf5, properties, layout, name.path);
  if (layout.rows == 0) {
    return {layout, std::make_unique<PlainValues>(std::move(opened.file), layout, name.path)};
  }
  const int64_t offset = offset_of(hdf5, open, properties);
  if (offset < 0) {
    return {layout, std::make_unique<Hdf5Values>(std::move(opened.file), std::move(open), layout, name.path)};
  }
  layout.data_offset = offset;
  check_shape(layout, name.path, 0);
  if (layout.file_bytes() > opened.size) {
    throw_corrupt(name.path, opened.size,
                  fmt::format("the file ends here, but the dataset of {} begins at byte {} and needs {}; it was cut "
                              "short",
                              describe(layout), offset, layout.file_bytes()));
  }
  return {layout, std::make_unique<PlainValues>(std::move(opened.file), layout, name.path)};
}

int64_t create_hdf5(const std::string& target, const FileName& name, const FileLayout& layout) {
  const Hdf5Session hdf5;
  const auto check = [&](bool done) {
    if (!done) throw IoError(fmt::format("cannot write '{}': libhdf5: {}", name.path, hdf5.reason()), name.path, 0);
  };
  const Hdf5Id file(hdf5->H5Fcreate(target.c_str(), kHdf5Truncate, H5P_DEFAULT, H5P_DEFAULT));
  check(file.valid());
  const Hdf5Id links(hdf5->H5Pcreate(*hdf5->H5P_CLS_LINK_CREATE_ID_g));
  hdf5->H5Pset_create_intermediate_group(links.get(), 1);
  // In one piece, with its place taken at once; without the time of day, so that the same values make the same bytes.
  const Hdf5Id properties(hdf5->H5Pcreate(*hdf5->H5P_CLS_DATASET_CREATE_ID_g));
  hdf5->H5Pset_layout(properties.get(), H5D_CONTIGUOUS);
  hdf5->H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
  hdf5->H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
  hdf5->H5Pset_obj_track_times(properties.get(), false);
  const std::array shape{static_cast<hsize_t>(layout.rows), static_cast<hsize_t>(layout.cols)};
  const Hdf5Id space(hdf5->H5Screate_simple(2, shape.data(), nullptr));
  const Hdf5Id type = hdf5_type_of(hdf5, layout.element);
  const Hdf5Id dataset(hdf5->H5Dcreate2(file.get(), name.dataset.c_str(), type.get(), space.get(), links.get(),
                                        properties.get(), H5P_DEFAULT));
  check(dataset.valid());
  if (layout.rows == 0) return 0;
  const haddr_t offset = hdf5->H5Dget_offset(dataset.get());
  check(offset != HADDR_UNDEF);
  return static_cast<int64_t>(offset);
}

}  // namespace kith
