#include "graph/build/cells/cell_worker.hpp"

#include "core/infinity.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kQueryBlock = 192;    // compared together
constexpr int64_t kMostWaiting = 4096;  // pairs whose keys are not computed yet
constexpr int64_t kKeysAhead = 12;      // rows on their way

void put_places(uint32_t first, int64_t count, std::vector<uint32_t>& places) {
  places.resize(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), first);
}

}  // namespace

CellWorker::CellWorker(const PairRows& rows, const uint32_t* numbers, WorkingLists& lists, const Resources& resources)
    : all_(rows),
      numbers_(numbers),
      lists_(lists),
      scan_(make_pair_scan(rows, kQueryBlock, kCellTileRows, resources)),
      keys_(rows.view(), rows.kind()),
      waiting_(kMostWaiting, "candidates", resources),
      together_(kMostWaiting, "candidates", resources) {
  scan_->make_room_for_first(lists.length() + 1);
}

template <typename Body>
void CellWorker::for_blocks(const uint32_t* queries, int64_t all, ProgressMeter& meter, const Body& body) {
  for (int64_t first = 0; first < all; first += kQueryBlock) {
    queries_ = queries + first;
    body(std::min(kQueryBlock, all - first));
    meter.checkpoint();
  }
}

void CellWorker::run_own(uint32_t first_row, int64_t row_count, uint32_t first_query, int64_t query_count,
                         ProgressMeter& meter) {
  put_places(first_row, row_count, rows_);
  put_places(first_query, query_count, own_queries_);
  scan_->set_rows(rows_.data(), row_count);
  for_blocks(own_queries_.data(), query_count, meter, [&](int64_t count) {
    scan_->set_queries(queries_, count);
    scan_->run_first(lists_.length() + 1, *this);  // itself may be one of them
  });
}

void CellWorker::run(uint32_t first_row, int64_t row_count, const uint32_t* queries, int64_t query_count,
                     ProgressMeter& meter) {
  put_places(first_row, row_count, rows_);
  const bool for_rows = has_list(row_of_place(0));
  if (for_rows) put_similar_limits_together();
  scan_->set_rows(rows_.data(), row_count);
  for (int64_t i = 0; for_rows && i < row_count; ++i) scan_->limit_row(i, lists_.largest_key(row_of_place(i)));
  for_blocks(queries, query_count, meter, [&](int64_t count) {
    const bool for_queries = has_list(row_of_query(0));
    for (int64_t q = 0; for_queries && q < count; ++q) lists_.prefetch_threshold(row_of_query(q));
    scan_->set_queries(queries_, count);
    for (int64_t q = 0; for_queries && q < count; ++q) scan_->limit_query(q, lists_.largest_key(row_of_query(q)));
    scan_->run(*this);
    settle();
  });
}

// Sorts by classes of size, the largest first; the order within a class does not matter.
void CellWorker::put_similar_limits_together() {
  constexpr int kClassBits = 8;
  limits_.clear();
  for (const uint32_t row : rows_) {
    limits_.push_back(lists_.threshold(all_.row_at(row)));  // others lower them meanwhile
  }
  const auto [least, most] = std::minmax_element(limits_.begin(), limits_.end());
  const int shift = std::max(0, static_cast<int>(std::bit_width(*most - *least)) - kClassBits);
  const uint32_t largest = *most;
  for (uint32_t& limit : limits_) limit = (largest - limit) >> shift;
  std::array<uint32_t, (1 << kClassBits) + 1> next{};
  for (const uint32_t limit : limits_) ++next[limit + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  ordered_.resize(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) ordered_[next[limits_[i]]++] = rows_[i];
  rows_.swap(ordered_);
}

void CellWorker::on_first(int64_t query, const uint32_t* places, const float* keys, int64_t count) {
  const uint32_t row = row_of_query(query);
  others_.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < others_.size(); ++i) others_[i] = row_of_place(places[i]);
  if (keys == nullptr) {
    found_.resize(others_.size());
    keys_.of(row, others_.data(), count, found_.data());
    keys = found_.data();
  }
  first_.clear();
  for (size_t i = 0; i < others_.size(); ++i) {
    if (others_[i] != row) first_.push_back(pack_neighbor(ordered_key(keys[i]), number_of(others_[i])));
  }
  const auto length = static_cast<size_t>(lists_.length());
  if (first_.size() > length) {
    std::nth_element(first_.begin(), first_.begin() + lists_.length(), first_.end());
    first_.resize(length);
  }
  std::sort(first_.begin(), first_.end());
  lists_.offer_sorted(row, first_.data(), static_cast<int64_t>(first_.size()));
}

void CellWorker::on_pair(const PairHit& hit) {
  if (queries_[hit.query] == rows_[static_cast<size_t>(hit.row)]) return;
  if (hit.for_query) lists_.prefetch_list(row_of_query(hit.query));
  waiting_[waiting_count_++] = {static_cast<int32_t>(hit.query), static_cast<int32_t>(hit.row), hit.lower,
                                hit.for_query, hit.for_row};
  if (waiting_count_ == kMostWaiting) settle();
}

// Computes the keys of the pairs that wait and offers them.
void CellWorker::settle() {
  const int64_t count = std::exchange(waiting_count_, 0);
  const bool needs_keys = !scan_->exact();
  if (needs_keys) put_queries_together(count);
  const Waiting* const first = waiting_.data();
  const Waiting* const end = first + count;
  const Waiting* ahead = first;
  for (const Waiting* at = first; at < end;) {
    const Waiting* next = at;
    while (next < end && next->query == at->query) ++next;
    for (; needs_keys && ahead < end && ahead < next + kKeysAhead; ++ahead) {
      keys_.prefetch(row_of_place(ahead->row));
    }
    offer(at, next);
    at = next;
  }
  for (const Waiting* pair = first; pair < end; ++pair) {
    if (pair->for_query) scan_->limit_query(pair->query, lists_.largest_key(row_of_query(pair->query)));
    if (pair->for_row) scan_->limit_row(pair->row, lists_.largest_key(row_of_place(pair->row)));
  }
}

// The pairs of a query come panel by panel, so that they stay in the order of their rows.
void CellWorker::put_queries_together(int64_t count) {
  std::array<int64_t, kQueryBlock + 1> next{};
  for (int64_t i = 0; i < count; ++i) ++next[static_cast<size_t>(waiting_[i].query) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (int64_t i = 0; i < count; ++i) together_[next[static_cast<size_t>(waiting_[i].query)]++] = waiting_[i];
  std::swap(waiting_, together_);
}

// Pairs of one query.
void CellWorker::offer(const Waiting* first, const Waiting* end) {
  const uint32_t query = row_of_query(first->query);
  if (scan_->exact()) {
    for (; first < end; ++first) offer(*first, query, row_of_place(first->row), first->lower);
    return;
  }
  const float largest = has_list(query) ? lists_.largest_key(query) : -kInfinity;
  others_.clear();
  pairs_.clear();
  for (; first < end; ++first) {
    const uint32_t row = row_of_place(first->row);
    const bool still = (first->for_query && first->lower <= largest) ||
                       (first->for_row && first->lower <= lists_.largest_key(row));
    if (!still) continue;
    others_.push_back(row);
    pairs_.push_back(first);
  }
  if (others_.empty()) return;
  found_.resize(others_.size());
  keys_.of(query, others_.data(), static_cast<int64_t>(others_.size()), found_.data());
  for (size_t i = 0; i < others_.size(); ++i) offer(*pairs_[i], query, others_[i], found_[i]);
}

void CellWorker::offer(const Waiting& pair, uint32_t query, uint32_t row, float key) {
  if (pair.for_query) lists_.offer(query, pack_neighbor(ordered_key(key), number_of(row)));
  if (pair.for_row) lists_.offer(row, pack_neighbor(ordered_key(key), number_of(query)));
}

}  // namespace kith
