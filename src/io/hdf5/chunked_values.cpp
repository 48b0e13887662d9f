#include "io/hdf5/chunked_values.hpp"

#include "core/memory_budget.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace kith {
namespace {

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

  // At least one value, then what is there already once more, and again.
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

}  // namespace

std::unique_ptr<const ValueReader> make_chunked_values(Hdf5Source source, Hdf5Dataset dataset) {
  return std::make_unique<ChunkedValues>(std::move(source), std::move(dataset));
}

}  // namespace kith
