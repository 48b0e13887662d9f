// One step of the search for codes: the best codeword of one book, given those of the others (iterated conditional
// modes). The best one is the first codeword c by (canonical squared distance of r and c, number), where r is the row
// minus the codewords of all other books. The forms differ in how they find it:
//
//   products  f32 products of residuals and the book; exact costs of the codewords that these do not rule out
//   tables    sums of rounded inner products from tables; exact costs of those not ruled out (the paper's form)
//   direct    exact costs of all codewords, in float64: for rows outside the grid, and to test the others
//
// All give the same codes. An engine belongs to one thread and holds one block of rows.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/pairwise_tables.hpp"
#include "quantize/additive/search_books.hpp"
#include "quantize/additive/unary_terms.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Which books' codes are subtracted: all others, or for a greedy start those before; later books then count with their
// mean.
enum class IcmOthers : uint8_t { all, before };

class IcmEngine {
 public:
  virtual ~IcmEngine() = default;

  // Contiguous rows as f32, on the grid except for the direct engine. They must stay valid while they are used.
  // Nothing is copied.
  void load(const float* rows) { rows_ = rows; }
  // The new codes of a book: out[i] for row rows[i]. `codes`: `books` bytes per row of the block.
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

// An engine for rows and residuals on the grid.
class GridIcm : public IcmEngine {
 public:
  float cost(int64_t row, const uint8_t* codes) const final;

 protected:
  // `floats` of scratch, at least a row.
  GridIcm(const SearchBooks& books, int64_t floats, const Resources& resources)
      : IcmEngine(books), scratch_(floats, "residuals", resources) {}

  // The row minus its codewords, except that of `book`, if there is such a book.
  void take_off_codewords(int64_t row, const uint8_t* codes, int64_t book, IcmOthers others, float* residual) const;

  HostArray<float> scratch_;
};

std::unique_ptr<IcmEngine> make_direct_icm(const SearchBooks& books);
std::unique_ptr<IcmEngine> make_product_icm(const SearchBooks& books, const Resources& resources);

// Steps by pairwise tables (pairwise_tables.hpp): no multiplications, and the cost of a step does not depend on the
// columns. Exact costs decide among the codewords that the rounded sums cannot tell apart.
class TableIcm final : public GridIcm {
 public:
  TableIcm(const SearchBooks& books, const PairwiseTables& tables, const UnaryTerms& terms, int64_t block_rows,
           const Resources& resources);

  // Before load(): the next block's rows, moved, and their norms, in slices of up to UnaryTerms::kSliceRows. fits[i]
  // becomes 0 for a row that tables cannot serve, which is left out of the block; the others keep their order.
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
