// The steps of training that a backend does: the loop over them (local_search_training.cpp) is the same for all. A
// backend holds the training rows' codes and costs.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/codebooks.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class LocalSearchSteps {
 public:
  virtual ~LocalSearchSteps() = default;

  // Codes of the rows for these codebooks.
  virtual void encode(const Codebooks& books, const AdditiveEncoding& encoding) = 0;
  // The sum of the costs that encode() has left.
  virtual double cost() = 0;
  // The best codebooks for the codes: books x 2^bits x cols, in host memory.
  virtual void update(double lambda, float* codebooks) = 0;
};

struct TrainingShape {
  MatrixView rows;  // f32, one after the other, in host memory; they stay where they are
  int64_t books = 0;
  int bits = 8;
};

// Codes begin as zeros.
std::unique_ptr<LocalSearchSteps> make_local_search_steps_cpu(const TrainingShape& shape, const Resources& resources);
// What they hold on the CPU, and take for their larger step.
Footprint local_search_steps_footprint(const TrainingShape& shape, const Resources& resources);
std::unique_ptr<LocalSearchSteps> make_local_search_steps_cuda(const TrainingShape& shape, int device,
                                                               const Resources& resources);

// The best codebooks for given codes: with B the rows' indicators of codewords, (B^T B + lambda I) C = B^T X.
//
// B^T B holds how often two codewords occur together: it is counted. Codewords that no row uses become zero. Sums are
// in float64 and in the order of the rows; the same bits for any number of threads.
//
// Cost: rows x books^2 counts, rows x books x cols additions, codewords^3 / 3 multiply-adds. Memory: 8 bytes for each
// pair of codewords (26 MB for 7 books of 256, 118 MB for 15), and 8 for each value of the codebooks.
struct CodedRows {
  const float* rows = nullptr;     // count x cols
  const uint8_t* codes = nullptr;  // count x books
  int64_t count = 0;
  int64_t cols = 0;
  int64_t books = 0;
  int bits = 8;
};

// `codebooks`: books x 2^bits x cols.
void update_codebooks(const CodedRows& coded, double lambda, float* codebooks, const Resources& resources);

}  // namespace kith
