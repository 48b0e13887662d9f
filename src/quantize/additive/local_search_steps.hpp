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
std::unique_ptr<LocalSearchSteps> make_local_search_steps_cuda(const TrainingShape& shape, int device,
                                                               const Resources& resources);

}  // namespace kith
