// The steps of training that differ between backends; the loop over them (local_search_training.cpp) is shared. A
// backend holds the codes and costs of the training rows.
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

  // Encodes the rows with these codebooks.
  virtual void encode(const Codebooks& books, const AdditiveEncoding& encoding) = 0;
  // The sum of the costs after the last encode().
  virtual double cost() = 0;
  // Computes the best codebooks for the codes: books x 2^bits x cols, in host memory.
  virtual void update(double lambda, float* codebooks) = 0;
};

struct TrainingShape {
  MatrixView rows;  // f32, contiguous, in host memory; not copied
  int64_t books = 0;
  int bits = 8;
};

// Codes are zero at first.
std::unique_ptr<LocalSearchSteps> make_local_search_steps_cpu(const TrainingShape& shape, const Resources& resources);
// Their memory on the CPU, including that of the larger step.
Footprint local_search_steps_footprint(const TrainingShape& shape, const Resources& resources);
std::unique_ptr<LocalSearchSteps> make_local_search_steps_cuda(const TrainingShape& shape, int device,
                                                               const Resources& resources);

// The best codebooks C for given codes: (B^T B + lambda I) C = B^T X, where B says which codewords each row uses.
//
// B^T B is computed by counting how often two codewords occur together. Unused codewords become zero. Sums are float64,
// in the order of the rows: the same bits for any number of threads.
//
// Cost: rows x books^2 counts, rows x books x cols additions, codewords^3 / 3 multiply-adds. Memory: 8 bytes per pair
// of codewords (26 MB for 7 books of 256, 118 MB for 15), and 8 per value of the codebooks.
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
