// The lists of neighbours of a search graph. A graph and those made from it share them: lists are stored in pages of
// kPageLists, and a page is copied when one of its lists changes.
//
// A graph that was built or loaded has all lists in one array, and so has one most of whose pages would be copies: a
// walk then finds a list without reading a table. So at most half of the lists are copies.
//
// Memory: 4 bytes per neighbour; if there are copies, those, and 24 bytes per page.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_view.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

class WalkLists {
 public:
  WalkLists() = default;
  // All lists in one array, places x degree.
  WalkLists(HostArray<uint32_t> lists, int64_t places, int64_t degree);

  int64_t places() const { return places_; }
  int64_t degree() const { return degree_; }
  // The size of this version, including shared pages.
  int64_t bytes() const;
  // All lists, if they are in one array, else null.
  const uint32_t* flat() const { return table_.empty() ? flat_of() : nullptr; }
  const uint32_t* of(int64_t place) const {
    if (table_.empty()) return flat_of() + place * degree_;
    return table_[static_cast<size_t>(place / kPageLists)] + place % kPageLists * degree_;
  }
  // Copies all lists into one array.
  void copy_to(uint32_t* to, const Resources& resources) const;
  // Sets the view's edges or pages, and its degree.
  void show_in(WalkView& view) const;

 private:
  friend class ChangedLists;
  using Page = std::shared_ptr<const HostArray<uint32_t>>;

  const uint32_t* flat_of() const { return together_ == nullptr ? nullptr : together_->data(); }

  int64_t places_ = 0;
  int64_t degree_ = 0;
  Page together_;                       // the lists of the first places
  std::vector<Page> copies_;            // of each page; null: the page is in together_. Empty if all are
  std::vector<const uint32_t*> table_;  // the address of each page; empty as well
};

// A changeable version of lists; the original is not changed. For one thread at a time, except for writing to lists
// that were made changeable.
class ChangedLists {
 public:
  // Adds room for new lists after the existing ones, `places` in total.
  ChangedLists(const WalkLists& before, int64_t places, const Resources& resources);

  // Makes the lists of these places changeable; those of new places already are.
  template <typename Places>
  void change(const Places& some) {
    if (all_own_) return;
    std::vector<bool> wanted(own_.size(), false);
    for (const uint32_t place : some) wanted[place / kPageLists] = true;
    change_pages(std::move(wanted));
  }
  // Makes all lists changeable if that costs less than the pages of so many of them, anywhere.
  void expect(int64_t some) {
    if (!all_own_ && some * 2 > page_count()) put_together();
  }
  // A changeable list.
  uint32_t* changed(uint32_t place) const { return const_cast<uint32_t*>(lists_.of(place)); }
  // Makes the list of a place changeable, and returns it.
  uint32_t* change(uint32_t place);

  // Sets the lists of a view; valid until the next change().
  void show_in(WalkView& view) const { lists_.show_in(view); }

  WalkLists take() &&;

 private:
  void change_pages(std::vector<bool> wanted);
  void put_together();
  void copy_page(int64_t page);
  int64_t page_count() const { return static_cast<int64_t>(own_.size()); }

  const Resources& resources_;
  const int64_t before_;  // places
  WalkLists lists_;
  std::vector<bool> own_;  // pages not shared with another version
  bool all_own_ = false;   // all lists are in one array, not shared with another version
};

}  // namespace kith
