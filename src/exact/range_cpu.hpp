// Range search on the CPU: whatever the scanner cannot exclude gets its canonical distance, and stays if that is in
// range. The threshold never falls, so that time grows with what is found.
#pragma once

#include <kith/host_buffer.hpp>

#include "exact/cpu_scanner.hpp"
#include "exact/range_backend.hpp"
#include "kernels/select/range_hits.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class RangeCpu final : public RangeBackend, private CandidateUser {
 public:
  // Rows with keys up to `most` are in range. Hits are kept in memory of `results`, which the plan does not count.
  RangeCpu(const SettledSearch& search, float most, const Resources& results);

  void begin(const MatrixView& queries, int64_t first_query) override { scanner_.load(queries, first_query); }
  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    scanner_.scan(base, first_row, ready, meter, *this);
  }
  CollectedHits finish(ProgressMeter& meter) override { return hits_.collect(scanner_.queries(), meter); }
  bool hand_out(int64_t* offsets, const SortedUse& use, ProgressMeter& meter) override {
    return hits_.hand_out(scanner_.queries(), offsets, use, meter);
  }
  bool overflowed() const override { return hits_.overflowed(); }
  int64_t counted() const override { return hits_.counted(); }
  void clear() override { hits_.clear(); }
  void only_count() override { hits_.only_count(); }

 private:
  float threshold(int64_t) const override { return most_; }
  bool ties_may_count() const override { return true; }
  bool takes_keys() const override { return true; }
  void take_keys(int64_t query, uint32_t first_row, const float* keys, int64_t count, int slot) override;
  void make_room(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) override {
    finish(list, query, first_row, slot, score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) override;

  void put_within(const float* keys, int64_t within, uint32_t row, uint64_t* to) const;

  const float most_;
  CpuScanner scanner_;
  HostBuffer scratch_memory_;
  std::vector<CandidateScratch> scratch_;  // one for each thread
  RangeHits hits_;
};

}  // namespace kith
