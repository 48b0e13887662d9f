#include "rows/kept_rows.hpp"

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "rows/count_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace kith {
namespace {

static_assert(std::endian::native == std::endian::little);

// Bit i is set if byte i of eight, the lowest first, is not 0.
uint64_t bits_of_bytes(const uint8_t* bytes) {
  uint64_t eight;
  std::memcpy(&eight, bytes, sizeof(eight));
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  const uint64_t ones = (((eight & kLow) + kLow) | eight) >> 7 & 0x0101010101010101;
  return ones * 0x0102040810204080 >> 56;  // byte i's one moves to bit 56 + i
}

// Throws an error about a listed number that is no row.
[[noreturn]] void throw_outside(const int64_t* listed, int64_t rows) {
  int64_t i = 0;
  while (listed[i] >= 0 && listed[i] < rows) ++i;
  throw InvalidArgument(
      fmt::format("the filter's row {} at position {} is outside the base, which has {} rows", listed[i], i, rows));
}

}  // namespace

int64_t count_set_bits(const void* bits, int64_t count) {
  constexpr int64_t kWords = 64;  // copied at a time: bits of a caller's begin anywhere
  const auto* const bytes = static_cast<const uint8_t*>(bits);
  uint64_t words[kWords];
  int64_t total = 0;
  for (int64_t first = 0; first < count; first += kWords * 64) {
    const int64_t here = std::min(kWords * 64, count - first);
    words[(here - 1) / 64] = 0;
    std::memcpy(words, bytes + first / 8, static_cast<size_t>((here + 7) / 8));
    if (here % 64 != 0) words[here / 64] &= (uint64_t{1} << (here % 64)) - 1;
    total += count_bits(words, divide_up(here, 64));
  }
  return total;
}

KeptRows::KeptRows(const RowFilter& filter, int64_t rows, const Resources& resources) : rows_(rows) {
  if (filter.form() == RowFilter::Form::none) {
    count_ = rows;
    return;
  }
  if (filter.size() < 0 || (filter.size() > 0 && filter.data() == nullptr)) {
    throw InvalidArgument(fmt::format("a filter of {} entries at a null pointer", filter.size()));
  }
  const bool listed = filter.form() == RowFilter::Form::rows;
  if (!listed && filter.size() != rows) {
    throw InvalidArgument(
        fmt::format("the filter is for {} rows and the base has {}; they must be the same", filter.size(), rows));
  }
  if (counts_only(resources)) {
    bits_ = HostBuffer(footprint(filter, rows).host, "the filter", resources);
    count_ = std::max<int64_t>(0, rows - 1);  // so that it leaves some out
  } else if (listed) {
    take_rows(filter, resources);
  } else {
    take_bits(filter, resources);
  }
}

void KeptRows::take_bits(const RowFilter& filter, const Resources& resources) {
  bits_ = HostBuffer(words_for(rows_) * 8, "the filter's bits", resources);
  ranks_ = HostBuffer(ranks_for(rows_) * 4, "the filter's bits", resources);
  auto* const words = bits_.as<uint64_t>();
  const auto* const given = static_cast<const uint8_t*>(filter.data());
  const int64_t whole = rows_ / 8 * 8;
  if (words_for(rows_) > 0) words[words_for(rows_) - 1] = 0;
  if (filter.form() == RowFilter::Form::bits) {
    std::memcpy(words, given, static_cast<size_t>((rows_ + 7) / 8));
  } else {
    auto* const bytes = bits_.as<uint8_t>();
    for (int64_t i = 0; i < whole; i += 8) bytes[i / 8] = static_cast<uint8_t>(bits_of_bytes(given + i));
    uint8_t last = 0;
    for (int64_t i = whole; i < rows_; ++i) last = static_cast<uint8_t>(last | (given[i] != 0 ? 1 : 0) << (i % 8));
    if (whole < rows_) bytes[whole / 8] = last;
  }
  if (rows_ % 64 != 0) words[rows_ / 64] &= (uint64_t{1} << (rows_ % 64)) - 1;
  constexpr int64_t kRankWords = kRankRows / 64;
  for (int64_t rank = 0; rank < ranks_for(rows_); ++rank) {
    ranks_.as<uint32_t>()[rank] = static_cast<uint32_t>(count_);
    const int64_t first = rank * kRankWords;
    count_ += count_bits(words + first, std::min(kRankWords, words_for(rows_) - first));
  }
}

void KeptRows::take_rows(const RowFilter& filter, const Resources& resources) {
  const auto* const listed = static_cast<const int64_t*>(filter.data());
  list_ = HostBuffer(filter.size() * 4, "the filter's rows", resources);
  auto* const list = list_.as<uint32_t>();
  // Loops without branches, since checking a long list takes a noticeable part of a search of one query.
  uint64_t outside = 0;
  uint64_t unordered = 0;
  for (int64_t i = 0; i < filter.size(); ++i) {
    list[i] = static_cast<uint32_t>(listed[i]);
    outside |= static_cast<uint64_t>(static_cast<uint64_t>(listed[i]) >= static_cast<uint64_t>(rows_));
  }
  if (outside != 0) throw_outside(listed, rows_);
  for (int64_t i = 1; i < filter.size(); ++i) unordered |= static_cast<uint64_t>(list[i - 1] >= list[i]);
  count_ = filter.size();
  if (unordered == 0) return;  // as most lists come
  std::sort(list, list + count_);
  count_ = std::unique(list, list + count_) - list;
}

const uint32_t* KeptRows::list(const Resources& resources) {
  if (list() != nullptr || count_ == 0) return list();
  constexpr int64_t kRanksPerTask = 16;
  list_ = HostBuffer(count_ * 4, "the filter's rows", resources);
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("filter", rows_, quiet);
  parallel_for(divide_up(ranks_for(rows_), kRanksPerTask), meter, resources, [&](int64_t task, int) {
    const int64_t first = task * kRanksPerTask * (kRankRows / 64);
    const int64_t end = std::min(first + kRanksPerTask * (kRankRows / 64), words_for(rows_));
    uint32_t* out = list_.as<uint32_t>() + ranks()[task * kRanksPerTask];
    for (int64_t word = first; word < end; ++word) {
      for (uint64_t kept = bits()[word]; kept != 0; kept &= kept - 1) {
        *out++ = static_cast<uint32_t>(word * 64 + std::countr_zero(kept));
      }
    }
  });
  return list();
}

int64_t KeptRows::count_before(int64_t row) const {
  if (list() != nullptr) return std::lower_bound(list(), list() + count_, row) - list();
  if (row >= rows_) return count_;
  int64_t count = ranks()[row / kRankRows];
  for (int64_t word = row / kRankRows * (kRankRows / 64); word < row / 64; ++word) count += std::popcount(bits()[word]);
  return count + std::popcount(bits()[row / 64] & ((uint64_t{1} << (row % 64)) - 1));
}

int64_t KeptRows::row_at(int64_t place) const {
  if (list() != nullptr) return list()[place];
  const uint32_t* const end = ranks() + ranks_for(rows_);
  const int64_t rank = std::upper_bound(ranks(), end, place) - ranks() - 1;
  int64_t before = place - ranks()[rank];  // kept rows from `word` on that come before it
  int64_t word = rank * (kRankRows / 64);
  while (before >= std::popcount(bits()[word])) before -= std::popcount(bits()[word++]);
  uint64_t kept = bits()[word];
  for (; before > 0; --before) kept &= kept - 1;
  return word * 64 + std::countr_zero(kept);
}

const uint64_t* KeptRows::bits(const Resources& resources) {
  if (bits() != nullptr) return bits();
  bits_ = HostBuffer(words_for(rows_) * 8, "the filter's bits", resources);
  auto* const words = bits_.as<uint64_t>();
  std::fill_n(words, words_for(rows_), uint64_t{0});
  const uint32_t* const kept = list();
  for (int64_t i = 0; i < count_;) {  // ascending: a word is put together before it is stored
    const uint32_t word = kept[i] / 64;
    uint64_t value = 0;
    for (; i < count_ && kept[i] / 64 == word; ++i) value |= uint64_t{1} << (kept[i] % 64);
    words[word] = value;
  }
  return words;
}

}  // namespace kith
