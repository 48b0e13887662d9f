#include "io/hdf5/dataset.hpp"

#include "core/byte_size.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// A chunk is unpacked as a whole: larger ones are refused, so that no file can ask for much memory.
constexpr int64_t kLargestChunkBytes = int64_t{16} << 20;

struct Shape {
  std::array<int64_t, 2> now{};
  std::array<int64_t, 2> most{};
};

class DatasetParser {
 public:
  DatasetParser(const Hdf5Source& source, const Hdf5ObjectHeader& header) : source_(source), header_(header) {}

  Hdf5Dataset parse() {
    const Shape shape = parse_shape();
    dataset_.layout = {parse_type(), shape.now[0], shape.now[1]};
    check_shape(dataset_.layout, source_.path, header_.at);
    if (header_.find(Hdf5MessageType::external_files) != nullptr) refuse_other_files();
    if (const Hdf5Message* const filters = header_.find(Hdf5MessageType::filters)) {
      dataset_.filters = parse_filters(source_, cursor(*filters, "a filter message"));
    }
    parse_fill();
    parse_layout(shape);
    return std::move(dataset_);
  }

 private:
  Hdf5Cursor cursor(const Hdf5Message& message, std::string_view what) const {
    if (message.shared) source_.unsupported(message.at, fmt::format("{} is shared with other objects", what));
    return {source_, message.content, message.at, what};
  }

  [[noreturn]] void refuse_other_files() const {
    source_.unsupported(header_.at, "the dataset's values are in other files; copy them into one with h5repack");
  }

  Shape parse_shape() const {
    Hdf5Cursor message = cursor(*header_.find(Hdf5MessageType::dataspace), "a dataspace message");
    const int64_t at = message.at();
    const int64_t version = message.u8();
    if (version != 1 && version != 2) source_.corrupt(at, fmt::format("unknown version {} of a dataspace", version));
    const int64_t axes = message.u8();
    const bool has_most = (message.u8() & 1) != 0;
    message.skip(version == 1 ? 5 : 1);
    if (axes != 2) {
      source_.refused(at, fmt::format("the dataset has {} dimensions; supported are 2: rows and columns", axes));
    }
    Shape shape;
    for (int64_t& axis : shape.now) axis = message.length();
    shape.most = shape.now;
    // All bits set is "without end", and becomes the largest number.
    if (has_most) {
      for (int64_t& axis : shape.most) axis = message.length();
    }
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t endless = source_.length_bytes == 8 ? INT64_MAX : (int64_t{1} << 8 * source_.length_bytes) - 1;
      if (shape.most[axis] == endless) shape.most[axis] = kHdf5Unlimited;
      if (shape.most[axis] < shape.now[axis]) source_.corrupt(at, "the dataset is larger than its maximum shape");
    }
    return shape;
  }

  ElementType parse_type() const {
    const Hdf5Message& message = *header_.find(Hdf5MessageType::datatype);
    if (!message.shared) return parse_datatype(source_, cursor(message, "a datatype message"));
    // A type with a name of its own: the message is its address.
    Hdf5Cursor place(source_, message.content, message.at, "a shared datatype message");
    const int64_t version = place.u8();
    const int64_t kind = place.u8();
    constexpr int64_t kInAHeap = 1;
    if (version > 3 || (version == 3 && kind == kInAHeap)) {
      source_.unsupported(message.at, "the dataset's type is in a heap of shared messages");
    }
    if (version == 1) place.skip(6);
    const int64_t at = place.address();
    if (at == kHdf5Nowhere) source_.corrupt(message.at, "the address of the dataset's type is missing");
    const Hdf5ObjectHeader type = read_object_header(source_, at);
    const Hdf5Message* const found = type.find(Hdf5MessageType::datatype);
    if (found == nullptr) source_.corrupt(at, "the dataset's type has no datatype message");
    return parse_datatype(source_, cursor(*found, "a datatype message"));
  }

  void parse_fill() {
    const Hdf5Message* found = header_.find(Hdf5MessageType::fill_value);
    if (found == nullptr) found = header_.find(Hdf5MessageType::old_fill_value);
    if (found == nullptr) return;
    Hdf5Cursor message = cursor(*found, "a fill value message");
    if (found->type == Hdf5MessageType::fill_value) {
      const int64_t version = message.u8();
      if (version < 1 || version > 3) {
        source_.corrupt(found->at, fmt::format("unknown version {} of a fill value", version));
      }
      if (version == 3) {
        constexpr int64_t kHasValue = 0x20;
        if ((message.u8() & kHasValue) == 0) return;
      } else {
        message.skip(2);
        const bool has_value = message.u8() != 0;
        if (version == 2 && !has_value) return;
      }
    }
    const int64_t bytes = message.u32();
    if (bytes == 0) return;
    if (bytes != dataset_.layout.element_bytes()) {
      source_.corrupt(found->at, fmt::format("a fill value of {} bytes for elements of {}", bytes,
                                             dataset_.layout.element_bytes()));
    }
    const auto value = message.take(bytes);
    std::copy(value.begin(), value.end(), dataset_.fill.begin());
  }

  void parse_layout(const Shape& shape) {
    Hdf5Cursor message = cursor(*header_.find(Hdf5MessageType::layout), "a layout message");
    const int64_t at = message.at();
    const int64_t version = message.u8();
    if (version < 3 || version > 5) {
      source_.unsupported(at, fmt::format("version {} of the layout of a dataset; known are 3 to 5: rewrite the file "
                                          "with h5repack",
                                          version));
    }
    switch (message.u8()) {
      case 0: return parse_compact(message);
      case 1: return parse_contiguous(message);
      case 2: break;
      case 3: refuse_other_files();
      default: source_.corrupt(at, "the dataset has an unknown layout");
    }
    dataset_.chunking.shape = shape.now;
    dataset_.chunking.most = shape.most;
    dataset_.chunking.filtered = !dataset_.filters.empty();
    dataset_.storage = Hdf5Storage::chunked;
    if (version == 3) {
      parse_chunks_of_version_3(message);
    } else {
      parse_chunks_of_version_4_and_5(message);
    }
  }

  // The values stand in the message itself, which is to say in the file.
  void parse_compact(Hdf5Cursor& message) {
    const int64_t bytes = message.u16();
    place_values(message.at(), std::min(bytes, message.left()));
  }

  void parse_contiguous(Hdf5Cursor& message) {
    const int64_t at = message.address();
    const int64_t bytes = message.length();
    if (at != kHdf5Nowhere) place_values(at, bytes);
  }

  void place_values(int64_t at, int64_t bytes) {
    FileLayout& layout = dataset_.layout;
    if (const int64_t needed = layout.file_bytes(); needed > bytes) {
      source_.corrupt(header_.at,
                      fmt::format("{} need {} bytes, but {} are set aside for them", describe(layout), needed, bytes));
    }
    layout.data_offset = at;
    check_shape(layout, source_.path, header_.at);
    dataset_.storage = Hdf5Storage::plain;
    if (layout.file_bytes() <= source_.size) return;
    source_.corrupt(source_.size,
                    fmt::format("the file ends here, but the dataset of {} begins at byte {} and needs {}; "
                                "it is truncated",
                                describe(layout), at, layout.file_bytes()));
  }

  void parse_chunks_of_version_3(Hdf5Cursor& message) {
    check_axes(message);
    dataset_.chunking.kind = Hdf5IndexKind::tree_v1;
    dataset_.chunking.index_at = message.address();
    parse_chunk_shape(message, 4);
  }

  // They differ in how wide an index stores the bytes of a chunk, which the index says itself.
  void parse_chunks_of_version_4_and_5(Hdf5Cursor& message) {
    constexpr int64_t kPlainEdges = 0x01;
    constexpr int64_t kSingleFiltered = 0x02;
    Hdf5Chunking& chunking = dataset_.chunking;
    const int64_t flags = message.u8();
    chunking.plain_edges = (flags & kPlainEdges) != 0;
    check_axes(message);
    const int64_t width_at = message.at();
    const int64_t width = message.u8();
    if (width < 1 || width > 8) source_.corrupt(width_at, fmt::format("lengths of {} bytes; known are 1 to 8", width));
    parse_chunk_shape(message, width);
    const int64_t kind_at = message.at();
    const int64_t kind = message.u8();
    switch (kind) {
      case 1:
        chunking.kind = Hdf5IndexKind::single;
        if ((flags & kSingleFiltered) != 0) {
          chunking.single.bytes = message.length();
          chunking.single.skipped_filters = message.u32();
        } else {
          chunking.filtered = false;
          dataset_.filters.clear();
        }
        if (chunking.chunks_along(0) > 1 || chunking.chunks_along(1) > 1) {
          source_.corrupt(kind_at, "one chunk is said to hold all values, and is too small");
        }
        break;
      case 2:
        chunking.kind = Hdf5IndexKind::implicit;
        if (chunking.filtered) source_.corrupt(kind_at, "chunks without an index cannot be filtered");
        break;
      case 3:
        chunking.kind = Hdf5IndexKind::fixed_array;
        message.skip(1);
        break;
      case 4:
        chunking.kind = Hdf5IndexKind::extensible_array;
        message.skip(5);
        break;
      case 5:
        chunking.kind = Hdf5IndexKind::tree_v2;
        message.skip(6);
        break;
      default: source_.unsupported(kind_at, fmt::format("an index of chunks of kind {}; known are 1 to 5", kind));
    }
    chunking.index_at = message.address();
    chunking.single.at = chunking.index_at;
  }

  // Chunks have one axis more than the dataset: the bytes of an element.
  void check_axes(Hdf5Cursor& message) const {
    const int64_t at = message.at();
    const int64_t axes = message.u8();
    if (axes != 3) source_.corrupt(at, fmt::format("chunks of {} axes in a dataset of 2", axes - 1));
  }

  void parse_chunk_shape(Hdf5Cursor& message, int64_t width) {
    Hdf5Chunking& chunking = dataset_.chunking;
    const int64_t at = message.at();
    for (int64_t& axis : chunking.chunk) axis = message.number(width);
    const int64_t element_bytes = message.number(width);
    const auto [rows, cols] = chunking.chunk;
    if (rows == 0 || cols == 0 || element_bytes != dataset_.layout.element_bytes()) {
      source_.corrupt(at, fmt::format("chunks of {} x {} values of {} bytes in a dataset of {}", rows, cols,
                                      element_bytes, describe(dataset_.layout)));
    }
    chunking.chunk_bytes = saturating_multiply(saturating_multiply(rows, cols), element_bytes);
    if (chunking.chunk_bytes > kLargestChunkBytes) {
      source_.refused(at,
                      fmt::format("the dataset's chunks of {} x {} values take {}; the limit is {}: rewrite the "
                                  "file with h5repack, in smaller chunks or none",
                                  rows, cols, format_bytes(chunking.chunk_bytes), format_bytes(kLargestChunkBytes)));
    }
  }

  const Hdf5Source& source_;
  const Hdf5ObjectHeader& header_;
  Hdf5Dataset dataset_;
};

}  // namespace

bool is_hdf5_dataset(const Hdf5ObjectHeader& header) {
  return header.find(Hdf5MessageType::dataspace) != nullptr && header.find(Hdf5MessageType::datatype) != nullptr &&
         header.find(Hdf5MessageType::layout) != nullptr;
}

Hdf5Dataset parse_dataset(const Hdf5Source& source, const Hdf5ObjectHeader& header) {
  return DatasetParser(source, header).parse();
}

}  // namespace kith
