// How norms stored in codes (kernels/codes/code_norm.hpp) affect products with a piece of a list, on the CPU.
//
// A key is |q|^2 - 2 q x + norm, which is |q - x|^2 + (norm - |x|^2): the second part is added to the vector's term,
// however the first is computed. It is computed in float64. Starting an f32 sum from a term T adds a rounding error
// relative to |T|; the float64 error, here and in the canonical key, is relative to (|q| + |x|)^2.
#pragma once

#include "core/reused_memory.hpp"
#include "ivf/model/ivf_model.hpp"

#include <cstdint>

namespace kith {

class NormTerms {
 public:
  explicit NormTerms(const IvfModel& model);

  bool used() const { return used_; }

  // Starts a new set of queries, which are then added one by one, in their original form.
  void start_queries() { query_norms_.clear(); }
  void add_query(const float* query);

  void start_rows();
  // The term of a vector. `square`: the squared norm of the vector that is multiplied. `decoded`: the decoded code, to
  // which the centre, if any, is added.
  float term(const uint8_t* code, const float* decoded, const float* centre, double square);

  // The error bound for the loaded queries and vectors; infinite where none holds.
  float error(int64_t query) const;

 private:
  const CodecView codec_;
  const bool used_;
  ReusedVector<float> held_;
  ReusedVector<double> query_norms_;
  double largest_term_ = 0;
  double largest_norm_ = 0;  // largest norm of a vector
};

}  // namespace kith
