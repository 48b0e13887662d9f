// Base class of scans by lookup tables, shared by product codes, sums of codewords and codes of their own.
#pragma once

#include "core/divide.hpp"
#include "core/host_arrays.hpp"
#include "core/infinity.hpp"
#include "core/reused_memory.hpp"
#include "ivf/scan/list_product.hpp"
#include "kernels/lists/code_screen.hpp"
#include "kernels/lists/code_tables.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// Scans a piece of a list by sums of table entries, after a screen with byte tables if the processor has one
// (kernels/lists/code_screen.hpp). Derived classes fill the tables.
//
// A norm stored as a number after the parts of a code has no table: it is added to the sum, so the screen's limit is
// the query's limit minus the smallest norm of the piece. Per-vector terms of a screen (list_screen.hpp) give every
// vector a limit of its own.
class CodeTableScan : public ListProduct {
 protected:
  // A query in a list.
  struct Loaded {
    float offset = 0;
    float error = 0;  // without the error from added norms
    int64_t table = 0;
    float constant = 0;  // added to sums before they are divided by a norm
    float tilt = 0;      // error of a sum before the division; or, with scales, for a scale of 1
  };

  // Per-vector values: from a screen, a term to add to the sum or a norm to divide it by; or from the codes themselves,
  // a scale that multiplies the sum and a shift added after that.
  enum class Terms : uint8_t { none, added, divisors, scaled };

 public:
  // `format`: codes made of parts, such as product codes, each part with a table of 2^bits entries. `adds_norms`: adds
  // the norms stored after the parts, as numbers.
  CodeTableScan(const CodeFormat& format, bool adds_norms, Terms terms, const ListProductShape& shape,
                const Resources& resources);

  void use_list(int64_t list) final { first_ = firsts_[static_cast<size_t>(list)]; }
  void load_rows(const ListRows& rows) final;
  float offset(int64_t query) const final { return held_->loaded[first_ + query].offset; }
  float error(int64_t query) const final { return error_of(first_ + query) + spread_errors_[query % kHitQueries]; }
  void scan(int64_t group, int64_t count, const float* limits, ListHits& hits) final;

 protected:
  const CodeFormat& format() const { return format_; }
  int64_t entries() const { return format_.parts * format_.codewords(); }  // per table
  float* table(int64_t i) const { return held_->sums.data() + i * entries(); }
  // Reads the scales and shifts of codes that have them.
  virtual void read_scales(const uint8_t* /*codes*/, int64_t /*count*/, float* /*scales*/, float* /*shifts*/) const {}
  // Called when a table has been filled.
  void round_table(int64_t i);
  // Begins the lists of a call; ends each list, with its number of queries.
  void start_lists();
  Loaded& loaded(int64_t i) const { return held_->loaded[i]; }
  int64_t loaded_count() const { return firsts_.back(); }
  void end_list(int64_t queries) { firsts_.push_back(firsts_.back() + queries); }
  // The table of a query of the batch, the same for every list: fill(table) computes it on first use, and it is kept
  // for the lists of a call. For callers that number tables by query.
  template <typename Fill>
  int64_t table_of(uint32_t number, const Fill& fill) {
    const auto there = std::find(owners_.begin(), owners_.end(), int64_t{number});
    auto at = static_cast<size_t>(there - owners_.begin());
    if (there == owners_.end()) {
      at = static_cast<size_t>(std::min_element(used_.begin(), used_.end()) - used_.begin());
      owners_[at] = number;
      fill(table(static_cast<int64_t>(at)));
      round_table(static_cast<int64_t>(at));
    }
    used_[at] = call_;
    return static_cast<int64_t>(at);
  }

 private:
  float norm_of(int64_t row) const;
  float error_of(int64_t query) const {
    const Loaded& own = held_->loaded[query];
    return own.error + norm_error_ + (terms_kind_ == Terms::scaled ? own.tilt * largest_scale_ : 0.0f);
  }
  void load_scales();
  void gather(const ListRows& rows);
  float most_scaled(int64_t query, float limit, const ListHits& hits);
  void scan_scaled(int64_t first, int64_t count, const float* limits, ListHits& hits);
  double most_steps(int64_t query, float limit, const ListHits& hits);
  double steps_that_hold(int64_t query, int64_t enough, bool with_terms);
  // The largest sum of bytes of a vector that may pass: start + slope * term. Without a bound all pass.
  struct TermLimit {
    float start = 0;
    float slope = 0;
    bool screens = false;
  };
  TermLimit term_limit(int64_t query, float limit, const ListHits& hits);
  void scan_with_terms(int64_t first, int64_t count, const float* limits, ListHits& hits);
  void add_up(int64_t query, float limit, int64_t count, int64_t place, ListHits& hits);
  const uint8_t* bytes(int64_t query) const { return held_->bytes.data() + held_->loaded[query].table * table_bytes_; }

  const CodeFormat format_;
  const bool adds_norms_;
  const Terms terms_kind_;
  float largest_term_ = 0;
  const float* terms_ = nullptr;           // of the loaded vectors
  ScreenLook look_;
  float spread_errors_[kHitQueries] = {};  // of the vectors that passed, if sums are divided by norms
  ReusedVector<int64_t> owners_;           // per table: its query in the batch
  ReusedVector<int64_t> used_;             // per table: its last use
  int64_t call_ = 0;
  const int64_t table_bytes_;
  const bool screens_;
  const BlockScreen screen_block_;
  bool cleared_ = false;  // whether the byte tables' padding has been zeroed
  // In one block, so that a short search makes one allocation.
  struct Arrays {
    Arrays(ArrayPlaces& places, const CodeTableScan& scan, const ListProductShape& shape);

    PlacedArray<float> sums;
    PlacedArray<uint8_t> bytes;
    PlacedArray<ByteTables> rounded;
    PlacedArray<Loaded> loaded;
    PlacedArray<uint16_t> steps;
    PlacedArray<float> values;    // the same
    PlacedArray<float> scales;    // of the vectors loaded, where codes have them,
    PlacedArray<float> inverses;  // 1 / scale, a NaN where that is nothing,
    PlacedArray<float> shifts;    // and shifts
    PlacedArray<uint8_t> codes;  // of vectors at arbitrary places,
    PlacedArray<float> terms;    // and their terms
  };
  const HostArrays<Arrays> held_;
  float largest_scale_ = 0;
  float largest_shift_ = 0;
  ReusedVector<int64_t> firsts_ = {0};  // per list: its first query; then the end
  int64_t first_ = 0;                  // first query of the current list
  const uint8_t* codes_ = nullptr;
  int64_t rows_ = 0;
  // The range of the loaded vectors' norms; 0 if codes have none.
  double least_norm_ = 0;
  double most_norm_ = 0;
  float norm_error_ = 0;
};

}  // namespace kith
