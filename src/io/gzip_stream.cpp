#include "io/gzip_stream.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace kith {
namespace {

constexpr int kGzipOnly = 15 + 16;  // the largest window, and a gzip header before it

}  // namespace

struct GzipStream::Impl {
  Impl(FileDescriptor opened, std::string name) : file(std::move(opened)), path(std::move(name)) {
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw OutOfMemory("zlib could not start: out of memory", 0);
  }
  ~Impl() { inflateEnd(&stream); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int64_t offset() const { return next_offset - stream.avail_in; }

  // Whether there was more of the file.
  bool refill() {
    ssize_t got = 0;
    do {
      got = ::pread(file.get(), input.data(), input.size(), next_offset);
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw_io_error(fmt::format("read byte {} of", next_offset), path, errno);
    stream.next_in = input.data();
    stream.avail_in = static_cast<uInt>(got);
    next_offset += got;
    return got > 0;
  }

  // One call of inflate into `room` bytes; returns how many it made. Sets `ended` where the content is complete.
  int64_t step(Bytef* out, uInt room) {
    if (stream.avail_in == 0 && !refill()) {
      if (!between_members) throw_corrupt(path, offset(), "the compressed content ends here, before it is complete");
      ended = true;
      return 0;
    }
    stream.next_out = out;
    stream.avail_out = room;
    const bool first = between_members;
    between_members = false;
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      between_members = true;
      inflateReset(&stream);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      const char* reason = stream.msg != nullptr ? stream.msg : first ? "no gzip header" : "not as gzip writes it";
      throw_corrupt(path, offset(), fmt::format("the compressed content is damaged: {}", reason));
    }
    const int64_t made = room - stream.avail_out;
    position += made;  // here, so that an error in a later step leaves it right
    return made;
  }

  FileDescriptor file;
  std::string path;
  z_stream stream{};
  std::array<Bytef, 64 * 1024> input;
  int64_t next_offset = 0;      // of the file, behind what `input` holds
  int64_t position = 0;         // of the content
  bool between_members = true;  // the next byte begins a member; at the start of the file too
  bool ended = false;
};

GzipStream::GzipStream(FileDescriptor file, std::string path)
    : impl_(std::make_unique<Impl>(std::move(file), std::move(path))) {}
GzipStream::~GzipStream() = default;

int64_t GzipStream::position() const { return impl_->position; }
int64_t GzipStream::file_offset() const { return impl_->offset(); }

void GzipStream::restart() {
  inflateReset(&impl_->stream);
  impl_->stream.avail_in = 0;
  impl_->next_offset = 0;
  impl_->position = 0;
  impl_->between_members = true;
  impl_->ended = false;
}

int64_t GzipStream::read(void* out, int64_t bytes) {
  auto* to = static_cast<Bytef*>(out);
  int64_t done = 0;
  while (done < bytes && !impl_->ended) {
    const int64_t room = std::min<int64_t>(bytes - done, INT_MAX);
    done += impl_->step(to + done, static_cast<uInt>(room));
  }
  return done;
}

int64_t inflate_block(std::span<const std::byte> packed, std::span<std::byte> out) {
  if (packed.size() > UINT_MAX || out.size() > UINT_MAX) return -1;
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw OutOfMemory("zlib could not start: out of memory", 0);
  // zlib has no const here, and does not write.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const auto left = static_cast<int64_t>(stream.avail_out);
  inflateEnd(&stream);
  return result == Z_STREAM_END ? static_cast<int64_t>(out.size()) - left : -1;
}

}  // namespace kith
