#include "exact/kept_rows.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace kith {
namespace {

int64_t words_for(int64_t rows) { return (rows + 63) / 64; }

}  // namespace

KeptRows::KeptRows(const RowFilter& filter, int64_t rows, const Resources& resources) : rows_(rows) {
  if (filter.form() == RowFilter::Form::none) {
    count_ = rows;
    return;
  }
  if (filter.size() < 0 || (filter.size() > 0 && filter.data() == nullptr)) {
    throw InvalidArgument(fmt::format("a filter of {} entries at a null pointer", filter.size()));
  }
  if (filter.form() == RowFilter::Form::ids) {
    take_ids(filter, resources);
    return;
  }
  if (filter.size() != rows) {
    throw InvalidArgument(
        fmt::format("the filter is for {} rows and the base has {}; they must be the same", filter.size(), rows));
  }
  take_bits(filter, resources);
}

void KeptRows::take_bits(const RowFilter& filter, const Resources& resources) {
  bits_ = HostBuffer(words_for(rows_) * 8, "the filter's bits", resources);
  auto* const words = bits_.as<uint64_t>();
  const auto* const given = static_cast<const uint8_t*>(filter.data());
  const bool packed = filter.form() == RowFilter::Form::bits;
  for (int64_t word = 0; word < words_for(rows_); ++word) {
    const int64_t first = word * 64;
    const int64_t count = std::min<int64_t>(64, rows_ - first);
    uint64_t value = 0;
    if (packed) {
      for (int64_t b = 0; b < (count + 7) / 8; ++b) value |= static_cast<uint64_t>(given[first / 8 + b]) << (8 * b);
    } else {
      for (int64_t i = 0; i < count; ++i) value |= static_cast<uint64_t>(given[first + i] != 0) << i;
    }
    if (count < 64) value &= (uint64_t{1} << count) - 1;
    words[word] = value;
    count_ += std::popcount(value);
  }
}

void KeptRows::take_ids(const RowFilter& filter, const Resources& resources) {
  const auto* const ids = static_cast<const int64_t*>(filter.data());
  list_ = HostBuffer(filter.size() * 4, "the filter's rows", resources);
  auto* const list = list_.as<uint32_t>();
  for (int64_t i = 0; i < filter.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= rows_) {
      throw InvalidArgument(
          fmt::format("the filter's id {} at position {} is no row of the base, which has {}", ids[i], i, rows_));
    }
    list[i] = static_cast<uint32_t>(ids[i]);
  }
  // Most lists come ascending, and seeing that is much cheaper than sorting them again.
  if (!std::is_sorted(list, list + filter.size())) std::sort(list, list + filter.size());
  count_ = std::unique(list, list + filter.size()) - list;
}

const uint32_t* KeptRows::list(const Resources& resources) {
  if (list_.data() != nullptr || count_ == 0) return list_.as<uint32_t>();
  list_ = HostBuffer(count_ * 4, "the filter's rows", resources);
  auto* out = list_.as<uint32_t>();
  for (int64_t word = 0; word < words_for(rows_); ++word) {
    for (uint64_t rest = bits_.as<uint64_t>()[word]; rest != 0; rest &= rest - 1) {
      *out++ = static_cast<uint32_t>(word * 64 + std::countr_zero(rest));
    }
  }
  return list_.as<uint32_t>();
}

const uint64_t* KeptRows::bits(const Resources& resources) {
  if (bits_.data() != nullptr) return bits_.as<uint64_t>();
  bits_ = HostBuffer(words_for(rows_) * 8, "the filter's bits", resources);
  auto* const words = bits_.as<uint64_t>();
  std::fill_n(words, words_for(rows_), uint64_t{0});
  for (int64_t i = 0; i < count_; ++i) {
    const uint32_t row = list_.as<uint32_t>()[i];
    words[row / 64] |= uint64_t{1} << (row % 64);
  }
  return words;
}

}  // namespace kith
