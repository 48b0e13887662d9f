// One version of a collection in memory: its segments, the newest rows, and which of them were removed. It never
// changes; a write makes the next one from it, which shares what did not change.
#pragma once

#include <kith/collection.hpp>
#include <kith/host_buffer.hpp>
#include <kith/row_filter.hpp>

#include "collection/directory.hpp"
#include "collection/segment.hpp"
#include "collection/stored_rows.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kith {

// A bit for each place, the lowest first.
class PlaceBits {
 public:
  PlaceBits() = default;
  PlaceBits(int64_t places, const Resources& resources);

  bool has(int64_t place) const { return (bits()[place / 8] >> (place % 8) & 1) != 0; }
  // Whether it was not there.
  bool set(int64_t place) {
    const bool fresh = !has(place);
    bits()[place / 8] = static_cast<uint8_t>(bits()[place / 8] | 1U << (place % 8));
    if (fresh) ++count_;
    return fresh;
  }
  int64_t places() const { return places_; }
  int64_t count() const { return count_; }
  uint8_t* bits() const { return buffer_.as<uint8_t>(); }
  PlaceBits copy(const Resources& resources) const;

 private:
  HostBuffer buffer_;
  int64_t places_ = 0;
  int64_t count_ = 0;
};

struct StatePart {
  std::shared_ptr<const StoredRows> rows;
  std::shared_ptr<const Segment> segment;  // null: newest rows in memory
  std::shared_ptr<const PlaceBits> dead;   // null: none

  int64_t living() const { return rows->size() - (dead ? dead->count() : 0); }
  bool lives(int64_t place) const { return !dead || !dead->has(place); }
};

// Which places of each part a filter keeps; only of living items.
struct KeptItems {
  std::vector<PlaceBits> parts;
  int64_t total = 0;
};

class SegmentGroup;
struct TenantPlaces;

struct RowAt {
  size_t part = 0;
  int64_t place = 0;
};

class CollectionState {
 public:
  std::shared_ptr<const CollectionDirectory> directory;
  std::shared_ptr<const CollectionParams> params;
  int64_t version = 0;
  int64_t layout = 0;
  int64_t next_row = 0;  // all rows before it are known
  int64_t size = 0;
  std::vector<StatePart> parts;  // segments, then blocks of newest rows; each kind in the order of first rows
  size_t segments = 0;           // how many of them are
  // Rows that are stored nowhere any more since their items were removed; they ascend. Null: none.
  std::shared_ptr<const std::vector<int64_t>> gone;

  // Finds a stored row, removed or not.
  std::optional<RowAt> find(int64_t row) const;
  bool is_gone(int64_t row) const { return gone && std::binary_search(gone->begin(), gone->end(), row); }
  // Calls use(part, place) for the living items among rows that `rows` gives to the function it is called with, which
  // may be any that the database has: removed ones and those of later versions are passed over. Those that are stored
  // nowhere, and are not known to be gone, go to `unknown`, for check_removed().
  template <typename Rows, typename Use>
  void for_living(const Rows& rows, const Use& use, std::vector<int64_t>& unknown) const {
    size_t part = 0;  // of the row before: neighbours come together
    rows([&](int64_t row) {
      if (row >= next_row) return;
      int64_t place = part < parts.size() ? parts[part].rows->place_of(row) : -1;
      if (place < 0) {
        const std::optional<RowAt> at = find(row);
        if (!at) {
          if (!is_gone(row)) unknown.push_back(row);
          return;
        }
        part = at->part;
        place = at->place;
      }
      if (parts[part].lives(place)) use(part, place);
    });
  }
  // CorruptFile where one of these rows, which are stored nowhere, has an item that this version sees.
  void check_removed(const Database& db, const std::vector<int64_t>& rows) const;
  // All living items in the order in which they were added.
  std::vector<RowAt> in_order() const;
  // Calls use(database) with a connection to read with; InvalidState where items of this version were forgotten.
  template <typename Use>
  auto reading(const Use& use) const {
    return directory->reading([&](Database& db) {
      check_remembered(db);
      return use(db);
    });
  }

  // Null: no filter was given, and all living items are kept. `params_of` replaces the filter's own.
  std::shared_ptr<const KeptItems> keep(const ItemFilter& filter, const std::vector<ColumnValue>& params_of,
                                        const Resources& resources) const;

  void hold(std::unique_ptr<VersionPin> pin) const {
    const std::lock_guard lock(mutex_);
    pin_ = std::move(pin);
  }
  // What an expression with these parameters keeps is known by this name.
  static std::string key_of(const ItemFilter& filter, const std::vector<ColumnValue>& params_of);
  // What tenants keep, as tenants.hpp has it, for the next search of this version; null where it is not known.
  std::shared_ptr<const TenantPlaces> kept_tenant(const std::string& key) const;
  void keep_tenant(std::string key, std::shared_ptr<const TenantPlaces> kept, int64_t kept_bytes) const;

  // The segments that a search compared as one last; null before.
  std::shared_ptr<const SegmentGroup> kept_group() const {
    const std::lock_guard lock(mutex_);
    return group_;
  }
  void keep_group(std::shared_ptr<const SegmentGroup> group) const {
    const std::lock_guard lock(mutex_);
    group_ = std::move(group);
  }
  // A writer of this process remembers what this version sees.
  void guard(bool on) const { guarded_by_ = on ? this_process() : 0; }
  // Both are for the process that said so: a forked child has neither the writer's memory nor the reader's lock.
  bool guarded() const { return guarded_by_ == this_process(); }
  bool held() const {
    const std::lock_guard lock(mutex_);
    return pin_ != nullptr && pin_->process() == this_process();
  }

 private:
  void check_remembered(const Database& db) const;
  std::shared_ptr<const KeptItems> keep_where(const ItemFilter& filter, const std::vector<ColumnValue>& params_of,
                                              const Resources& resources) const;
  KeptItems no_items(const Resources& resources) const;
  // Whether that many more bytes may be cached; may evict earlier entries.
  bool has_room(int64_t bytes) const;

  mutable std::mutex mutex_;
  mutable std::unique_ptr<VersionPin> pin_;
  mutable std::atomic<int64_t> guarded_by_{0};
  mutable std::map<std::string, std::shared_ptr<const KeptItems>> kept_;  // by expression and parameters
  mutable std::map<std::string, std::shared_ptr<const TenantPlaces>> kept_tenants_;
  mutable int64_t kept_bytes_ = 0;  // of both
  mutable std::shared_ptr<const SegmentGroup> group_;
};

using StatePointer = std::shared_ptr<const CollectionState>;

// The newest version that the database has. `before` may be null; what did not change is shared with it.
StatePointer load_state(const Database& db, const std::shared_ptr<const CollectionDirectory>& directory,
                        const StatePointer& before, bool mapped, const Resources& resources);

// What one transaction changed.
struct StateChange {
  std::vector<int64_t> removed;                        // rows
  std::vector<std::shared_ptr<const RowBlock>> blocks;  // new ones, in order
  std::vector<SegmentRow> segments;                    // new ones
};

// The next version in memory.
StatePointer changed_state(const StatePointer& before, const StateChange& change, int64_t version, int64_t layout,
                           int64_t next_row, bool mapped, const Resources& resources);

// The ids of some rows that are there, as the collection's results name them.
std::vector<int64_t> rows_of_ids(Database& db, const ItemIds& ids, int64_t version);

}  // namespace kith
