#include "exact/dense_scan.hpp"

#include "core/slot.hpp"
#include "exact/dense_block.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFewestKeys = 64;  // before anything is concluded from them
// A key by itself takes as long as so many in a block.
constexpr int64_t kRowAlone = 4;
constexpr int64_t kSampled = 8;  // rows of a stretch

}  // namespace

DenseScan::DenseScan(const ScanContext& context, int64_t first_query, int64_t count, int64_t split, int slot)
    : context_(context),
      first_query_(first_query),
      split_(split),
      slot_(slot),
      from_(static_cast<size_t>(count)),
      scored_(static_cast<size_t>(count)),
      use_(static_cast<size_t>(count), ScreenUse(0)),
      samples_(context.plan.dense && context.user.takes_keys() && context.kept == nullptr),
      sample_(static_cast<size_t>(count), samples_) {}

bool DenseScan::begin(int64_t first, int64_t end) {
  first_ = first;
  end_ = end;
  bool tried = false;
  for (size_t q = 0; q < from_.size(); ++q) {
    scored_[q] = 0;
    if (sample_[q] && mostly_in_range(static_cast<int64_t>(q))) {
      from_[q] = first;
      continue;
    }
    sample_[q] = false;
    from_[q] = !context_.plan.dense || use_[q].screens_next() ? end : first;
    tried = tried || from_[q] == end;
  }
  return tried;
}

void DenseScan::count(int64_t query, int64_t row, int64_t scored) {
  const auto q = static_cast<size_t>(query);
  scored_[q] += scored;
  if (!context_.plan.dense || scored == 0 || scored_[q] < kFewestKeys || scored_[q] * kRowAlone < row - first_) return;
  from_[q] = std::min(row, end_);
}

bool DenseScan::finish() {
  std::vector<int64_t> queries;
  bool any = false;
  for (int64_t from = first_; from < end_;) {
    int64_t next = end_;
    queries.clear();
    for (size_t q = 0; q < from_.size(); ++q) {
      if (from_[q] == from) queries.push_back(static_cast<int64_t>(q));
      if (from_[q] > from) next = std::min(next, from_[q]);
    }
    if (!queries.empty()) scan(queries, from, end_);
    any = any || !queries.empty();
    from = next;
  }
  for (size_t q = 0; q < from_.size(); ++q) {
    if (from_[q] == first_) continue;  // it was not tried
    use_[q].count(1, from_[q] < end_ ? 1 : 0);
    sample_[q] = samples_ && from_[q] < end_;
  }
  return any;
}

bool DenseScan::mostly_in_range(int64_t query) const {
  uint32_t rows[kSampled];
  float keys[kSampled];
  for (int64_t i = 0; i < kSampled; ++i) rows[i] = static_cast<uint32_t>(first_ + i * (end_ - first_) / kSampled);
  canonical_keys_cpu(context_.kind, context_.queries.canonical(first_query_ + query), context_.base, rows, kSampled,
                     keys);
  const float most = context_.user.threshold(first_query_ + query);
  return std::count_if(keys, keys + kSampled, [&](float key) { return key <= most; }) * kRowAlone >= kSampled;
}

void DenseScan::scan(const std::vector<int64_t>& queries, int64_t first, int64_t end) {
  const int64_t cols = context_.base.cols();
  if (memory_.bytes() == 0) memory_ = HostBuffer(dense_block_bytes(cols), "a block of pairs", context_.resources);
  std::byte* const scratch = memory_.data();
  float* const keys = Slot<float>{canonical_block_bytes(cols)}.in(scratch);
  CanonicalQuery some[kDenseQueries];
  for (int64_t at = 0; at < static_cast<int64_t>(queries.size()); at += kDenseQueries) {
    const int64_t count = std::min<int64_t>(kDenseQueries, static_cast<int64_t>(queries.size()) - at);
    const int64_t* const mine = queries.data() + at;
    for (int64_t i = 0; i < count; ++i) some[i] = context_.queries.canonical(first_query_ + mine[i]);
    for (int64_t row = first; row < end; row += kDenseRows) {
      const MatrixView rows = context_.base.slice(row, std::min(kDenseRows, end - row));
      canonical_block_cpu({context_.kind, some, count, rows, keys, kDenseRows}, scratch);
      for (int64_t i = 0; i < count; ++i) push(mine[i], keys + i * kDenseRows, rows.rows(), row);
      context_.meter.checkpoint();
    }
  }
}

void DenseScan::push(int64_t query, const float* keys, int64_t count, int64_t first_row) {
  constexpr int64_t kGroup = CandidateList::kLargestGroup;
  CandidateList& list = context_.list(first_query_ + query, split_);
  if (context_.user.takes_keys() && context_.kept == nullptr) {
    if (list.size() > 0) context_.make_room(first_query_ + query, split_, slot_);  // earlier rows first
    const auto row = static_cast<uint32_t>(context_.first_row + first_row);
    return context_.user.take_keys(first_query_ + query, row, keys, count, slot_);
  }
  context_.exchange_threshold(first_query_ + query, &list);
  for (int64_t i = 0; i < count; i += kGroup) {
    const int64_t before = list.size();
    list.push_exact_group(keys + i, std::min(kGroup, count - i), list.exact_limit(),
                          static_cast<uint32_t>(first_row + i));
    if (context_.kept != nullptr) list.keep_since(before, [&](uint32_t row) { return context_.keeps_row(row); });
    if (!list.has_room()) context_.make_room(first_query_ + query, split_, slot_);
  }
}

}  // namespace kith
