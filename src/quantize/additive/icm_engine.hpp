// One step of the search for codes: the best codeword of one book, given those of the others (iterated conditional
// modes). What is best is defined without arithmetic: with r the row less the codewords of all other books, the first
// codeword c by (canonical squared distance of r and c, number).
//
//   products  residuals times the book, in f32, and exact costs of what the products cannot rule out
//   tables    sums of rounded inner products that were looked up, and exact costs likewise (the paper's form)
//   direct    exact costs of all codewords, in float64: for rows beyond the grid, and to test the others
//
// All give the same codes. An engine is one thread's, and holds one block of rows.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/pairwise_tables.hpp"
#include "quantize/additive/search_books.hpp"
#include "quantize/additive/unary_terms.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Which books' codes count: all others, or, for a greedy start, those before; the books behind it are then represented
// by their mean.
enum class IcmOthers : uint8_t { all, before };

class IcmEngine {
 public:
  virtual ~IcmEngine() = default;

  // Rows one after the other, in their dtype-free form: on the grid, or anything for the direct engine. They stay where
  // they are while they are used.
  void load(const float* rows) { rows_ = rows; }
  // The new codes of a book, out[i] for row rows[i]; `codes`: books bytes for each row of the block.
  virtual void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
                    uint8_t* out) = 0;
  // The canonical squared distance of a row and the sum of its codewords.
  virtual float cost(int64_t row, const uint8_t* codes) const = 0;

 protected:
  explicit IcmEngine(const SearchBooks& books) : search_(books), books_(books.books()) {}

  const SearchBooks& search_;
  const Codebooks& books_;
  const float* rows_ = nullptr;
};

// One whose rows and residuals are on the grid.
class GridIcm : public IcmEngine {
 public:
  float cost(int64_t row, const uint8_t* codes) const final;

 protected:
  // `floats` of scratch, at least a row.
  GridIcm(const SearchBooks& books, int64_t floats, const Resources& resources)
      : IcmEngine(books), scratch_(floats, "residuals", resources) {}

  // A row less the codewords of its codes, without that of `book`, where that is one.
  void take_off_codewords(int64_t row, const uint8_t* codes, int64_t book, IcmOthers others, float* residual) const;

  HostArray<float> scratch_;
};

std::unique_ptr<IcmEngine> make_direct_icm(const SearchBooks& books);
std::unique_ptr<IcmEngine> make_product_icm(const SearchBooks& books, const Resources& resources);

// Steps of the search by pairwise tables (pairwise_tables.hpp): nothing is multiplied, and the cost of a step does not
// depend on the columns. Exact costs decide among the codewords that the rounded sums leave in doubt.
class TableIcm final : public GridIcm {
 public:
  TableIcm(const SearchBooks& books, const PairwiseTables& tables, const UnaryTerms& terms, int64_t block_rows,
           const Resources& resources);

  // The next block's rows, slice by slice, before load(): up to UnaryTerms::kSliceRows of them, moved, and their norms.
  // fits[i] becomes 0 where tables are not fit for a row: it is not of the block. Those that are stay in their order.
  void start_block() { taken_ = 0; }
  void take(const float* moved, const double* norms, int64_t count, uint8_t* fits);

  void step(int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* rows, int64_t count,
            uint8_t* out) override;

 private:
  uint8_t settle(int64_t row, int64_t book, IcmOthers others, const uint8_t* codes, const uint32_t* candidates,
                 int64_t count);

  const PairwiseTables& tables_;
  const UnaryTerms& terms_;
  const int64_t block_rows_;
  int64_t taken_ = 0;
  HostArray<int16_t> unary_;    // books x rows x width: a step reads one book's
  HostArray<int16_t> windows_;  // books x rows
  HostArray<float> products_;   // of a slice and a book
  HostArray<uint16_t> counts_;
  HostArray<uint32_t> doubtful_;
};

}  // namespace kith
