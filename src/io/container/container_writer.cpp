#include "io/container/container_writer.hpp"

#include <kith/error.hpp>

#include "io/atomic_file_writer.hpp"
#include "io/container/xxh3.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr size_t kWrittenStep = size_t{16} << 20;  // bytes between two looks at whether the caller cancelled

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
  int64_t given = 0;
  for (const Piece& piece : pieces) given += static_cast<int64_t>(piece.size());
  const bool named = is_section_name(name) && name.size() <= kSectionNameBytes;
  if (!named || section.shape.size() > kMostAxes || given != section.bytes) {
    throw InvalidArgument(
        fmt::format("'{}' cannot be a section: {} bytes for {} of its shape", name, given, section.bytes));
  }
  sources_.push_back({std::move(section), std::move(pieces)});
}

void ContainerWriter::place_sections(const Resources& resources) {
  file_bytes_ = kContainerHeaderBytes + static_cast<int64_t>(sources_.size()) * kSectionEntryBytes;
  for (auto& [section, pieces] : sources_) {
    section.offset = next_section_offset(file_bytes_);
    file_bytes_ = section.offset + section.bytes;
    Xxh3 hash;
    for (const Piece& piece : pieces) {
      in_steps(piece, resources, [&](Piece step) { hash.update(step); });
    }
    section.hash = hash.digest();
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
  for (const auto& [section, pieces] : sources_) {
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

void ContainerWriter::write(const std::string& path, const Resources& resources) {
  place_sections(resources);
  AtomicFileWriter file(path);
  const std::vector<std::byte> first = head();
  file.write(first.data(), static_cast<int64_t>(first.size()));
  int64_t at = static_cast<int64_t>(first.size());
  constexpr std::array<std::byte, kSectionAlignment> kZeros{};
  for (const auto& [section, pieces] : sources_) {
    file.write(kZeros.data(), section.offset - at);
    for (const Piece& piece : pieces) {
      in_steps(piece, resources, [&](Piece step) { file.write(step.data(), static_cast<int64_t>(step.size())); });
    }
    at = section.offset + section.bytes;
  }
  file.commit();
}

}  // namespace kith
