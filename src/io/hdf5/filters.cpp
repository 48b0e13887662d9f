#include "io/hdf5/filters.hpp"

#include "io/file_error.hpp"
#include "io/gzip_stream.hpp"
#include "io/hdf5/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kMostFilters = 32;  // as many as a chunk's mask has bits
constexpr int64_t kFirstNamedId = 256;

std::string name_of_filter(int64_t id, std::string_view given) {
  switch (id) {
    case 4: return "szip";
    case 5: return "nbit";
    case 6: return "scale-offset";
    case 32001: return "blosc";
    case 32004: return "lz4";
    case 32008: return "bitshuffle";
    case 32015: return "zstd";
    default: return fmt::format("filter {}{}{}", id, given.empty() ? "" : ", ", printable(given));
  }
}

Hdf5Filter parse_filter(const Hdf5Source& source, Hdf5Cursor& message, bool version_1) {
  const int64_t at = message.at();
  const int64_t id = message.u16();
  const int64_t name_bytes = version_1 || id >= kFirstNamedId ? message.u16() : 0;
  message.skip(2);
  const int64_t values = message.u16();
  const int64_t padded = version_1 ? (name_bytes + 7) / 8 * 8 : name_bytes;
  const std::string_view padded_name = message.text(padded);
  const std::string_view name = padded_name.substr(0, padded_name.find('\0'));
  const int64_t first_value = values > 0 ? message.u32() : 0;
  for (int64_t i = 1; i < values; ++i) message.skip(4);
  if (version_1 && values % 2 != 0) message.skip(4);
  switch (id) {
    case 1: return {Hdf5FilterKind::deflate, 0};
    case 2:
      if (first_value == 0) source.corrupt(at, "the filter shuffle is given elements of 0 bytes");
      return {Hdf5FilterKind::shuffle, first_value};
    case 3: return {Hdf5FilterKind::fletcher32, 0};
    case 32000: return {Hdf5FilterKind::lzf, 0};
    default:
      source.unsupported(at, fmt::format("the dataset is compressed by {}; known are gzip (deflate), lzf, shuffle and "
                                         "fletcher32: rewrite it with h5repack",
                                         name_of_filter(id, name)));
  }
}

// A chunk on its way from what is stored to values: each filter goes from one buffer to the other.
class Unpacking {
 public:
  Unpacking(const Hdf5Source& source, const Hdf5Chunk& chunk, int64_t bytes, const Resources& resources)
      : source_(source), chunk_(chunk), resources_(resources), capacity_(hdf5_buffer_bytes(bytes)), now_(buffer()) {
    // What is longer would unpack to more than a chunk.
    if (chunk.bytes > capacity_) {
      source.corrupt(chunk.at, fmt::format("a chunk of {} bytes is stored in {}", bytes, chunk.bytes));
    }
    read_fully(source.file, source.path, chunk.at, now_.data(), chunk.bytes);
    size_ = chunk.bytes;
  }

  void undo(const Hdf5Filter& filter) {
    switch (filter.kind) {
      case Hdf5FilterKind::deflate: return unpack(inflate_block({now_.data(), as_size(size_)}, room()), "gzip");
      case Hdf5FilterKind::lzf: return unpack(unpack_lzf({now_.data(), as_size(size_)}, room()), "lzf");
      case Hdf5FilterKind::shuffle: return unshuffle(filter.element_bytes);
      case Hdf5FilterKind::fletcher32: return verify_and_cut();
    }
  }

  HostBuffer finish(int64_t bytes) {
    if (size_ != bytes) {
      source_.corrupt(chunk_.at, fmt::format("a chunk unpacks to {} bytes instead of {}", size_, bytes));
    }
    return std::move(now_);
  }

 private:
  static size_t as_size(int64_t bytes) { return static_cast<size_t>(bytes); }
  HostBuffer buffer() const { return {capacity_, "a chunk of an HDF5 file", resources_}; }
  std::span<std::byte> room() {
    if (next_.bytes() == 0) next_ = buffer();
    return {next_.data(), as_size(capacity_)};
  }
  void turn(int64_t made) {
    std::swap(now_, next_);
    size_ = made;
  }

  void unpack(int64_t made, std::string_view method) {
    if (made < 0) source_.corrupt(chunk_.at, fmt::format("a chunk is not valid {} data", method));
    turn(made);
  }

  // The first bytes of all elements stand together, then the second ones, and so on. What is left behind the last whole
  // element stands as it was.
  void unshuffle(int64_t element_bytes) {
    const int64_t elements = size_ / element_bytes;
    if (elements <= 1) return;
    const std::byte* from = now_.data();
    std::byte* const to = room().data();
    for (int64_t b = 0; b < element_bytes; ++b) {
      for (int64_t i = 0; i < elements; ++i) to[i * element_bytes + b] = *from++;
    }
    std::memcpy(to + elements * element_bytes, from, as_size(size_ - elements * element_bytes));
    turn(size_);
  }

  void verify_and_cut() {
    if (size_ < kChecksumBytes) source_.corrupt(chunk_.at, "a chunk is too short for its checksum");
    size_ -= kChecksumBytes;
    uint32_t stored = 0;
    for (int64_t i = kChecksumBytes; i-- > 0;) stored = stored << 8 | std::to_integer<uint32_t>(now_.data()[size_ + i]);
    if (!matches_fletcher32({now_.data(), as_size(size_)}, stored)) {
      source_.corrupt(chunk_.at, "the checksum of a chunk is wrong; the file is damaged");
    }
  }

  const Hdf5Source& source_;
  const Hdf5Chunk& chunk_;
  const Resources& resources_;
  int64_t capacity_;
  HostBuffer now_;
  HostBuffer next_;
  int64_t size_ = 0;
};

}  // namespace

std::vector<Hdf5Filter> parse_filters(const Hdf5Source& source, Hdf5Cursor message) {
  const int64_t at = message.at();
  const int64_t version = message.u8();
  if (version != 1 && version != 2) source.corrupt(at, fmt::format("unknown version {} of the filters", version));
  const int64_t count = message.u8();
  if (count > kMostFilters) source.corrupt(at, fmt::format("{} filters; the limit is {}", count, kMostFilters));
  if (version == 1) message.skip(6);
  std::vector<Hdf5Filter> filters;
  for (int64_t i = 0; i < count; ++i) filters.push_back(parse_filter(source, message, version == 1));
  return filters;
}

HostBuffer read_chunk(const Hdf5Source& source, const Hdf5Chunk& chunk, const std::vector<Hdf5Filter>& filters,
                      int64_t bytes, const Resources& resources) {
  Unpacking unpacking(source, chunk, bytes, resources);
  for (size_t i = filters.size(); i-- > 0;) {
    if ((chunk.skipped_filters >> i & 1) == 0) unpacking.undo(filters[i]);
  }
  return unpacking.finish(bytes);
}

// A byte below 32 is followed by so many plain bytes and one more. Another holds the length of a copy in its upper
// three bits (7: a byte with the rest of it follows) and with the byte behind it how far back the copy begins.
int64_t unpack_lzf(std::span<const std::byte> packed, std::span<std::byte> out) {
  constexpr size_t kPlainBelow = 32;
  constexpr size_t kLongCopy = 7;
  size_t in = 0;
  size_t made = 0;
  const auto next = [&] { return std::to_integer<size_t>(packed[in++]); };
  while (in < packed.size()) {
    const size_t control = next();
    if (control < kPlainBelow) {
      const size_t count = control + 1;
      if (count > packed.size() - in || count > out.size() - made) return -1;
      std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(in), count,
                  out.begin() + static_cast<std::ptrdiff_t>(made));
      in += count;
      made += count;
      continue;
    }
    size_t count = control >> 5;
    if (packed.size() - in < (count == kLongCopy ? 2U : 1U)) return -1;
    if (count == kLongCopy) count += next();
    count += 2;
    const size_t back = ((control & 0x1f) << 8 | next()) + 1;
    if (back > made || count > out.size() - made) return -1;
    for (size_t i = 0; i < count; ++i, ++made) out[made] = out[made - back];  // byte by byte: it may repeat itself
  }
  return static_cast<int64_t>(made);
}

}  // namespace kith
