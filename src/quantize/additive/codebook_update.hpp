// The best codebooks for given codes: with B the rows' indicators of codewords, (B^T B + lambda I) C = B^T X.
//
// B^T B holds how often two codewords occur together: it is counted. Codewords that no row uses become zero. Sums are
// in float64 and in the order of the rows; the same bits for any number of threads.
//
// Cost: rows x books^2 counts, rows x books x cols additions, codewords^3 / 3 multiply-adds. Memory: 8 bytes for each
// pair of codewords (26 MB for 7 books of 256, 118 MB for 15), and 8 for each value of the codebooks.
#pragma once

#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

struct CodedRows {
  const float* rows = nullptr;     // count x cols
  const uint8_t* codes = nullptr;  // count x books
  int64_t count = 0;
  int64_t cols = 0;
  int64_t books = 0;
  int bits = 8;
};

int64_t codebook_update_bytes(const CodedRows& coded, int threads);

// `codebooks`: books x 2^bits x cols.
void update_codebooks(const CodedRows& coded, double lambda, float* codebooks, const Resources& resources);

}  // namespace kith
