// Encoding by local search on the CPU: choice of the form, blocks of rows, threads.
//
// All forms give the same codes (icm_engine.hpp). Tables pay off after some tens of rows and take memory proportional
// to the square of the number of codewords; products need neither. Rows outside the codebooks' grid, and rows whose
// terms overflow 16 bits, use another form than their block.
//
// Cost of a row by tables: codewords x cols multiply-adds for its unary terms, and up to rounds x sweeps x books steps
// of books x 2^bits additions of 16 bits. Memory of a thread: 2 bytes per codeword and row of its block.
//
// A step of all rows of a block uses the tables of one book, 786 KB for 7 books of 256. With a few thousand rows per
// block these stay in the second-level cache, and only the row's own 512 bytes come from beyond it.
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
  int64_t first_row = 0;    // number of the first row, for random numbers
  bool by_content = false;  // use a hash of a row's values as its number, so that its place does not matter
  SearchForm form = SearchForm::automatic;
  int64_t block_rows = 0;  // searched together; 0: the fastest number, or fewer if memory is short
};

// The fastest form for `rows` rows within the free memory.
SearchForm choose_search_form(const Codebooks& books, const LocalSearchPlan& search, int64_t rows,
                              const Resources& resources);
// The memory of encoding by a form with blocks of `block_rows` rows. Depends only on the shape of the codebooks.
Footprint additive_encoding_footprint(const Codebooks& books, SearchForm form, int64_t block_rows,
                                      const Resources& resources);

// Rows of any dtype in host memory. `codes`: a byte per row and book; input as well if the start is given. `costs`: one
// per row, or null.
void encode_additive(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows, uint8_t* codes,
                     float* costs, const Resources& resources);

// The same bytes on a GPU, batch by batch; Unsupported without CUDA. Rows of any dtype, `codes` and `costs` (or null)
// may be on the host or that device. Complete when it returns.
void encode_additive_cuda(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows,
                          uint8_t* codes, float* costs, int device, const Resources& resources);

}  // namespace kith
