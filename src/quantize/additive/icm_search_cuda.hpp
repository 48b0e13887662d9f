// The search for codes on a device, for batches of rows that lie there: which kernel takes which rows.
//
// Rows beyond the codebooks' grid, and all rows where products are of no use, take the direct search.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_buffer.hpp"
#include "kernels/distance/device_rows.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/icm_books_cuda.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class IcmSearch {
 public:
  // `form`: automatic, products or direct. The codebooks may go when it returns.
  IcmSearch(const Codebooks& books, const AdditiveEncoding& encoding,
            const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

  // Device memory that a batch of so many rows needs beside codes and costs.
  int64_t workspace_bytes(int64_t rows) const;
  // Rows for which every multiprocessor has the same to do.
  int64_t good_batch() const { return good_batch_; }
  bool uses_products() const { return products_; }
  int64_t rounds() const { return encoding_.search.rounds; }

  // All enqueue. `first`: the number of the first row. `codes`, a byte for each row and book, are the start where that
  // is given. `costs`: of the codes, or null.
  void prepare(const DeviceRowsView& rows, int64_t first, std::byte* workspace, cudaStream_t stream) const;
  // Rounds from .. from + count - 1 of the search, of rows that prepare() has had; `starts`: these are the first.
  void search(int64_t rows, int64_t from, int64_t count, bool starts, uint8_t* codes, float* costs,
              std::byte* workspace, cudaStream_t stream) const;

 private:
  struct Places;

  IcmRows rows_of(int64_t count, std::byte* workspace) const;
  IcmList list_of(int64_t count, std::byte* workspace) const;

  const AdditiveEncoding encoding_;
  IcmGrid grid_;
  bool products_ = false;
  int64_t good_batch_ = 0;
  int direct_blocks_ = 0;
  std::unique_ptr<IcmBooksOnDevice> books_;
  DeviceBuffer schedule_;
  int steps_ = 0;
};

}  // namespace kith
