// The search for codes on a device, for batches of rows that lie there: which kernel takes which rows.
//
// Products are used on Hopper for up to 4,096 columns; else tables, where they pay for themselves and there is memory
// for them. Rows beyond the codebooks' grid, rows whose terms do not fit tables, and what is left take the direct
// search.
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

// Whether products can be used: for the codebooks' size, and values whose squares f32 holds.
bool has_icm_products(const SearchBooks& search);

// Codebooks on a device, as the kernels that search for codes take them (icm_task_cuda.hpp).
// Memory there: 8 bytes for each value of the codebooks, and where products are used 6 more for each of 256 codewords a
// book and each column of a multiple of 64.
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
  // `rows`: so many are expected. The codebooks may go when it returns. Unsupported for a form that was asked for and
  // cannot be.
  IcmSearch(const Codebooks& books, const AdditiveEncoding& encoding, int64_t rows,
            const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

  // Device memory that a batch of so many rows needs beside codes and costs.
  int64_t workspace_bytes(int64_t rows) const;
  // Rows for which every multiprocessor has the same to do.
  int64_t good_batch() const { return good_batch_; }
  SearchForm form() const { return form_; }  // that rows on the grid take
  int64_t bytes() const;                     // of device memory that it holds
  int64_t rounds() const { return encoding_.search.rounds; }

  // All enqueue. `first`: the number of the first row. `codes`, a byte for each row and book, are the start where that
  // is given. `costs`: of the codes, or null.
  void prepare(const DeviceRowsView& rows, int64_t first, std::byte* workspace, cudaStream_t stream) const;
  // Rounds from .. from + count - 1 of the search, of rows that prepare() has had; `starts`: these are the first.
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
  IcmTables tables_;           // where that is the form
  DeviceBuffer table_buffer_;  // 2 bytes for each pair of codewords, and 4 for each value of the codebooks
  DeviceArray<IcmStep> schedule_;
  int steps_ = 0;
};

}  // namespace kith
