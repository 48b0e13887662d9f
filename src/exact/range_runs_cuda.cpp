#include "exact/range_runs_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "cuda/error.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace kith {
namespace {

constexpr uint32_t kNoExtremes[2] = {0xFFFFFFFFu, 0};

}  // namespace

DeviceRangeRuns::DeviceRangeRuns(int64_t rows, std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : row_bits_(static_cast<int>(std::bit_width(static_cast<uint64_t>(rows - 1)))),
      context_(std::move(context)),
      resources_(resources),
      extremes_(std::size(kNoExtremes), "the rows in range", context_, resources) {
  clear();
}

void DeviceRangeRuns::clear() {
  parts_.clear();
  runs_.clear();
  counted_ = 0;
  by_key_ = by_row_ = single_ = true;
  overflowed_ = false;
  words_.reset();
  sorted_ = nullptr;
  sorted_with_ = DeviceArray<uint64_t>();
  sort_memory_ = DeviceBuffer();
  context_->copy_values(extremes(), kNoExtremes, std::size(kNoExtremes));
}

uint64_t* DeviceRangeRuns::add(int64_t rows, Order order) {
  if (words_) throw InvalidState("rows in range were added as words, which are the only part");
  counted_ += rows;
  if (overflowed_ || rows == 0) return nullptr;
  try {
    parts_.emplace_back(rows, "the rows in range", context_, resources_);
  } catch (const OutOfMemory&) {
    overflowed_ = true;
    parts_.clear();
    runs_.clear();
    return nullptr;
  }
  by_key_ = by_key_ && order == Order::by_key;
  by_row_ = by_row_ && order == Order::by_row;
  return parts_.back().data();
}

std::optional<RangeWord> DeviceRangeRuns::only_words(int64_t queries, const uint32_t (&extremes)[2]) const {
  const RangeWord word = word_of(extremes);
  const bool tells_all = word.query_bits() >= 31 || queries <= int64_t{1} << word.query_bits();
  return parts_.empty() && !overflowed_ && tells_all ? std::optional(word) : std::nullopt;
}

uint64_t* DeviceRangeRuns::add_words(int64_t rows, const RangeWord& word) {
  uint64_t* const room = add(rows, Order::by_row);
  if (room != nullptr) words_ = word;
  return room;
}

void DeviceRangeRuns::add_run(uint32_t query, uint32_t count, int64_t at) {
  if (count == 0) return;
  runs_.push_back({parts_.back().data() + at, 0, count, query});
}

std::vector<int64_t> DeviceRangeRuns::place(int64_t queries) {
  std::vector<int64_t> offsets(static_cast<size_t>(queries) + 1, 0);
  for (const PlacedRun& run : runs_) {
    int64_t& count = offsets[run.query + 1];
    single_ = single_ && count == 0;
    count += run.count;
  }
  for (size_t q = 1; q < offsets.size(); ++q) offsets[q] += offsets[q - 1];
  std::vector<int64_t> places(offsets.begin(), offsets.end() - 1);
  for (PlacedRun& run : runs_) {
    run.to = places[run.query];
    places[run.query] += run.count;
  }
  return offsets;
}

// The word for all rows. A query has one bit at least, since a key has up to 32 and a row 31.
RangeWord DeviceRangeRuns::word() const {
  uint32_t found[2];
  context_->copy_values(found, extremes(), std::size(found));
  context_->synchronize();
  return word_of(found);
}

RangeWord DeviceRangeRuns::word_of(const uint32_t (&extremes)[2]) const {
  RangeWord word;
  word.least = extremes[0];
  word.key_bits = static_cast<int>(std::bit_width(extremes[1] - extremes[0]));
  word.row_bits = row_bits_;
  return word;
}

void DeviceRangeRuns::sort_only_words(int64_t queries) {
  DeviceArray<uint64_t> other(counted_, "sorting the rows in range", context_, resources_);
  DeviceBuffer memory(sort_words_bytes(counted_), "sorting the rows in range", context_, resources_);
  uint64_t* const both[2] = {parts_.back().data(), other.data()};
  const int query_bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(queries - 1)));
  const int end_bit = words_->row_bits + words_->key_bits + query_bits;
  const int sorted =
      sort_words(both, counted_, words_->row_bits, end_bit, memory.data(), memory.bytes(), context_->stream());
  sorted_ = both[sorted];
  sorted_with_ = std::move(other);
  sort_memory_ = std::move(memory);
}

void DeviceRangeRuns::sort_ahead(int64_t queries) {
  // Above this, sorting ahead could leave no room for the result, and allocating it later is cheap beside the sort.
  constexpr int64_t kMostAhead = int64_t{1} << 27;
  if (!words_ || sorted_ != nullptr || counted_ > kMostAhead) return;
  try {
    sort_only_words(queries);
  } catch (const OutOfMemory&) {  // write() will find the same
  }
}

void DeviceRangeRuns::sort(const std::vector<int64_t>& offsets, const PlacedRun* on_device,
                           const RangeOutput& out) const {
  const RangeWord form = word();
  const auto queries = static_cast<int64_t>(offsets.size()) - 1;
  // As many queries at a time as a word tells apart, and no more than the sort counts.
  const int64_t most = form.query_bits() >= 31 ? queries : std::min(queries, int64_t{1} << form.query_bits());
  int64_t largest = 0;
  for (int64_t q = 0; q < queries; q += most) {
    largest =
        std::max(largest, offsets[static_cast<size_t>(std::min(q + most, queries))] - offsets[static_cast<size_t>(q)]);
  }
  const DeviceArray<uint64_t> words[2] = {{largest, "sorting the rows in range", context_, resources_},
                                          {largest, "sorting the rows in range", context_, resources_}};
  const DeviceBuffer memory(sort_words_bytes(largest), "sorting the rows in range", context_, resources_);
  uint64_t* const both[2] = {words[0].data(), words[1].data()};
  // Runs are sorted by query, so that those of some queries lie together.
  auto next = runs_.begin();
  for (int64_t q = 0; q < queries; q += most) {
    const int64_t last = std::min(q + most, queries);
    const auto end = std::partition_point(next, runs_.end(), [&](const PlacedRun& run) { return run.query < last; });
    const int64_t first = offsets[static_cast<size_t>(q)];
    const int64_t count = offsets[static_cast<size_t>(last)] - first;
    launch_pack_runs(on_device + (next - runs_.begin()), end - next, static_cast<uint32_t>(q), first, form, both[0],
                     context_->stream());
    const int query_bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(last - q - 1)));
    const int sorted = sort_words(both, count, by_row_ ? form.row_bits : 0, form.row_bits + form.key_bits + query_bits,
                                  memory.data(), memory.bytes(), context_->stream());
    launch_write_words(both[sorted], count, form, {out.metric, out.ids + first, out.distances + first},
                       context_->stream());
    next = end;
  }
}

bool DeviceRangeRuns::write(int64_t queries, int64_t* offsets, const RangeOutput& out) {
  const std::vector<int64_t> places = place(queries);
  context_->copy_values(offsets, places.data(), static_cast<int64_t>(places.size()));
  if (runs_.empty()) return true;
  if (words_) {
    try {
      if (sorted_ == nullptr) sort_only_words(queries);
      launch_write_words(sorted_, counted_, *words_, out, context_->stream());
      return true;
    } catch (const OutOfMemory&) {
      return false;
    }
  }
  const auto earlier = [](const PlacedRun& a, const PlacedRun& b) { return a.query < b.query; };
  if (!std::is_sorted(runs_.begin(), runs_.end(), earlier)) std::stable_sort(runs_.begin(), runs_.end(), earlier);
  try {
    const auto count = static_cast<int64_t>(runs_.size());
    const DeviceArray<PlacedRun> table(count, "the rows in range", context_, resources_);
    context_->copy_values(table.data(), runs_.data(), count);
    if (single_ && by_key_) {
      launch_write_runs(table.data(), count, out, context_->stream());
    } else {
      sort(places, table.data(), out);
    }
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }
}

}  // namespace kith
