// Steps of the search by pairwise tables (pairwise_tables.hpp): nothing is multiplied, and the cost of a step does not
// depend on the columns. Exact costs decide among the codewords that the rounded sums leave in doubt.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/icm_engine.hpp"
#include "quantize/additive/pairwise_tables.hpp"
#include "quantize/additive/unary_terms.hpp"

#include <cstdint>

namespace kith {

class TableIcm final : public IcmEngine {
 public:
  TableIcm(const SearchBooks& books, const PairwiseTables& tables, const UnaryTerms& terms, int64_t block_rows,
           const Resources& resources);
  static int64_t bytes_for(const Codebooks& books, int64_t block_rows);

  // The next block's rows, slice by slice, before load(): up to UnaryTerms::kSliceRows of them, moved, and their norms.
  // fits[i] becomes 0 where tables are not fit for a row: it is not of the block. Those that are stay in their order.
  void start_block() { taken_ = 0; }
  void take(const float* moved, const double* norms, int64_t count, uint8_t* fits);

  void load(const float* rows, int64_t count) override;
  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override;
  float cost(int64_t row, const uint8_t* codes) const override;

 private:
  uint8_t settle(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* candidates,
                 int64_t count);

  const SearchBooks& books_;
  const PairwiseTables& tables_;
  const UnaryTerms& terms_;
  const int64_t cols_;
  const int64_t block_rows_;
  const float* rows_ = nullptr;
  int64_t taken_ = 0;
  HostArray<int16_t> unary_;    // books x rows x width: a step reads one book's
  HostArray<int16_t> windows_;  // books x rows
  HostArray<float> products_;   // of a slice and a book
  HostArray<float> residual_;
  HostArray<uint16_t> counts_;
  HostArray<uint32_t> doubtful_;
};

}  // namespace kith
