#include "io/hdf5/fractal_heap.hpp"
#include "io/hdf5/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace kith {
namespace {

constexpr std::string_view kHeapHeader = "the header of a fractal heap";
constexpr std::string_view kTable = "a table of a fractal heap's blocks";
constexpr std::string_view kBlock = "a block of a fractal heap";
constexpr int64_t kMostHeapLevels = 16;

int64_t log2_of(int64_t power) { return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(power))) - 1; }
bool is_power_of_2(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

}  // namespace

Hdf5FractalHeap::Hdf5FractalHeap(const Hdf5Source& source, int64_t at) : source_(source), at_(at) {
  const int64_t o = source.offset_bytes;
  const int64_t l = source.length_bytes;
  const Hdf5Block block = source.read(at, 22 + 12 * l + 3 * o + kChecksumBytes, kHeapHeader);
  Hdf5Cursor cursor(source, block, kHeapHeader);
  Hdf5Cursor filters(source, block, kHeapHeader);
  filters.skip(7);
  if (filters.u16() != 0) source.unsupported(at, "the links of a group are compressed; rewrite the file with h5repack");
  cursor.verify_checksum();
  cursor.expect("FRHP");
  cursor.skip(1);
  id_bytes_ = cursor.u16();
  cursor.skip(2 + 1);
  const int64_t most_object_bytes = cursor.u32();
  cursor.skip(l + o + l + o + 8 * l);  // huge objects, free space, and counts
  table_width_ = cursor.u16();
  first_block_bytes_ = cursor.length();
  most_direct_bytes_ = cursor.length();
  const int64_t heap_bits = cursor.u16();
  cursor.skip(2);
  root_at_ = cursor.address();
  root_rows_ = cursor.u16();
  if (!is_power_of_2(table_width_) || !is_power_of_2(first_block_bytes_) || !is_power_of_2(most_direct_bytes_) ||
      first_block_bytes_ > most_direct_bytes_ || most_direct_bytes_ > kHdf5LargestBlock || heap_bits < 1 ||
      heap_bits > 62 || most_object_bytes < 1) {
    source.corrupt(at, "the sizes of the heap of a group's links are impossible");
  }
  offset_width_ = (heap_bits + 7) / 8;
  length_width_ = std::min((log2_of(most_direct_bytes_) + 7) / 8, log2_of(most_object_bytes) / 8 + 1);
}

Hdf5Block Hdf5FractalHeap::read(Hdf5Cursor id) const {
  const int64_t kind_at = id.at();
  if (const int64_t kind = id.u8() >> 4; kind != 0) {
    source_.unsupported(kind_at, fmt::format("an object of kind {} in the heap of a group's links", kind));
  }
  const int64_t offset = id.number(offset_width_);
  const int64_t bytes = id.number(length_width_);
  const Place place = locate(offset);
  if (bytes > place.block_bytes - place.offset) source_.corrupt(kind_at, "an object of a heap leaves its block");
  return source_.read(place.block_at + place.offset, bytes, kBlock);
}

// The first two rows have blocks of the first size, each other twice that of the row before.
int64_t Hdf5FractalHeap::row_bytes(int64_t row) const {
  const int64_t doublings = row == 0 ? 0 : row - 1;
  const bool countable = doublings + log2_of(first_block_bytes_) + log2_of(table_width_) <= 61;
  const int64_t bytes = countable ? first_block_bytes_ << doublings : 0;
  if (bytes <= 0) source_.corrupt(at_, "a heap has more rows of blocks than can be counted");
  return bytes;
}

Hdf5FractalHeap::Place Hdf5FractalHeap::locate(int64_t offset) const {
  int64_t at = root_at_;
  int64_t rows = root_rows_;
  if (rows == 0) {
    if (at == kHdf5Nowhere || offset >= first_block_bytes_) source_.corrupt(at_, "an object is outside its heap");
    source_.check_inside(at, first_block_bytes_, kBlock);
    return {at, first_block_bytes_, offset};
  }
  const int64_t direct_rows = log2_of(most_direct_bytes_) - log2_of(first_block_bytes_) + 2;
  const int64_t first_row = table_width_ * row_bytes(0);
  if (first_row <= 0) source_.corrupt(at_, "a heap has rows of no blocks");
  for (int64_t level = 0; level < kMostHeapLevels; ++level) {
    const int64_t row = offset < first_row ? 0 : log2_of(offset / first_row) + 1;
    if (at == kHdf5Nowhere || row >= rows) source_.corrupt(at_, "an object is outside its heap");
    const int64_t bytes = row_bytes(row);
    const int64_t row_begin = row == 0 ? 0 : bytes * table_width_;
    const int64_t entry = row * table_width_ + (offset - row_begin) / bytes;

    const int64_t prefix = 5 + source_.offset_bytes + offset_width_;
    const int64_t table_bytes = prefix + rows * table_width_ * source_.offset_bytes + kChecksumBytes;
    const Hdf5Block block = source_.read(at, table_bytes, kTable);
    Hdf5Cursor cursor(source_, block, kTable);
    cursor.verify_checksum();
    cursor.expect("FHIB");
    cursor.skip(prefix - 4 + entry * source_.offset_bytes);
    at = cursor.address();
    offset = (offset - row_begin) % bytes;
    if (row < direct_rows) {
      if (at == kHdf5Nowhere) source_.corrupt(at_, "an object is outside its heap");
      source_.check_inside(at, bytes, kBlock);
      return {at, bytes, offset};
    }
    // A table below has as many rows as make up the size of its entry.
    rows = log2_of(bytes) - log2_of(first_row) + 1;
  }
  source_.corrupt(at_, "the tables of a heap lead in a circle");
}

}  // namespace kith
