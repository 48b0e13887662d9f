// The lists of neighbours of a walked graph. The graphs that grow out of one another share them: lists lie in pages of
// kPageLists, and a page is copied when one of its lists changes.
//
// A graph that was built or loaded has all lists in one array, as has one most of whose pages would be copies: a walk
// finds a list there without a look at a table. So the copies are half of the lists at most.
//
// Memory: 4 bytes for each neighbour; where there are copies, those, and 24 bytes for each page.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_view.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace kith {

class WalkLists {
 public:
  WalkLists() = default;
  // All in one array, places x degree.
  WalkLists(HostArray<uint32_t> lists, int64_t places, int64_t degree);

  int64_t places() const { return places_; }
  int64_t degree() const { return degree_; }
  // Bytes of this version, as if it shared none.
  int64_t bytes() const;
  // All of them where they lie in one array, else null.
  const uint32_t* flat() const { return table_.empty() ? flat_of() : nullptr; }
  const uint32_t* of(int64_t place) const {
    if (table_.empty()) return flat_of() + place * degree_;
    return table_[static_cast<size_t>(place / kPageLists)] + place % kPageLists * degree_;
  }
  // Copied one after the other.
  void copy_to(uint32_t* to, const Resources& resources) const;
  // Sets edges or pages, and the degree.
  void show_in(WalkView& view) const;

 private:
  friend class ChangedLists;
  using Page = std::shared_ptr<const HostArray<uint32_t>>;

  const uint32_t* flat_of() const { return together_ == nullptr ? nullptr : together_->data(); }

  int64_t places_ = 0;
  int64_t degree_ = 0;
  Page together_;                       // the lists of the first places
  std::vector<Page> copies_;            // of each page; null: it lies in together_. Empty where all do
  std::vector<const uint32_t*> table_;  // where each page lies; empty as well
};

// Lists that grow out of others, which stay as they are. One thread at a time, but for writing to lists that are there
// to be changed.
class ChangedLists {
 public:
  // With room for lists behind those that are there, `places` in all.
  ChangedLists(const WalkLists& before, int64_t places, const Resources& resources);

  // The lists of these places, ascending, may be written to, as may those of the new places.
  void change(const std::vector<uint32_t>& some);
  // All lists, those of the new places too, become these.
  void replace(HostArray<uint32_t> lists);
  // One of those.
  uint32_t* changed(uint32_t place) const { return const_cast<uint32_t*>(lists_.of(place)); }
  // The list of a place, which may be written to from now on.
  uint32_t* change(uint32_t place);

  // What walks see, as long as change() is not called.
  void show_in(WalkView& view) const { lists_.show_in(view); }

  WalkLists take() &&;

 private:
  void put_together();
  void copy_page(int64_t page);
  int64_t page_count() const { return static_cast<int64_t>(own_.size()); }

  const Resources& resources_;
  const int64_t before_;  // places
  WalkLists lists_;
  std::vector<bool> own_;  // pages that no other version has
  bool all_own_ = false;   // all lists lie together, and no other version has them
};

}  // namespace kith
