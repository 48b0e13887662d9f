#include "io/formats.hpp"

#include "io/file_error.hpp"
#include "io/gzip_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kMagicBytes = 4;
constexpr int64_t kAxisBytes = 4;
constexpr int64_t kMostAxes = (kIdxHeadLimit - kMagicBytes) / kAxisBytes;
constexpr int64_t kTypeAt = 2;
constexpr int64_t kAxesAt = 3;

int64_t byte_at(std::string_view head, int64_t i) { return static_cast<unsigned char>(head[static_cast<size_t>(i)]); }

int64_t axis_at(std::string_view head, int64_t axis) {
  int64_t length = 0;
  for (int64_t i = 0; i < kAxisBytes; ++i) length = length << 8 | byte_at(head, kMagicBytes + axis * kAxisBytes + i);
  return length;
}

ElementType element_of_code(int64_t code, const std::string& path) {
  switch (code) {
    case 0x08: return ElementType::u8;
    case 0x09: return ElementType::i8;
    case 0x0B:
    case 0x0C:
    case 0x0D:
    case 0x0E:
      throw_refused(
          path, kTypeAt,
          fmt::format("the values' type is 0x{:02x}, big-endian numbers of several bytes; supported are bytes "
                      "(0x08, 0x09): save the others as .npy",
                      code));
    default: throw_corrupt(path, kTypeAt, fmt::format("unknown type of values 0x{:02x}", code));
  }
}

// The content of a gzip file. One stream for all threads: it stands behind the last value read.
class GzipValues final : public ValueReader {
 public:
  GzipValues(std::unique_ptr<GzipStream> stream, const FileLayout& layout, std::string path)
      : stream_(std::move(stream)), layout_(layout), path_(std::move(path)) {}

  void read(int64_t first, int64_t count, void* out) const override {
    const std::lock_guard lock(mutex_);
    const int64_t bytes = layout_.element_bytes();
    go_to(layout_.data_offset + first * bytes);
    take(out, count * bytes);
    if (stream_->position() == layout_.file_bytes()) check_end();
  }

 private:
  void go_to(int64_t position) const {
    if (position < stream_->position()) stream_->restart();
    std::array<std::byte, kPieceBytes> skipped;
    while (stream_->position() < position) {
      take(skipped.data(), std::min(kPieceBytes, position - stream_->position()));
    }
  }

  void take(void* out, int64_t bytes) const {
    if (stream_->read(out, bytes) == bytes) return;
    throw_corrupt(path_, stream_->file_offset(),
                  fmt::format("the content ends after {} bytes, but {} need {}", stream_->position(), describe(layout_),
                              layout_.file_bytes()));
  }

  void check_end() const {
    std::byte more{};
    if (stream_->read(&more, 1) == 0) return;
    throw_corrupt(path_, stream_->file_offset(), fmt::format("more data follows after {}", describe(layout_)));
  }

  mutable std::mutex mutex_;
  std::unique_ptr<GzipStream> stream_;
  FileLayout layout_;
  std::string path_;
};

OpenedMatrix open_compressed(OpenedFile opened, const std::string& path) {
  auto stream = std::make_unique<GzipStream>(std::move(opened.file), path);
  std::string head(static_cast<size_t>(kIdxHeadLimit), '\0');
  head.resize(static_cast<size_t>(stream->read(head.data(), kIdxHeadLimit)));
  const FileLayout layout = parse_idx_header(head, path);
  // The true size shows only at the end; a header that no compression could fulfil is refused before memory is made.
  if (layout.file_bytes() / kGzipLargestRatio > opened.size) {
    throw_corrupt(path, opened.size,
                  fmt::format("the file ends here; its {} bytes cannot unpack to the {} that {} need", opened.size,
                              layout.file_bytes(), describe(layout)));
  }
  return {layout, std::make_unique<GzipValues>(std::move(stream), layout, path)};
}

}  // namespace

FileLayout parse_idx_header(std::string_view head, const std::string& path) {
  const auto length = static_cast<int64_t>(head.size());
  if (length < kMagicBytes) throw_corrupt(path, length, "the file ends inside its header");
  if (byte_at(head, 0) != 0 || byte_at(head, 1) != 0) {
    throw_corrupt(path, 0, "not an IDX file: it does not begin with two zero bytes");
  }
  const ElementType element = element_of_code(byte_at(head, kTypeAt), path);
  const int64_t axes = byte_at(head, kAxesAt);
  if (axes < 1 || axes > kMostAxes) {
    throw_refused(path, kAxesAt, fmt::format("the array has {} axes; supported are 1 to {}", axes, kMostAxes));
  }
  const int64_t header_bytes = kMagicBytes + axes * kAxisBytes;
  if (length < header_bytes) {
    throw_corrupt(path, length, fmt::format("the file ends inside its header, which has {} bytes", header_bytes));
  }
  FileLayout layout{element, axis_at(head, 0), 1, header_bytes};
  for (int64_t axis = 1; axis < axes; ++axis) layout.cols = saturating_multiply(layout.cols, axis_at(head, axis));
  check_shape(layout, path, kMagicBytes);
  return layout;
}

OpenedMatrix open_idx(OpenedFile opened, const std::string& path) {
  std::string head(static_cast<size_t>(std::min(opened.size, kIdxHeadLimit)), '\0');
  read_fully(opened.file, path, 0, head.data(), static_cast<int64_t>(head.size()));
  if (head.starts_with("\x1f\x8b")) return open_compressed(std::move(opened), path);
  const FileLayout layout = parse_idx_header(head, path);
  check_size(layout, opened.size, path);
  return {layout, std::make_unique<PlainValues>(std::move(opened.file), layout, path)};
}

}  // namespace kith
