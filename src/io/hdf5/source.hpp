// The bytes of an HDF5 file, and how its numbers are taken from them.
//
// Nothing in such a file can be trusted: every block is asked for by place and length, checked against the end of the
// file before it is read, and every number is taken through a cursor that cannot leave its block. An address becomes a
// place in the file where it is read, or an error there. Blocks of metadata are small; one of more than a MiB is
// refused, so that no file can ask for much memory.
#pragma once

#include "io/posix_file.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// An address that leads nowhere: what it should lead to was never made.
inline constexpr int64_t kHdf5Nowhere = -1;

inline constexpr int64_t kHdf5LargestBlock = int64_t{1} << 20;

struct Hdf5Block {
  std::vector<std::byte> bytes;
  int64_t at = 0;  // its place in the file
};

// The file, with what the superblock says about all that follows.
struct Hdf5Source {
  FileDescriptor file;
  std::string path;  // for errors
  int64_t size = 0;
  int64_t base = 0;  // what addresses are relative to
  int64_t offset_bytes = 8;
  int64_t length_bytes = 8;

  // `what` is named where the file ends inside of it.
  Hdf5Block read(int64_t at, int64_t bytes, std::string_view what) const;
  // Throws CorruptFile unless so many bytes from there on are inside of the file.
  void check_inside(int64_t at, int64_t bytes, std::string_view what) const;

  [[noreturn]] void corrupt(int64_t at, std::string_view reason) const;
  [[noreturn]] void refused(int64_t at, std::string_view reason) const;
  [[noreturn]] void unsupported(int64_t at, std::string_view reason) const;
};

// Takes numbers, all little-endian, from bytes that outlive it.
class Hdf5Cursor {
 public:
  Hdf5Cursor(const Hdf5Source& source, std::span<const std::byte> bytes, int64_t at, std::string_view what)
      : source_(&source), bytes_(bytes), at_(at), what_(what) {}
  Hdf5Cursor(const Hdf5Source& source, const Hdf5Block& block, std::string_view what)
      : Hdf5Cursor(source, block.bytes, block.at, what) {}

  // The place in the file of what comes next.
  int64_t at() const { return at_ + static_cast<int64_t>(next_); }
  int64_t left() const { return static_cast<int64_t>(bytes_.size() - next_); }

  // Throws CorruptFile where fewer are left.
  std::span<const std::byte> take(int64_t bytes);
  std::string_view text(int64_t bytes);
  void skip(int64_t bytes) { take(bytes); }
  bool accept(std::string_view signature);
  void expect(std::string_view signature);

  // A number of 0 to 8 bytes; larger than int64_t becomes its largest.
  int64_t number(int64_t bytes);
  int64_t u8() { return number(1); }
  int64_t u16() { return number(2); }
  int64_t u32() { return number(4); }
  int64_t length() { return number(source_->length_bytes); }
  // A place inside the file, or kHdf5Nowhere.
  int64_t address();

  // Takes the checksum that ends the bytes and compares it with what stands before. The cursor must be at the start.
  void verify_checksum();

 private:
  const Hdf5Source* source_;
  std::span<const std::byte> bytes_;
  int64_t at_;
  std::string_view what_;
  size_t next_ = 0;
};

// The blocks of metadata that were read last. Neighbouring chunks are found through the same blocks of an index: each
// is then read once, and its checksum verified once.
class Hdf5BlockCache {
 public:
  // Valid until as many others as are kept were asked for.
  const Hdf5Block& read(const Hdf5Source& source, int64_t at, int64_t bytes, std::string_view what) {
    return find(source, at, bytes, what, false);
  }
  // A block whose last four bytes are its checksum, which is verified and left out.
  const Hdf5Block& read_checked(const Hdf5Source& source, int64_t at, int64_t bytes, std::string_view what) {
    return find(source, at, bytes, what, true);
  }

 private:
  static constexpr size_t kMostKept = 8;

  struct Entry {
    int64_t bytes;
    Hdf5Block block;
  };
  const Hdf5Block& find(const Hdf5Source& source, int64_t at, int64_t bytes, std::string_view what, bool checked);

  std::list<Entry> kept_;  // the latest first
};

// Logarithm of a power of two; else rounded down.
inline int64_t hdf5_log2(int64_t value) {
  return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(value))) - 1;
}

}  // namespace kith
