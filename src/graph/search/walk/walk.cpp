#include "graph/search/walk/walk.hpp"

#include "kernels/distance/packed_byte_rows.hpp"

#include <algorithm>
#include <array>

namespace kith {
namespace {

constexpr int64_t kTogether = 256;  // places compared at a time; no list is longer
constexpr int64_t kFirstCentres = 64;  // the bound that they set keeps out most others
constexpr int64_t kLine = 64;
constexpr int64_t kPrefetchedBytes = 512;  // per code; the rest is fetched when it is read

// 0, 1, 2, ...
constexpr auto kNumbers = [] {
  std::array<uint32_t, kTogether> numbers{};
  for (uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  return numbers;
}();

// Prefetches into the second-level cache: a step requests more lines than the first level has miss buffers, and would
// stall at the prefetches themselves (SIFT1M, Neoverse V1: 42 us instead of 59 per walk). Inlined by force, like its
// callers: GCC considers a function that only prefetches free of effects and drops calls to it.
[[gnu::always_inline]] inline void prefetch(const std::byte* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + at, 0, 2);
}

// Prefetches the list of a place.
[[gnu::always_inline]] inline void prefetch_list(const WalkView& view, uint32_t place) {
  if (place >= view.rows.count()) return;  // of the tail
  prefetch(reinterpret_cast<const std::byte*>(view.list_of(place)), view.degree * int64_t{sizeof(uint32_t)});
}

// Calls use(number, key) for the keys up to the bound, in order. They are few and unpredictable, so the selection is
// branchless.
template <typename Use>
void visit_near(const uint32_t* keys, int64_t count, uint32_t largest, const Use& use) {
  uint16_t picked[kTogether];
  int64_t near = 0;
  for (int64_t i = 0; i < count; ++i) {
    picked[near] = static_cast<uint16_t>(i);
    near += keys[i] <= largest ? 1 : 0;
  }
  for (int64_t p = 0; p < near; ++p) use(picked[p], keys[picked[p]]);
}

}  // namespace

Walk::Walk(const WalkParams& params, int64_t degree, const Resources& resources)
    : params_(params),
      beam_memory_(params.beam, "the beam of a walk", resources),
      memory_(SeenPlaces::slots_for(params.beam, degree) + 2 * kTogether, "the places of a walk", resources),
      places_(memory_.data()),
      keys_(places_ + kTogether),
      beam_(beam_memory_.data(), params.beam),
      seen_(keys_ + kTogether, SeenPlaces::slots_for(params.beam, degree)) {}

void Walk::begin(const WalkView& view, const WalkQuery& query) {
  view_ = &view;
  query_ = &query;
  beam_ = Beam(beam_memory_.data(), params_.beam);
  seen_.clear();
  collected_ = 0;
  compared_ = view.centres.count() + view.tail.count();
  begin_with_cells();
  begin_with_tail();
}

void Walk::begin_with_cells() {
  uint64_t memory[kNearCells];
  Beam cells(memory, kNearCells);
  const int64_t count = view_->centres.count();
  int64_t some = std::min(kFirstCentres, count);
  for (int64_t first = 0; first < count; first += some) {
    if (first > 0) some = std::min(kTogether, count - first);
    rank_centres(first, some);
    visit_near(keys_, some, cells.largest_key(),
               [&](int64_t i, uint32_t key) { cells.offer(key, static_cast<uint32_t>(first + i)); });
  }
  for (int64_t i = 0; i < cells.size(); ++i) {
    const uint32_t* const offsets = view_->entry_offsets + cells.place(i);
    for (int64_t e = offsets[0]; e < offsets[1]; e += kTogether) {
      collect(view_->entries + e, std::min(kTogether, offsets[1] - e));
    }
  }
  compare();
}

// Computes the keys of some centres.
void Walk::rank_centres(int64_t first, int64_t count) {
  const PackedByteRows* const packed = view_->packed_centres;
  if (packed == nullptr || query_->code.bytes == nullptr || !PackedByteRows::suits()) {
    const WalkRows& centres = view_->centres;
    return walk_keys(centres.with(centres.values.slice(first, count)), *query_, kNumbers.data(), count, keys_);
  }
  packed->keys(query_->code.bytes, first, count, reinterpret_cast<int32_t*>(keys_));
  for (int64_t i = 0; i < count; ++i) keys_[i] ^= kSignBit;
}

void Walk::begin_with_tail() {
  const WalkRows& tail = view_->tail;
  for (int64_t first = 0; first < tail.count(); first += kTogether) {
    const int64_t some = std::min(kTogether, tail.count() - first);
    walk_keys(tail.with(tail.values.slice(first, some)), *query_, kNumbers.data(), some, keys_);
    for (int64_t i = 0; i < some; ++i) places_[i] = static_cast<uint32_t>(view_->rows.count() + first + i);
    offer_all(places_, some);
  }
}

// Collects the unseen places of a list, up to kNoEdge, and prefetches their codes.
void Walk::collect(const uint32_t* list, int64_t most) {
  if (collected_ + most > kTogether) compare();
  uint32_t* const places = places_;
  const uint32_t hidden = query_->hidden;
  int64_t count = collected_;
  const auto* const codes = static_cast<const std::byte*>(view_->rows.values.data());
  const int64_t row_bytes = view_->rows.row_bytes();
  const int64_t bytes = std::min(row_bytes, kPrefetchedBytes);
  SeenPlaces seen = seen_;  // a local handle to the same table: shows the compiler that stores do not alias it
  for (int64_t i = 0; i < most && list[i] != kNoEdge; ++i) {
    const uint32_t place = list[i];
    places[count] = place;
    count += seen.add(place) & (place != hidden) ? 1 : 0;
    // Before checking whether the place is new: seen places are in the cache anyway, and the fetch overlaps with the
    // check.
    prefetch(codes + place * row_bytes, bytes);
  }
  collected_ = count;
}

// Offers the compared places, whose keys are in keys_.
void Walk::offer_all(const uint32_t* places, int64_t count) {
  const uint32_t* const keys = keys_;
  visit_near(keys, count, beam_.largest_key(), [&](int64_t i, uint32_t key) {
    const int64_t entered = beam_.offer(key, places[i]);
    // Likely to be opened soon: later finds are seldom nearer.
    if (entered >= 0 && entered < beam_.first_unopened() + 16 * params_.width) prefetch_list(*view_, places[i]);
  });
}

bool Walk::open() {
  // Chooses all places of the step before any neighbour is compared.
  uint32_t opened[kWidestStep];
  int64_t count = 0;
  for (; count < params_.width; ++count) {
    opened[count] = beam_.open_next();
    if (opened[count] == kNoWalkPlace) break;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (opened[i] >= view_->rows.count()) continue;  // of the tail
    collect(view_->list_of(opened[i]), view_->degree);
  }
  return count > 0;
}

void Walk::compare() {
  walk_keys(view_->rows, *query_, places_, collected_, keys_);
  offer_all(places_, collected_);
  compared_ += collected_;
  collected_ = 0;
}

}  // namespace kith
