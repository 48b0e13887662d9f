#include "index/live_rows.hpp"

#include <algorithm>
#include <bit>

namespace kith {
namespace {

// Moves bit j of `bits` to the place of the j-th set bit of `places`.
uint64_t deposit(uint64_t bits, uint64_t places) {
  if (places == ~uint64_t{0}) return bits;
  uint64_t spread = 0;
  for (; places != 0; places &= places - 1, bits >>= 1) {
    if ((bits & 1) != 0) spread |= places & (~places + 1);
  }
  return spread;
}

}  // namespace

RowFilter LiveRows::filter() const {
  if (all()) return {};
  return RowFilter::bits(reinterpret_cast<const uint8_t*>(bits()), stored_);
}

HostArray<uint64_t> LiveRows::copy_of_bits(int64_t rows, const Resources& resources) const {
  HostArray<uint64_t> copy(KeptRows::words_for(rows), "the rows that stay", resources);
  const int64_t known = bits_ == nullptr ? 0 : bits_->size();
  std::copy_n(bits(), known, copy.begin());
  std::fill(copy.begin() + known, copy.end(), ~uint64_t{0});
  return copy;
}

LiveRows LiveRows::grown(int64_t count, const Resources& resources) const {
  if (all()) return LiveRows(stored_ + count);
  return {stored_ + count, dead_, copy_of_bits(stored_ + count, resources)};
}

HostArray<uint64_t> LiveRows::spread(const uint64_t* of_live, const Resources& resources) const {
  const int64_t words = KeptRows::words_for(count());
  HostArray<uint64_t> of_stored(KeptRows::words_for(stored_), "the filter's bits", resources);
  int64_t before = 0;  // live rows before the word
  for (int64_t word = 0; word < of_stored.size(); ++word) {
    const int64_t at = before / 64;
    const int64_t shift = before % 64;
    uint64_t next = at < words ? of_live[at] >> shift : 0;
    if (shift > 0 && at + 1 < words) next |= of_live[at + 1] << (64 - shift);
    of_stored[word] = deposit(next, bits()[word]);
    before += std::popcount(bits()[word]);
  }
  return of_stored;
}

}  // namespace kith
