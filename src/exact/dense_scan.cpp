#include "exact/dense_scan.hpp"

#include "core/host_array.hpp"
#include "kernels/distance/distance_block_cpu.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kRows = 512;  // of a block
constexpr int64_t kQueries = 96;
constexpr int64_t kFewestKeys = 64;  // before anything is concluded from them
// A key by itself takes as long as so many in a block.
constexpr int64_t kAlone = 4;

}  // namespace

int64_t DenseScan::bytes_for(int64_t cols) {
  return canonical_block_bytes(cols) + array_bytes<float>(kRows * kQueries);
}

DenseScan::DenseScan(const ScanContext& context, int64_t first_query, int64_t count, int64_t split, int slot)
    : context_(context),
      first_query_(first_query),
      split_(split),
      slot_(slot),
      from_(static_cast<size_t>(count)),
      scored_(static_cast<size_t>(count)),
      use_(static_cast<size_t>(count), ScreenUse(0)) {}

bool DenseScan::begin(int64_t first, int64_t end) {
  first_ = first;
  end_ = end;
  bool tried = false;
  for (size_t q = 0; q < from_.size(); ++q) {
    scored_[q] = 0;
    from_[q] = !context_.plan.dense || use_[q].screens_next() ? end : first;
    tried = tried || from_[q] == end;
  }
  return tried;
}

void DenseScan::count(int64_t query, int64_t row, int64_t scored) {
  const auto q = static_cast<size_t>(query);
  scored_[q] += scored;
  if (!context_.plan.dense || scored == 0 || scored_[q] < kFewestKeys || scored_[q] * kAlone < row - first_) return;
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
    if (from_[q] > first_) use_[q].count(1, from_[q] < end_ ? 1 : 0);  // it was tried
  }
  return any;
}

void DenseScan::scan(const std::vector<int64_t>& queries, int64_t first, int64_t end) {
  const int64_t cols = context_.base.cols();
  if (memory_.bytes() == 0) memory_ = HostBuffer(bytes_for(cols), "a block of pairs", context_.resources);
  std::byte* const scratch = memory_.data();
  auto* const keys = reinterpret_cast<float*>(scratch + canonical_block_bytes(cols));
  CanonicalQuery some[kQueries];
  for (int64_t at = 0; at < static_cast<int64_t>(queries.size()); at += kQueries) {
    const int64_t count = std::min<int64_t>(kQueries, static_cast<int64_t>(queries.size()) - at);
    const int64_t* const mine = queries.data() + at;
    for (int64_t i = 0; i < count; ++i) some[i] = context_.queries.canonical(first_query_ + mine[i]);
    for (int64_t row = first; row < end; row += kRows) {
      const MatrixView rows = context_.base.slice(row, std::min(kRows, end - row));
      canonical_block_cpu({context_.kind, some, count, rows, keys, kRows}, scratch);
      for (int64_t i = 0; i < count; ++i) push(mine[i], keys + i * kRows, rows.rows(), row);
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
