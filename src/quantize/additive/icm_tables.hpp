// Steps of the search by pairwise tables (pairwise_tables.hpp): nothing is multiplied, and the cost of a step does not
// depend on the columns. Exact costs decide among the codewords that the rounded sums leave in doubt.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/icm_engine.hpp"
#include "quantize/additive/pairwise_tables.hpp"

#include <cstdint>

namespace kith {

class TableIcm final : public IcmEngine {
 public:
  TableIcm(const SearchBooks& books, const PairwiseTables& tables, const Resources& resources);
  static int64_t bytes_for(const Codebooks& books);

  // The next block's rows, one by one, before load(): products of the row with all codewords (after the move), and its
  // norm. False for a row that tables are not fit for: it is not of the block.
  void start_block() { taken_ = 0; }
  bool take(const float* products, double norm);

  void load(const float* rows, int64_t count) override;
  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override;
  float cost(int64_t row, const uint8_t* codes) const override;

 private:
  uint8_t settle(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* candidates,
                 int64_t count);

  const SearchBooks& books_;
  const PairwiseTables& tables_;
  const int64_t cols_;
  const float* rows_ = nullptr;
  int64_t taken_ = 0;
  HostArray<int16_t> unary_;    // rows x books x width
  HostArray<int16_t> windows_;  // rows x books
  HostArray<float> residual_;
  HostArray<uint16_t> counts_;
  HostArray<uint32_t> doubtful_;
};

}  // namespace kith
