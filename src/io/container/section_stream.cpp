#include "io/container/section_stream.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace kith {

SectionStream::SectionStream(const ContainerFile& file, const Section& section, int64_t buffer_bytes,
                             const Resources& resources)
    : file_(file),
      section_(section),
      buffer_(std::min(buffer_bytes, section.bytes), "what is read from a file at a time", resources) {}

void SectionStream::fill() {
  const int64_t bytes = std::min(buffer_.size(), section_.bytes - fetched_);
  if (bytes == 0) file_.corrupt(section_, "it ends before what it should hold");
  file_.read_part(section_, fetched_, buffer_.data(), bytes);
  hash_.update(std::span<const std::byte>(buffer_.data(), static_cast<size_t>(bytes)));
  fetched_ += bytes;
  begin_ = 0;
  end_ = bytes;
  if (fetched_ == section_.bytes) file_.verify(section_, hash_.digest());
}

void SectionStream::read(void* out, int64_t bytes) {
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    if (begin_ == end_) fill();
    const int64_t some = std::min(bytes, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, static_cast<size_t>(some));
    begin_ += some;
    to += some;
    bytes -= some;
  }
}

}  // namespace kith
