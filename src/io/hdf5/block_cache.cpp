#include "io/hdf5/block_cache.hpp"
#include "io/hdf5/checksum.hpp"

#include <algorithm>
#include <utility>

namespace kith {

const Hdf5Block& Hdf5BlockCache::read(const Hdf5Source& source, int64_t at, int64_t bytes, std::string_view what) {
  if (const Hdf5Block* const found = find(at, bytes)) return *found;
  return keep(bytes, source.read(at, bytes, what));
}

const Hdf5Block& Hdf5BlockCache::read_checked(const Hdf5Source& source, int64_t at, int64_t bytes,
                                              std::string_view what) {
  if (const Hdf5Block* const found = find(at, bytes)) return *found;
  Hdf5Block block = source.read(at, bytes, what);
  Hdf5Cursor(source, block, what).verify_checksum();
  block.bytes.resize(block.bytes.size() - size_t{kChecksumBytes});
  return keep(bytes, std::move(block));
}

const Hdf5Block* Hdf5BlockCache::find(int64_t at, int64_t bytes) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Entry& entry) { return entry.at == at && entry.bytes == bytes; });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return &found->block;
}

const Hdf5Block& Hdf5BlockCache::keep(int64_t bytes, Hdf5Block block) {
  if (kept_.size() == kMostKept) kept_.pop_back();
  const int64_t at = block.at;
  kept_.push_front({at, bytes, std::move(block)});
  return kept_.front().block;
}

}  // namespace kith
