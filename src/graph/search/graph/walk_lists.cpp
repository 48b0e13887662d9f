#include "graph/search/graph/walk_lists.hpp"

#include "core/divide.hpp"
#include "core/parallel_copy.hpp"

#include <algorithm>
#include <utility>

namespace kith {

WalkLists::WalkLists(HostArray<uint32_t> lists, int64_t places, int64_t degree)
    : places_(places), degree_(degree), together_(std::make_shared<const HostArray<uint32_t>>(std::move(lists))) {}

int64_t WalkLists::bytes() const {
  return places_ * degree_ * static_cast<int64_t>(sizeof(uint32_t)) +
         static_cast<int64_t>(copies_.size() * sizeof(Page) + table_.size() * sizeof(uint32_t*));
}

void WalkLists::copy_to(uint32_t* to, const Resources& resources) const {
  if (table_.empty()) {
    return copy_bytes(to, flat_of(), places_ * degree_ * static_cast<int64_t>(sizeof(uint32_t)), resources);
  }
  for (int64_t first = 0; first < places_; first += kPageLists) {
    std::copy_n(of(first), std::min(kPageLists, places_ - first) * degree_, to + first * degree_);
  }
}

void WalkLists::show_in(WalkView& view) const {
  view.edges = flat();
  view.pages = table_.empty() ? nullptr : table_.data();
  view.degree = degree_;
}

ChangedLists::ChangedLists(const WalkLists& before, int64_t places, const Resources& resources)
    : resources_(resources),
      before_(before.places()),
      lists_(before),
      own_(static_cast<size_t>(divide_up(places, kPageLists)), false) {
  lists_.places_ = places;
}

void ChangedLists::change_pages(std::vector<bool> wanted) {
  for (int64_t page = before_ / kPageLists; page < page_count(); ++page) wanted[static_cast<size_t>(page)] = true;
  int64_t copies = 0;
  for (size_t page = 0; page < own_.size(); ++page) {
    const bool is_copy = page < lists_.copies_.size() && lists_.copies_[page] != nullptr;
    copies += wanted[page] || is_copy ? 1 : 0;
  }
  if (copies * 2 > page_count()) return put_together();
  for (int64_t page = 0; page < page_count(); ++page) {
    if (wanted[static_cast<size_t>(page)]) copy_page(page);
  }
}

uint32_t* ChangedLists::change(uint32_t place) {
  if (!all_own_) copy_page(place / kPageLists);
  return changed(place);
}

void ChangedLists::put_together() {
  HostArray<uint32_t> all(lists_.places_ * lists_.degree_, "the graph's edges", resources_);
  const int64_t places = std::exchange(lists_.places_, before_);
  lists_.copy_to(all.data(), resources_);
  lists_ = WalkLists(std::move(all), places, lists_.degree_);
  all_own_ = true;
}

void ChangedLists::copy_page(int64_t page) {
  const auto number = static_cast<size_t>(page);
  if (own_[number]) return;
  if (lists_.table_.empty()) {  // all lay together till now; of new places there is nothing yet
    const uint32_t* const first = lists_.flat_of();
    lists_.copies_.resize(own_.size());
    lists_.table_.resize(own_.size(), nullptr);
    for (int64_t i = 0; i * kPageLists < before_; ++i) {
      lists_.table_[static_cast<size_t>(i)] = first + i * kPageLists * lists_.degree_;
    }
  }
  if (lists_.table_.size() < own_.size()) {
    lists_.copies_.resize(own_.size());
    lists_.table_.resize(own_.size(), nullptr);
  }
  HostArray<uint32_t> copy(kPageLists * lists_.degree_, "the graph's edges", resources_);
  const int64_t lists = std::clamp<int64_t>(before_ - page * kPageLists, 0, kPageLists);
  if (lists > 0) std::copy_n(lists_.table_[number], lists * lists_.degree_, copy.data());
  lists_.table_[number] = copy.data();
  lists_.copies_[number] = std::make_shared<const HostArray<uint32_t>>(std::move(copy));
  own_[number] = true;
}

WalkLists ChangedLists::take() && { return std::move(lists_); }

}  // namespace kith
