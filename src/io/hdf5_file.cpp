// Why not libhdf5: it crashes on hostile files, and a crash inside of it cannot become an error of ours. One such file
// is kept as tests/fuzz/corpus/hdf5/crashes_libhdf5: a dataset of 6 x 4 int32 in chunks of 4 x 3 with the filter
// scale-offset. One bit of the filter's message is flipped, so that a chunk has 8,388,620 elements instead of 12.
// libhdf5 2.0.0 (in h5py 3.16) unpacks that many from a few bytes and ends with SIGSEGV. In a sample of 13,440 files,
// each of that corpus with one byte changed, it crashed on two; the other was a virtual dataset, where opening was
// enough. Here the first is Unsupported, as the second is, and known filters are held to the size of the chunk.
//
// The reader is to grow no further: what it does not read h5repack turns into what it does.
#include "io/formats.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/hdf5/group.hpp"
#include "io/hdf5/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace kith {
namespace {

// The superblock, with which an HDF5 file begins: at byte 0, or behind a block of the user's own at 512, 1024, 2048,
// ... Versions 0 to 3.

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr std::string_view kSuperblock = "the superblock";
constexpr int64_t kFirstPlaceBehind0 = 512;
constexpr int64_t kMostBytes = 8 + 20 + 6 * 8;  // more than any version needs up to the root group's address

int64_t locate(const Hdf5Source& source) {
  const auto signature_bytes = static_cast<int64_t>(kSignature.size());
  for (int64_t at = 0; at <= source.size - signature_bytes; at = at == 0 ? kFirstPlaceBehind0 : 2 * at) {
    const Hdf5Block block = source.read(at, signature_bytes, kSuperblock);
    if (Hdf5Cursor(source, block, kSuperblock).accept(kSignature)) return at;
  }
  source.corrupt(0, "not an HDF5 file: its signature is neither at the beginning nor at byte 512, 1024, 2048, ...");
}

void check_width(const Hdf5Source& source, int64_t at, int64_t bytes) {
  if (bytes != 2 && bytes != 4 && bytes != 8) {
    source.corrupt(at, fmt::format("addresses or lengths of {} bytes; known are 2, 4 and 8", bytes));
  }
}

// Where the file should end, counted from its beginning. The stored address counts from the beginning too, as it was
// when the file was made: a block of the user's that was added or taken away since has moved everything.
void check_end(const Hdf5Source& source, int64_t stored_base, int64_t stored_end, int64_t at) {
  if (stored_end < stored_base) source.corrupt(at, "the end of the file is said to be before its beginning");
  const int64_t bytes = stored_end - stored_base;
  if (bytes <= source.size - source.base) return;
  source.corrupt(source.size, fmt::format("the file ends here, but its superblock promises {} bytes more; it is "
                                          "truncated",
                                          bytes - (source.size - source.base)));
}

// Fills in what `source` lacks, base and widths, and returns where the header of the root group is.
int64_t read_superblock(Hdf5Source& source) {
  source.base = locate(source);
  const int64_t bytes = std::min(kMostBytes, source.size - source.base);
  Hdf5Block block = source.read(source.base, bytes, kSuperblock);
  Hdf5Cursor cursor(source, block, kSuperblock);
  cursor.expect(kSignature);
  const int64_t version_at = cursor.at();
  const int64_t version = cursor.u8();
  if (version > 3) source.unsupported(version_at, fmt::format("superblock version {}; known are 0 to 3", version));
  const bool old = version < 2;
  if (old) cursor.skip(4);  // versions of other parts, which had no other yet
  const int64_t widths_at = cursor.at();
  source.offset_bytes = cursor.u8();
  source.length_bytes = cursor.u8();
  check_width(source, widths_at, source.offset_bytes);
  check_width(source, widths_at + 1, source.length_bytes);
  if (old) {
    cursor.skip(1 + 2 + 2 + 4);             // widths of tree nodes, which say themselves how full they are; flags
    cursor.skip(version == 1 ? 2 + 2 : 0);  // the same for chunks
  } else {
    cursor.skip(1);
    block.bytes.resize(static_cast<size_t>(std::min(cursor.at() - block.at + 4 * source.offset_bytes + 4, bytes)));
    Hdf5Cursor(source, block, kSuperblock).verify_checksum();
  }
  const int64_t stored_base = cursor.number(source.offset_bytes);
  cursor.skip(source.offset_bytes);  // of free space, or of the superblock's extension
  const int64_t end_at = cursor.at();
  check_end(source, stored_base, cursor.number(source.offset_bytes), end_at);
  if (old) cursor.skip(source.offset_bytes + source.length_bytes);  // of the driver's block; the root's name
  const int64_t root_at = cursor.at();
  const int64_t root = cursor.address();
  if (root == kHdf5Nowhere) source.corrupt(root_at, "the file has no root group");
  return root;
}

// The values of a dataset that is stored in chunks, or not at all.
//
// A request goes through the chunks that it touches, rows of chunks one after the other, and unpacks each once. Since
// one may ask for a few rows at a time, the chunks of the last row stay: up to 16 MiB of them, or one if it is larger.
// With one more buffer, for the filters, this is all the memory it takes. Requests of several threads wait for each
// other.

constexpr int64_t kMostKeptBytes = int64_t{16} << 20;

using Pair = std::array<int64_t, 2>;  // rows and columns

// The chunks used last, unpacked; the latest first. As many as one row of values passes through: rows are asked for in
// their order, and what is above them is not needed again.
class ChunkCache {
 public:
  ChunkCache(int64_t chunks_in_a_row, int64_t buffer_bytes)
      : most_(std::clamp<int64_t>(kMostKeptBytes / buffer_bytes, 1, chunks_in_a_row)) {}

  int64_t most() const { return most_; }

  // Valid until the next call; null where it is not here.
  const std::byte* find(Pair place) {
    const auto found = by_place_.find(place);
    if (found == by_place_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found->second);
    return found->second->values.data();
  }

  // For one more, before its memory is taken.
  void make_room() {
    while (static_cast<int64_t>(kept_.size()) >= most_) {
      by_place_.erase(kept_.back().place);
      kept_.pop_back();
    }
  }

  const std::byte* keep(Pair place, HostBuffer values) {
    kept_.push_front({place, std::move(values)});
    by_place_[place] = kept_.begin();
    return kept_.front().values.data();
  }

  void clear() {
    by_place_.clear();
    kept_.clear();
  }

 private:
  struct Entry {
    Pair place;
    HostBuffer values;
  };
  int64_t most_;
  std::list<Entry> kept_;
  std::map<Pair, std::list<Entry>::iterator> by_place_;
};

class ChunkedValues final : public ValueReader {
 public:
  ChunkedValues(Hdf5Source source, Hdf5Dataset dataset)
      : source_(std::move(source)),
        dataset_(std::move(dataset)),
        buffer_bytes_(hdf5_buffer_bytes(dataset_.chunking.chunk_bytes)),
        cache_(chunks_in_a_row(), buffer_bytes_),
        budget_(Resources().with_budgets(std::make_shared<MemoryBudget>("host", memory_bytes()), nullptr)) {}

  // As the rest of a row, whole rows, and the beginning of one.
  void read(int64_t first, int64_t count, void* out) const override {
    auto* to = static_cast<std::byte*>(out);
    if (count == 0) return;
    if (dataset_.storage == Hdf5Storage::none) return fill(to, count);
    const std::lock_guard lock(mutex_);
    const int64_t cols = dataset_.layout.cols;
    while (count > 0) {
      const int64_t col = first % cols;
      const bool whole_rows = col == 0 && count >= cols;
      const Pair size{whole_rows ? count / cols : 1, whole_rows ? cols : std::min(count, cols - col)};
      read_block({first / cols, col}, size, to);
      const int64_t values = size[0] * size[1];
      first += values;
      count -= values;
      to += values * element_bytes();
    }
  }

  int64_t memory_bytes() const override {
    if (dataset_.storage != Hdf5Storage::chunked) return 0;
    return (cache_.most() + (dataset_.filters.empty() ? 0 : 1)) * buffer_bytes_;
  }
  void free_memory() const override {
    const std::lock_guard lock(mutex_);
    cache_.clear();
  }

 private:
  int64_t element_bytes() const { return dataset_.layout.element_bytes(); }
  int64_t chunks_in_a_row() const {
    return dataset_.storage == Hdf5Storage::chunked ? dataset_.chunking.chunks_along(1) : 1;
  }

  // Writes one fill value, then doubles what is written until the block is full.
  void fill(std::byte* to, int64_t count) const {
    const int64_t bytes = element_bytes();
    std::memcpy(to, dataset_.fill.data(), static_cast<size_t>(bytes));
    for (int64_t done = 1; done < count;) {
      const int64_t part = std::min(done, count - done);
      std::memcpy(to + done * bytes, to, static_cast<size_t>(part * bytes));
      done += part;
    }
  }

  void read_block(Pair from, Pair size, std::byte* out) const {
    const Pair chunk = dataset_.chunking.chunk;
    const int64_t row_end = from[0] + size[0];
    const int64_t col_end = from[1] + size[1];
    for (int64_t row = from[0]; row < row_end;) {
      const int64_t rows = std::min(chunk[0] - row % chunk[0], row_end - row);
      for (int64_t col = from[1]; col < col_end;) {
        const int64_t cols = std::min(chunk[1] - col % chunk[1], col_end - col);
        std::byte* const to = out + ((row - from[0]) * size[1] + col - from[1]) * element_bytes();
        copy_from_chunk({row, col}, {rows, cols}, to, size[1]);
        col += cols;
      }
      row += rows;
    }
  }

  // A part of one chunk, to rows that are `stride` values apart.
  void copy_from_chunk(Pair from, Pair size, std::byte* to, int64_t stride) const {
    const Pair chunk = dataset_.chunking.chunk;
    const std::byte* const values = chunk_at({from[0] / chunk[0], from[1] / chunk[1]});
    const int64_t bytes = element_bytes();
    for (int64_t i = 0; i < size[0]; ++i, to += stride * bytes) {
      if (values == nullptr) {
        fill(to, size[1]);
        continue;
      }
      const int64_t offset = (from[0] % chunk[0] + i) * chunk[1] + from[1] % chunk[1];
      std::memcpy(to, values + offset * bytes, static_cast<size_t>(size[1] * bytes));
    }
  }

  // Null where the chunk was never written.
  const std::byte* chunk_at(Pair place) const {
    if (const std::byte* const kept = cache_.find(place)) return kept;
    const Hdf5Chunk stored = find_chunk(source_, index_blocks_, dataset_.chunking, place);
    if (stored.at == kHdf5Nowhere) return nullptr;
    cache_.make_room();
    return cache_.keep(place, read_chunk(source_, stored, dataset_.filters, dataset_.chunking.chunk_bytes, budget_));
  }

  Hdf5Source source_;
  Hdf5Dataset dataset_;
  int64_t buffer_bytes_;
  mutable std::mutex mutex_;
  mutable Hdf5BlockCache index_blocks_;
  mutable ChunkCache cache_;
  Resources budget_;  // its own, of memory_bytes(): callers take as much from theirs
};

Hdf5ObjectHeader find_dataset(const Hdf5Source& source, const FileName& name, int64_t root_at) {
  std::optional<Hdf5ObjectHeader> found = find_object(source, root_at, name.dataset);
  if (!found) {
    throw InvalidArgument(fmt::format("'{}' has no dataset '{}'; it holds: {}. Name one as {}::DATASET", name.file,
                                      name.dataset, list_links(source, root_at), name.file));
  }
  if (!is_hdf5_dataset(*found)) {
    throw InvalidArgument(fmt::format("'{}' is not a dataset but {}", name.path,
                                      is_hdf5_group(*found) ? "a group" : "something else, a type perhaps"));
  }
  return std::move(*found);
}

}  // namespace

OpenedMatrix open_hdf5(OpenedFile opened, const FileName& name) {
  Hdf5Source source{std::move(opened.file), name.path, opened.size};
  const int64_t root_at = read_superblock(source);
  Hdf5Dataset dataset = parse_dataset(source, find_dataset(source, name, root_at));
  const FileLayout layout = dataset.layout;
  if (dataset.storage == Hdf5Storage::plain || layout.rows == 0) {
    return {layout, std::make_unique<PlainValues>(std::move(source.file), layout, name.path)};
  }
  return {layout, std::make_unique<ChunkedValues>(std::move(source), std::move(dataset))};
}

namespace {

constexpr std::string_view kRemedy = "choose another file name, or remove the file first";

bool has_attributes(const Hdf5Source& source, const Hdf5ObjectHeader& header) {
  if (header.find(Hdf5MessageType::attribute) != nullptr) return true;
  const Hdf5Message* const info = header.find(Hdf5MessageType::attribute_info);
  if (info == nullptr) return false;
  constexpr int64_t kOrderIsTracked = 0x01;
  Hdf5Cursor cursor(source, info->content, info->at, "an attribute info message");
  cursor.skip(1);
  cursor.skip((cursor.u8() & kOrderIsTracked) != 0 ? 2 : 0);
  return cursor.address() != kHdf5Nowhere;
}

[[noreturn]] void throw_unreadable(const FileName& name, std::string_view reason) {
  throw InvalidArgument(
      fmt::format("'{}' already exists and cannot be read as HDF5, so what would be lost is unknown; {} ({})",
                  name.file, kRemedy, reason));
}

// Each group on the way holds the next step and nothing else, and the last step is a dataset; or the way ends early, in
// a group that holds nothing.
bool holds_only(const Hdf5Source& source, int64_t root_at, const std::vector<std::string>& steps) {
  Hdf5ObjectHeader here = read_object_header(source, root_at);
  for (const std::string& step : steps) {
    if (!is_hdf5_group(here) || has_attributes(source, here)) return false;
    const size_t links = link_names(source, here, 2).size();
    if (links == 0) return true;
    const std::optional<Hdf5Link> link = find_link(source, here, step);
    if (links > 1 || !link || link->kind != Hdf5LinkKind::hard) return false;
    here = read_object_header(source, link->header_at);
  }
  return is_hdf5_dataset(here);
}

}  // namespace

void check_hdf5_target(const FileName& name) {
  std::error_code ignored;  // what cannot be looked at is the writer's to refuse
  if (!std::filesystem::is_regular_file(name.file, ignored)) return;
  OpenedFile opened = open_for_reading(name.file);
  if (opened.size == 0) return;
  std::string held;
  try {
    Hdf5Source source{std::move(opened.file), name.file, opened.size};
    const int64_t root_at = read_superblock(source);
    if (holds_only(source, root_at, dataset_steps(name))) return;
    held = list_links(source, root_at);
    if (has_attributes(source, read_object_header(source, root_at))) held += ", and attributes";
  } catch (const CorruptFile& error) {
    throw_unreadable(name, error.what());
  } catch (const Unsupported& error) {
    throw_unreadable(name, error.what());
  }
  throw InvalidArgument(
      fmt::format("'{}' already exists and holds: {}; writing '{}' would replace all of it by this one dataset; {}",
                  name.file, held, name.dataset, kRemedy));
}

}  // namespace kith
