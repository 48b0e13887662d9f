#include "io/container/container_file.hpp"

#include <kith/error.hpp>

#include "io/atomic_file_writer.hpp"
#include "io/container/xxh3.hpp"
#include "io/file_error.hpp"
#include "io/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace kith {
namespace {

// Whether bytes of a container have the stored hash. In fuzz targets every hash matches: a fuzzer could not guess a
// right one, and would never reach the code behind.
bool matches_section_hash([[maybe_unused]] uint64_t computed, [[maybe_unused]] uint64_t stored) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  return true;
#else
  return computed == stored;
#endif
}

constexpr int64_t kHashedStep = int64_t{4} << 20;  // bytes that are read, then hashed while they are near
constexpr int64_t kHashBytes = 8;
constexpr int64_t kHashAt = kContainerHeaderBytes - kHashBytes;

// Takes numbers and names from bytes that are long enough.
class HeadCursor {
 public:
  explicit HeadCursor(const std::byte* from) : next_(from) {}
  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, next_, sizeof(value));
    next_ += sizeof(value);
    return value;
  }
  // A name in a field filled with zeros; none where it is no name.
  std::optional<std::string> name(size_t width) {
    const std::string_view field(reinterpret_cast<const char*>(next_), width);
    next_ += width;
    const std::string_view name = field.substr(0, field.find('\0'));
    const std::string_view behind = field.substr(name.size());
    if (!is_section_name(name) || behind.find_first_not_of('\0') != std::string_view::npos) return std::nullopt;
    return std::string(name);
  }

 private:
  const std::byte* next_;
};

[[noreturn]] void throw_no_container(const std::string& path, std::string_view head) {
  if (looks_like_faiss(head)) {
    throw InvalidArgument(
        fmt::format("'{}' is an index of FAISS, not a .kith file; read it with kith.read_faiss, and save that to have "
                    "a .kith file",
                    path));
  }
  if (const FileKind kind = kind_of_file(path, head); !kind.name.empty()) {
    throw InvalidArgument(fmt::format("'{}' is {}, not a .kith file: {}", path, kind.name, kind.hint));
  }
  if (head == kContainerMagic.substr(0, head.size())) {
    throw_corrupt(path, static_cast<int64_t>(head.size()),
                  "the file ends here, within the first bytes of a .kith file; it was cut");
  }
  throw_corrupt(path, 0, "this is no .kith file: it does not begin as one");
}

}  // namespace

ContainerFile::ContainerFile(const std::string& path) : path_(path), file_(open_for_reading(path)) { read_header(); }

ContainerFile::ContainerFile(std::shared_ptr<const DiskFile> file)
    : path_(file->path()), file_{FileDescriptor(), file->size()}, disk_file_(std::move(file)) {
  read_header();
}

void ContainerFile::fetch(int64_t offset, void* out, int64_t bytes) const {
  if (disk_file_ != nullptr) {
    disk_file_->read(offset, out, bytes);
  } else {
    read_fully(file_.file, path_, offset, out, bytes);
  }
}

void ContainerFile::read_header() {
  std::array<std::byte, kContainerHeaderBytes> bytes{};
  const int64_t available = std::min(file_.size, kContainerHeaderBytes);
  fetch(0, bytes.data(), available);
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(available));
  if (head.substr(0, kContainerMagic.size()) != kContainerMagic) throw_no_container(path_, head.substr(0, 16));
  constexpr int64_t kVersionEnd = 12;
  HeadCursor cursor(bytes.data() + kContainerMagic.size());
  version_ = cursor.number<uint32_t>();
  const bool known = version_ >= kFirstContainerVersion && version_ <= kContainerVersion;
  if (available >= kVersionEnd && !known) {
    throw Unsupported(fmt::format("'{}' is a .kith file of version {}; this Kith reads versions {} to {}{}", path_,
                                  version_, kFirstContainerVersion, kContainerVersion,
                                  version_ > kContainerVersion ? ": a newer one may read it" : ""));
  }
  if (available < kContainerHeaderBytes) {
    throw_corrupt(path_, available,
                  fmt::format("the file ends here, within its header of {} bytes; it was cut", kContainerHeaderBytes));
  }
  const auto count = cursor.number<uint32_t>();
  const auto file_bytes = cursor.number<int64_t>();
  if (file_bytes > file_.size) {
    throw_corrupt(path_, file_.size,
                  fmt::format("the file ends here, {} bytes early; it was cut", file_bytes - file_.size));
  }
  if (file_bytes < file_.size) {
    throw_corrupt(path_, std::max<int64_t>(file_bytes, 0),
                  fmt::format("the header promises {} bytes, and the file has {}", file_bytes, file_.size));
  }
  if (cursor.number<uint64_t>() != 0) throw_corrupt(path_, 24, "the header has a value where there must be zeros");
  std::optional<std::string> kind = cursor.name(kContainerKindBytes);
  if (!kind) throw_corrupt(path_, 32, "the header does not say what the file holds");
  kind_ = std::move(*kind);
  if (cursor.number<uint64_t>() != 0) throw_corrupt(path_, 48, "the header has a value where there must be zeros");
  read_table(count, bytes);
  check_layout();
}

void ContainerFile::read_table(uint32_t count, std::span<const std::byte> header) {
  const int64_t bytes = int64_t{count} * kSectionEntryBytes;
  if (bytes > file_.size - kContainerHeaderBytes) {
    throw_corrupt(path_, 12, fmt::format("a table of {} sections is larger than the file", count));
  }
  std::vector<std::byte> table(static_cast<size_t>(bytes));
  fetch(kContainerHeaderBytes, table.data(), bytes);
  Xxh3 hash;
  hash.update(header.first(kHashAt));
  hash.update(table);
  head_hash_ = HeadCursor(&header[kHashAt]).number<uint64_t>();
  if (!matches_section_hash(hash.digest(), head_hash_)) {
    throw_corrupt(path_, kHashAt, "the header or the table of sections is damaged: its hash differs");
  }
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t at = kContainerHeaderBytes + int64_t{i} * kSectionEntryBytes;
    HeadCursor cursor(table.data() + int64_t{i} * kSectionEntryBytes);
    std::optional<std::string> name = cursor.name(kSectionNameBytes);
    if (!name) throw_corrupt(path_, at, fmt::format("section {} has no proper name", i));
    if (find(*name) != nullptr) throw_corrupt(path_, at, fmt::format("there are two sections '{}'", *name));
    Section section;
    section.name = std::move(*name);
    section.type = static_cast<SectionType>(cursor.number<uint32_t>());
    const auto axes = cursor.number<uint32_t>();
    if (size_of(section.type) == 0 || axes > kMostAxes) {
      throw_corrupt(path_, at, fmt::format("section '{}': an unknown type or number of axes", section.name));
    }
    for (uint32_t axis = 0; axis < kMostAxes; ++axis) {
      const auto length = cursor.number<int64_t>();
      if (length < 0 || (axis >= axes && length != 0)) {
        throw_corrupt(path_, at, fmt::format("section '{}': an impossible shape", section.name));
      }
      if (axis < axes) section.shape.push_back(length);
    }
    section.offset = cursor.number<int64_t>();
    section.bytes = cursor.number<int64_t>();
    section.hash = cursor.number<uint64_t>();
    sections_.push_back(std::move(section));
  }
}

// Checks that sections are where a writer puts them, with zeros between, up to the end of the file.
void ContainerFile::check_layout() const {
  int64_t end = kContainerHeaderBytes + static_cast<int64_t>(sections_.size()) * kSectionEntryBytes;
  for (size_t i = 0; i < sections_.size(); ++i) {
    const Section& section = sections_[i];
    const int64_t at = kContainerHeaderBytes + static_cast<int64_t>(i) * kSectionEntryBytes;
    const auto fail = [&](std::string_view reason) {
      throw_corrupt(path_, at, fmt::format("section '{}': {}", section.name, reason));
    };
    if (section.bytes != section_bytes(section.type, section.shape)) fail("its bytes are not those of its shape");
    if (section.offset != next_section_offset(end)) fail("it does not begin where it should");
    if (section.offset > file_.size || section.bytes > file_.size - section.offset)
      fail("it is not inside of the file");
    std::array<std::byte, kSectionAlignment> zeros;
    fetch(end, zeros.data(), section.offset - end);
    for (int64_t k = 0; k < section.offset - end; ++k) {
      if (zeros[static_cast<size_t>(k)] != std::byte{0}) {
        throw_corrupt(path_, end + k, fmt::format("before section '{}': there must be zeros", section.name));
      }
    }
    end = section.offset + section.bytes;
  }
  if (end != file_.size) throw_corrupt(path_, end, "bytes follow the last section");
}

const Section* ContainerFile::find(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const auto& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

void ContainerFile::read(const Section& section, void* out, const Resources& resources) const {
  auto* to = static_cast<std::byte*>(out);
  Xxh3 hash;
  for (int64_t done = 0; done < section.bytes;) {
    resources.check_cancelled();
    const int64_t bytes = std::min(kHashedStep, section.bytes - done);
    fetch(section.offset + done, to + done, bytes);
    hash.update({to + done, static_cast<size_t>(bytes)});
    done += bytes;
  }
  verify(section, hash.digest());
}

void ContainerFile::read_part(const Section& section, int64_t first, void* out, int64_t bytes) const {
  fetch(section.offset + first, out, bytes);
}

void ContainerFile::verify(const Section& section, uint64_t hash) const {
  if (!matches_section_hash(hash, section.hash)) corrupt(section, "its bytes are damaged: their hash differs");
}

void ContainerFile::corrupt(const Section& section, std::string_view reason) const {
  throw_corrupt(path_, section.offset, fmt::format("section '{}': {}", section.name, reason));
}

void ContainerFile::corrupt(std::string_view reason) const { throw_corrupt(path_, 0, reason); }

namespace {

constexpr size_t kWrittenStep = size_t{1} << 20;  // bytes between two looks at whether the caller cancelled

template <typename Use>
void in_steps(ContainerWriter::Piece piece, const Resources& resources, const Use& use) {
  while (!piece.empty()) {
    resources.check_cancelled();
    const size_t bytes = std::min(piece.size(), kWrittenStep);
    use(piece.first(bytes));
    piece = piece.subspan(bytes);
  }
}

class HeadBytes {
 public:
  void text(std::string_view text, size_t width) {
    const size_t at = grow(width);
    std::memcpy(&bytes_[at], text.data(), text.size());
  }
  template <typename T>
  void number(T value) {
    const size_t at = grow(sizeof(value));
    std::memcpy(&bytes_[at], &value, sizeof(value));  // little-endian, as all machines that Kith runs on
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  size_t grow(size_t by) {
    const size_t at = bytes_.size();
    bytes_.resize(at + by);
    return at;
  }
  std::vector<std::byte> bytes_;
};

}  // namespace

ContainerWriter::ContainerWriter(std::string_view kind, uint32_t version) : kind_(kind), version_(version) {
  if (!is_section_name(kind) || kind.size() > kContainerKindBytes) {
    throw InvalidArgument(fmt::format("'{}' cannot be the kind of a .kith file", kind));
  }
}

void ContainerWriter::add(std::string_view name, SectionType type, std::vector<int64_t> shape,
                          std::vector<Piece> pieces) {
  Section section{std::string(name), type, std::move(shape)};
  section.bytes = section_bytes(type, section.shape);
  const auto produced = produced_.find(name);
  const bool given_elsewhere = produced != produced_.end();
  int64_t given = 0;
  for (const Piece& piece : pieces) given += static_cast<int64_t>(piece.size());
  const bool named = is_section_name(name) && name.size() <= kSectionNameBytes;
  if (!named || section.shape.size() > kMostAxes || (!given_elsewhere && given != section.bytes)) {
    throw InvalidArgument(
        fmt::format("'{}' cannot be a section: {} bytes for {} of its shape", name, given, section.bytes));
  }
  sources_.push_back({std::move(section), std::move(pieces), given_elsewhere ? produced->second : Produce()});
}

void ContainerWriter::place_sections() {
  file_bytes_ = kContainerHeaderBytes + static_cast<int64_t>(sources_.size()) * kSectionEntryBytes;
  for (Source& source : sources_) {
    source.section.offset = next_section_offset(file_bytes_);
    file_bytes_ = source.section.offset + source.section.bytes;
  }
}

std::vector<std::byte> ContainerWriter::head() const {
  HeadBytes head;
  head.text(kContainerMagic, kContainerMagic.size());
  head.number(version_);
  head.number(static_cast<uint32_t>(sources_.size()));
  head.number(file_bytes_);
  head.number(uint64_t{0});
  head.text(kind_, kContainerKindBytes);
  head.number(uint64_t{0});
  for (const Source& source : sources_) {
    const Section& section = source.section;
    head.text(section.name, kSectionNameBytes);
    head.number(static_cast<uint32_t>(section.type));
    head.number(static_cast<uint32_t>(section.shape.size()));
    for (size_t i = 0; i < kMostAxes; ++i) head.number(i < section.shape.size() ? section.shape[i] : int64_t{0});
    head.number(section.offset);
    head.number(section.bytes);
    head.number(section.hash);
  }
  // The hash is of header and table without itself; it stands between the two.
  const uint64_t hash = xxh3(head.bytes());
  const auto* const bytes = reinterpret_cast<const std::byte*>(&hash);
  constexpr int64_t kHashAt = kContainerHeaderBytes - static_cast<int64_t>(sizeof(hash));
  head.bytes().insert(head.bytes().begin() + kHashAt, bytes, bytes + sizeof(hash));
  return std::move(head.bytes());
}

// write(offset, data, bytes): one piece behind the other, and at the end the head in front.
template <typename Write>
void ContainerWriter::write_sections(const Write& write, const Resources& resources) {
  constexpr std::array<std::byte, kSectionAlignment> kZeros{};
  place_sections();
  const std::vector<std::byte> room = head();
  write(0, room.data(), static_cast<int64_t>(room.size()));
  auto at = static_cast<int64_t>(room.size());
  for (Source& source : sources_) {
    Section& section = source.section;
    write(at, kZeros.data(), section.offset - at);
    Xxh3 hash;
    int64_t written = 0;
    const auto put = [&](Piece piece) {
      in_steps(piece, resources, [&](Piece step) {
        hash.update(step);
        write(section.offset + written, step.data(), static_cast<int64_t>(step.size()));
        written += static_cast<int64_t>(step.size());
      });
    };
    if (source.produce) {
      source.produce(put);
    } else {
      for (const Piece& piece : source.pieces) put(piece);
    }
    if (written != section.bytes) {
      throw InvalidState(
          fmt::format("section '{}' was given {} bytes, and has {}", section.name, written, section.bytes));
    }
    section.hash = hash.digest();
    at = section.offset + section.bytes;
  }
  const std::vector<std::byte> first = head();
  write(0, first.data(), static_cast<int64_t>(first.size()));
}

void ContainerWriter::write_sections(AtomicFileWriter& file, const Resources& resources) {
  int64_t end = 0;
  const auto write = [&](int64_t offset, const void* data, int64_t bytes) {
    if (offset == end) {
      file.write(data, bytes);
      end += bytes;
    } else {
      file.overwrite(offset, data, bytes);
    }
  };
  write_sections(write, resources);
}

int64_t ContainerWriter::file_bytes() {
  place_sections();
  return file_bytes_;
}

uint64_t ContainerWriter::write_to(DiskFile& file, const Resources& resources) {
  write_sections([&](int64_t offset, const void* data, int64_t bytes) { file.write(offset, data, bytes); }, resources);
  const std::vector<std::byte> written = head();
  uint64_t hash = 0;
  std::memcpy(&hash, &written[kHashAt], sizeof(hash));
  return hash;
}

void ContainerWriter::write(const std::string& path, const Resources& resources) {
  AtomicFileWriter file(path);
  write_sections(file, resources);
  file.commit();
}

void ContainerWriter::write_unsynced(const std::string& path, const Resources& resources) {
  AtomicFileWriter file(path);
  write_sections(file, resources);
  file.commit_unsynced();
}

}  // namespace kith
