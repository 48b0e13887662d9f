#include "collection/kept_places.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFewKept = 16384;
constexpr int64_t kFewShare = 64;

}  // namespace

bool are_few(int64_t kept, int64_t places) { return kept <= kFewKept || kept <= places / kFewShare; }

KeptPlaces::KeptPlaces(const StatePart& part) : part_(&part), places_(part.rows->size()) {}

void KeptPlaces::add(int64_t place, const Resources& resources) {
  if (!part_->lives(place)) return;
  if (bits_.places() > 0) {
    count_ += bits_.set(place) ? 1 : 0;
    return;
  }
  list_.push_back(place);
  if (static_cast<int64_t>(list_.size()) <= places_ / kListShare) return;
  PlaceBits bits(places_, resources);
  for (const int64_t one : list_) bits.set(one);
  bits_ = std::move(bits);
  count_ = bits_.count();
  list_ = {};
}

void KeptPlaces::finish() {
  if (bits_.places() > 0) return;
  if (!std::is_sorted(list_.begin(), list_.end())) std::sort(list_.begin(), list_.end());
  list_.erase(std::unique(list_.begin(), list_.end()), list_.end());
  count_ = static_cast<int64_t>(list_.size());
  list_.shrink_to_fit();
}

// A list that has just grown to twice its length, and the bits that follow on it.
int64_t KeptPlaces::most_bytes(const StatePart& part) {
  const int64_t rows = part.rows->size();
  return static_cast<int64_t>(sizeof(KeptPlaces)) + rows / 8 + 1 +
         2 * (rows / kListShare + 1) * static_cast<int64_t>(sizeof(int64_t));
}

RowFilter KeptPlaces::filter() const {
  if (count_ == places_) return {};
  if (bits_.places() > 0) return RowFilter::bits(bits_.bits(), places_);
  return RowFilter::rows(list_.data(), count_);
}

}  // namespace kith
