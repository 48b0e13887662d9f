// The search for codes of batches of rows on a device: the choice of the kernel.
//
// Products are used on Hopper for up to 4,096 columns; otherwise tables, if they pay off and there is memory for them.
// The direct search takes everything else: rows outside the codebooks' grid, and rows whose terms overflow the tables.
// All give the same codes.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "cuda/device_buffer.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/icm_task_cuda.hpp"
#include "quantize/additive/search_books.hpp"
#include "rows/device_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Whether products can be used: depends on the codebooks' size, and on whether squares of values fit f32.
bool has_icm_products(const SearchBooks& search);

// Codebooks on a device, in the forms that the search kernels read (icm_task_cuda.hpp).
// Memory: 8 bytes per value of the codebooks; for products 6 more for each of 256 codewords per book and each column,
// rounded up to a multiple of 64.
class IcmBooksOnDevice {
 public:
  // Copies on the context's stream, and waits.
  IcmBooksOnDevice(const SearchBooks& search, bool products, const std::shared_ptr<const DeviceContext>& context,
                   const Resources& resources);

  const IcmBooks& books() const { return books_; }
  int64_t bytes() const { return buffer_.bytes(); }

 private:
  IcmBooks books_;
  DeviceBuffer buffer_;
};

class IcmSearch {
 public:
  // `rows`: the expected number. The codebooks are not used after it returns. Unsupported if the requested form is not
  // possible.
  IcmSearch(const Codebooks& books, const AdditiveEncoding& encoding, int64_t rows,
            const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

  // Device memory for a batch of `rows` rows, beside codes and costs.
  int64_t workspace_bytes(int64_t rows) const;
  // A number of rows that loads all multiprocessors equally.
  int64_t good_batch() const { return good_batch_; }
  SearchForm form() const { return form_; }  // for rows on the grid
  int64_t bytes() const;                     // device memory that it owns
  int64_t rounds() const { return encoding_.search.rounds; }

  // All enqueue. `first`: number of the first row. `codes`: a byte per row and book; input as well if the start is
  // given. `costs`: of the codes, or null.
  void prepare(const DeviceRowsView& rows, int64_t first, std::byte* workspace, cudaStream_t stream) const;
  // Rounds from .. from + count - 1 for the rows of the last prepare(); `starts`: begin with the start.
  void search(int64_t rows, int64_t from, int64_t count, bool starts, uint8_t* codes, float* costs,
              std::byte* workspace, cudaStream_t stream) const;

 private:
  struct Workspace;

  IcmRows rows_of(int64_t count, std::byte* workspace) const;
  IcmList list_of(int64_t count, std::byte* workspace) const;

  const AdditiveEncoding encoding_;
  IcmGrid grid_;
  SearchForm form_ = SearchForm::direct;
  int64_t good_batch_ = 0;
  int multiprocessors_ = 0;
  int direct_blocks_ = 0;
  std::unique_ptr<IcmBooksOnDevice> books_;
  IcmTables tables_;           // for the form `tables`
  DeviceBuffer table_buffer_;  // 2 bytes per pair of codewords, and 4 per value of the codebooks
  DeviceArray<IcmStep> schedule_;
  int steps_ = 0;
};

}  // namespace kith
