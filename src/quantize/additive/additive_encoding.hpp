// Codes of rows by local search, on the CPU: which form of it is used, blocks of rows and threads.
//
// The forms give the same codes (icm_engine.hpp). Tables pay for themselves after some tens of rows and take memory in
// proportion to the square of the codewords; products need neither. Rows beyond the codebooks' grid, and rows whose
// terms do not fit 16 bits, take another form than their block.
//
// Cost of a row by tables: codewords x cols multiply-adds for its unary terms, and up to rounds x sweeps x books steps
// of books x 2^bits additions of 16 bits. Memory of a thread: 2 bytes for each codeword and row of its block.
//
// A step of all rows of a block uses the tables of one book, 786 KB for 7 books of 256: with a few thousand rows a
// block these come from the second-level cache, and only the row's own 512 bytes from further away.
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "quantize/additive/codebooks.hpp"
#include "quantize/additive/local_search.hpp"

#include <cstdint>

namespace kith {

enum class SearchForm : uint8_t { automatic, tables, products, direct };

struct AdditiveEncoding {
  LocalSearchPlan search;
  CodeStart start = CodeStart::greedy;
  int64_t first_row = 0;    // the number of the first row, for its draws
  bool by_content = false;  // a row's number is a hash of its values: where it lies does not matter
  SearchForm form = SearchForm::automatic;
  int64_t block_rows = 0;  // searched together; 0: as many as is fastest, and fewer where memory is short
};

// The form for so many rows, in what memory is left.
SearchForm choose_search_form(const Codebooks& books, const LocalSearchPlan& search, int64_t rows,
                              const Resources& resources);
// What encoding takes in a form, with blocks of so many rows. Of the codebooks the shape alone counts.
Footprint additive_encoding_footprint(const Codebooks& books, SearchForm form, int64_t block_rows,
                                      const Resources& resources);

// Rows of any dtype in host memory. `codes`: a byte for each row and book, in too where they are the start. `costs`:
// of the rows, or null.
void encode_additive(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows, uint8_t* codes,
                     float* costs, const Resources& resources);

// The same bytes on a GPU, batch by batch; Unsupported without CUDA. Rows of any dtype, on the host or that device;
// `codes` and `costs`, which may be null, likewise. Complete when it returns.
void encode_additive_cuda(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows,
                          uint8_t* codes, float* costs, int device, const Resources& resources);

}  // namespace kith
