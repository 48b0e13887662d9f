// The places of one part that a filter keeps: a list while they are few, else a bit for each place. Groups of queries
// with filters of their own, such as tenants, keep few places each of many parts.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/row_filter.hpp>

#include "collection/state.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kListShare = 32;  // below this share a list of rows is shorter to go through than bits

// Fewer kept places than these are searched exactly, though the part has an index.
bool are_few(int64_t kept, int64_t places);

class KeptPlaces {
 public:
  // None of them yet.
  explicit KeptPlaces(const StatePart& part);

  // Keeps a place; the same one twice counts once. One that does not live is passed over.
  void add(int64_t place, const Resources& resources);
  // After the last: the list ascends.
  void finish();

  int64_t count() const { return count_; }
  bool few() const { return are_few(count_, places_); }
  int64_t bytes() const { return list_bytes() + bits_.places() / 8; }
  int64_t list_bytes() const { return static_cast<int64_t>(list_.capacity() * sizeof(int64_t)); }  // which no limit counts
  static int64_t most_bytes(const StatePart& part);
  // Without a form where all places are kept.
  RowFilter filter() const;

 private:
  const StatePart* part_;
  int64_t places_;
  int64_t count_ = 0;
  std::vector<int64_t> list_;
  PlaceBits bits_;
};

}  // namespace kith
