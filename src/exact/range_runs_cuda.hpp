// range_runs.hpp in a GPU's memory: what was found stays there, and is put together, sorted and written out there.
//
// Memory: 8 bytes for each row found; 16 more while they are sorted, where that is needed, or 8 where all were found at
// once. All work is enqueued on the context's stream.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "kernels/rerank/range_order_cuda.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kith {

class DeviceRangeRuns {
 public:
  // Row numbers are below `rows`.
  DeviceRangeRuns(int64_t rows, std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // The order of a part's runs.
  enum class Order : uint8_t {
    by_key,  // sorted
    by_row,  // in the order of the rows, which come after those of all parts before
  };
  // Counts the rows of a part, and gives room for them; null where they are only counted, or none. A query has one run
  // in it, `at` so many rows.
  uint64_t* add(int64_t rows, Order order);
  void add_run(uint32_t query, uint32_t count, int64_t at);
  // In the place of all parts, where this is the only one: rows of queries 0, 1, ... in their order, as words that are
  // sorted where they lie. None where there are parts already, or a word is too short.
  std::optional<RangeWord> only_words(int64_t queries, const uint32_t (&extremes)[2]) const;
  uint64_t* add_words(int64_t rows, const RangeWord& word);
  // The least and the largest ordered key of all: whoever fills a part keeps them.
  uint32_t* extremes() const { return extremes_.data(); }

  bool overflowed() const { return overflowed_; }
  int64_t counted() const { return counted_; }
  void clear();
  void only_count() { overflowed_ = true; }

  // Sorts what write() will write, where that is one part of words, not too many. After the last part.
  void sort_ahead(int64_t queries);
  // Each query's rows, sorted, and where they begin: `queries` + 1 offsets. False where there is no memory to sort in.
  bool write(int64_t queries, int64_t* offsets, const RangeOutput& out);

 private:
  // Places for the runs; returns the offsets.
  std::vector<int64_t> place(int64_t queries);
  void sort(const std::vector<int64_t>& offsets, const PlacedRun* on_device, const RangeOutput& out) const;
  // Throws OutOfMemory where there is no memory for it.
  void sort_only_words(int64_t queries);
  RangeWord word() const;
  RangeWord word_of(const uint32_t (&extremes)[2]) const;

  const int row_bits_;
  std::shared_ptr<const DeviceContext> context_;
  Resources resources_;
  DeviceArray<uint32_t> extremes_;
  std::vector<DeviceArray<uint64_t>> parts_;
  std::vector<PlacedRun> runs_;
  int64_t counted_ = 0;
  bool by_key_ = true;  // all parts are
  bool by_row_ = true;  // all parts are
  bool single_ = true;  // no query has two runs
  bool overflowed_ = false;
  std::optional<RangeWord> words_;     // the form of the only part
  DeviceArray<uint64_t> sorted_with_;  // what its words are sorted with
  DeviceBuffer sort_memory_;           // the sort's own
  const uint64_t* sorted_ = nullptr;
};

}  // namespace kith
