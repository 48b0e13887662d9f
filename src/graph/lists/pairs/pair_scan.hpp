// Two small sets of rows compared with each other, all pairs, on one thread of a CPU: what may matter to either side is
// handed out with bounds for its key.
//
// Panels are multiplied as in exact search (kernels/panels), which knows a limit for each query. A row of the other
// side has one too: a panel's values are compared with the largest that its rows have, and what passes is looked at row
// by row. So rows of similar limits should lie together.
//
// Cost: 2 operations for each pair and column, at the rate of bytes where the format is one; packing of both sets.
#pragma once

#include "graph/lists/pairs/pair_rows.hpp"

#include <cstdint>
#include <limits>
#include <memory>

namespace kith {

// A pair may matter to its query, to its row, or to both. The bounds are equal where they are the key itself.
struct PairHit {
  int64_t query = 0;
  int64_t row = 0;
  float lower = 0;
  float upper = 0;
  bool for_query = false;
  bool for_row = false;
};

class PairHits {
 public:
  virtual ~PairHits() = default;
  // May lower limits.
  virtual void on_pair(const PairHit& hit) = 0;
};

// Rows among which the first of a query are: places, ascending, and their keys; none where bounds are no keys.
class PairFirsts {
 public:
  virtual ~PairFirsts() = default;
  virtual void on_first(int64_t query, const uint32_t* rows, const float* keys, int64_t count) = 0;
};

// In place of a limit: nothing matters.
inline constexpr float kNoKey = std::numeric_limits<float>::quiet_NaN();

class PairScan {
 public:
  virtual ~PairScan() = default;
  // Rows of the collection, as queries and as rows: they are called by their places below. Limits are kNoKey then.
  virtual void set_queries(const uint32_t* rows, int64_t count) = 0;
  virtual void set_rows(const uint32_t* rows, int64_t count) = 0;
  // The largest key that matters; infinite: every one does.
  virtual void limit_query(int64_t query, float key) = 0;
  virtual void limit_row(int64_t row, float key) = 0;
  // Whether bounds are keys.
  virtual bool exact() const = 0;
  virtual void run(PairHits& hits) = 0;
  // The same, but pairs that are not the nearest of their query, or of their row where it has a limit, may be left out
  // for that side. `same`: the rows are the queries, and a row does not count for itself. For sets of no more than
  // kMostNearest.
  virtual void run_nearest(PairHits& hits, bool /*same*/) { run(hits); }
  // For each query rows among which are the first `wanted` of all by (key, row), whatever the limits: all values are
  // computed, and the smallest picked. Limits mean nothing afterwards.
  virtual void run_first(int64_t wanted, PairFirsts& firsts) = 0;
  // Memory that the two take beside the scan's own, when they are first called.
  virtual void make_room_for_nearest() {}
  virtual void make_room_for_first(int64_t /*wanted*/) {}
};

// For run_first: queries whose values are kept at once.
inline constexpr int64_t kFirstQueries = 32;

// For run_nearest: what it keeps grows with the square.
inline constexpr int64_t kMostNearest = 256;

// How floats are compared: rounded to bytes where that is faster, as it is where few pairs pass; or as they are, which
// leaves fewer pairs open.
enum class FloatPairs : uint8_t { may_be_rounded, as_they_are };
// As they are, where many pairs pass and columns are not too many for products of floats to take the time.
FloatPairs choose_float_pairs(int64_t cols, bool many_pass);

// With room for so many of each. The collection must outlive it.
std::unique_ptr<PairScan> make_pair_scan(const PairRows& rows, int64_t most_queries, int64_t most_rows,
                                         const Resources& resources, FloatPairs floats = FloatPairs::may_be_rounded);
std::unique_ptr<PairScan> make_byte_pair_scan(const PairRows& rows, int64_t most_queries, int64_t most_rows,
                                              const Resources& resources);
std::unique_ptr<PairScan> make_custom_pair_scan(const PairRows& rows, int64_t most_queries, int64_t most_rows,
                                                const Resources& resources);

}  // namespace kith
