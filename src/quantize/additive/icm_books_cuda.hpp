// Codebooks on a device, as the kernels that search for codes take them (icm_task_cuda.hpp).
//
// Memory there: 8 bytes for each value of the codebooks, and where products are used 6 more for each of 256 codewords a
// book and 64 or 128 columns.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_buffer.hpp"
#include "quantize/additive/icm_task_cuda.hpp"
#include "quantize/additive/search_books.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Whether products can be used: for the codebooks' size, and values whose squares f32 holds.
bool has_icm_products(const SearchBooks& search);

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

// Pairwise tables on a device. They are made on the host. Memory there: 2 bytes for each pair of codewords, and 4 for
// each value of the codebooks.
class IcmTablesOnDevice {
 public:
  // Copies on the context's stream, and waits.
  IcmTablesOnDevice(const SearchBooks& search, const std::shared_ptr<const DeviceContext>& context,
                    const Resources& resources);
  static int64_t bytes_for(const Codebooks& books);

  const IcmTables& tables() const { return tables_; }
  int64_t bytes() const { return buffer_.bytes(); }

 private:
  IcmTables tables_;
  DeviceBuffer buffer_;
};

}  // namespace kith
