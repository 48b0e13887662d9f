// Immutable segments of rows, of which an index consists; its versions share them.
//
// A segment is a payload (vectors, codes, codes in lists, ids) of consecutive rows that were added or merged together.
// It stays in the memory where it was made; copies on other devices, and data that searches derive from it, are kept
// with it (core/placed.hpp). Dead rows are marked for all payloads of an index together (index/live_rows.hpp).
//
// Rows have consecutive numbers over all segments. An add makes a segment and merges the small ones before it into it,
// so that n single adds cost n log n copies and result in log n segments.
#pragma once

#include <kith/device.hpp>
#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/placed.hpp"
#include "cuda/stream_marks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

inline Device device_at(const MemorySpace& space) {
  return space.host_readable() ? Device::cpu() : Device::cuda(space.device);
}

// A payload has size() in rows, space(), bytes() and, if devices can copy it, copied_to(device, resources).
template <typename Payload, typename Prepared = Payload>
class PlacedSegment {
 public:
  using Copy = std::shared_ptr<const Payload>;

  explicit PlacedSegment(Copy made) : made_(std::move(made)) { copies_.keep(device_at(made_->space()), made_); }

  int64_t size() const { return made_->size(); }
  MemorySpace space() const { return made_->space(); }  // where it was made
  const Payload& made() const { return *made_; }

  // The payload on that device, copied by the first call; throws OutOfMemory if there is no room.
  Copy on(Device device, const Resources& resources) const {
    return copies_.get(device, resources, [&] { return made_->copied_to(device, resources); });
  }
  const Placed<Payload>& copies() const { return copies_; }
  // Data that searches derive from it.
  const Placed<Prepared>& prepared() const { return prepared_; }
  int64_t bytes(DeviceKind kind) const {
    int64_t total = copies_.bytes(kind) + prepared_.bytes(kind);
    const std::lock_guard lock(shards_lock_);
    for (const auto& [number, shard] : shards_) total += shard->bytes(kind);
    return total;
  }

  // Piece `number` of its rows cut into `count`, where devices keep a piece each: made by make() for the first call
  // that wants it, and shared like the segment itself. Calls at the same time may both make one, and one is kept.
  template <typename Make>
  std::shared_ptr<const PlacedSegment> shard(int count, int number, const Make& make) const {
    const std::pair<int, int> key(count, number);
    {
      const std::lock_guard lock(shards_lock_);
      if (const auto known = shards_.find(key); known != shards_.end()) return known->second;
    }
    std::shared_ptr<const PlacedSegment> made = make();
    const std::lock_guard lock(shards_lock_);
    std::erase_if(shards_, [&](const auto& other) { return other.first.first != count; });  // of another placement
    return shards_.emplace(key, std::move(made)).first->second;
  }

  // Call after a search on a caller's stream, which may still read all this.
  void read_until(const std::shared_ptr<const StreamMark>& mark) const { marks_.add(mark); }

 private:
  const Copy made_;
  Placed<Payload> copies_;
  Placed<Prepared> prepared_;
  mutable std::mutex shards_lock_;
  mutable std::map<std::pair<int, int>, std::shared_ptr<const PlacedSegment>> shards_;  // by (count, number)
  mutable StreamMarks marks_;  // the last member: it goes before what it is about
};

// T has size(), in rows.
template <typename T>
class Segments {
 public:
  using Shared = std::shared_ptr<const T>;

  int64_t rows() const { return ends_.empty() ? 0 : ends_.back(); }
  bool empty() const { return shared_.empty(); }
  size_t count() const { return shared_.size(); }
  const std::vector<Shared>& all() const { return shared_; }
  auto begin() const { return shared_.begin(); }
  auto end() const { return shared_.end(); }
  int64_t first_row(size_t segment) const { return segment == 0 ? 0 : ends_[segment - 1]; }
  // Sum of of(segment) over all segments.
  template <typename Of>
  int64_t sum(const Of& of) const {
    int64_t total = 0;
    for (const Shared& segment : shared_) total += of(*segment);
    return total;
  }
  int64_t bytes(DeviceKind kind) const {
    return sum([=](const T& segment) { return segment.bytes(kind); });
  }
  size_t number_of(int64_t row) const {
    return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
  }

  void push_back(Shared segment) {
    ends_.push_back(rows() + segment->size());
    shared_.push_back(std::move(segment));
  }

  // How many of the first segments stay when `added` rows are appended. From the last on, segments of at most `times`
  // the size merged so far are merged with the new rows; a larger `times` means fewer segments and more copies.
  // Segments for which merges(segment) is false are never merged.
  template <typename Merges>
  size_t staying(int64_t added, int64_t times, const Merges& merges) const {
    size_t stay = count();
    for (int64_t together = added; stay > 0 && merges(*shared_[stay - 1]); together += shared_[--stay]->size()) {
      if (shared_[stay - 1]->size() > times * together) break;
    }
    return stay;
  }
  size_t staying(int64_t added, int64_t times = 2) const {
    return staying(added, times, [](const T&) { return true; });
  }

  // The first `stay` segments, followed by `last`.
  Segments with(size_t stay, Shared last) const {
    Segments other;
    for (size_t i = 0; i < stay; ++i) other.push_back(shared_[i]);
    other.push_back(std::move(last));
    return other;
  }

 private:
  std::vector<Shared> shared_;
  std::vector<int64_t> ends_;  // of each: its last row's number + 1
};

}  // namespace kith
