// What norms that codes hold (kernels/codes/code_norm.hpp) change in the products of a piece of a list, on the CPU.
//
// A key is |q|^2 - 2 q x + norm, which is |q - x|^2 + (norm - |x|^2): the second part goes to the vector's term, however
// the first is computed. It is made in float64. What an f32 sum that begins with a term T loses more is a share of |T|;
// what float64 loses, here and in the canonical key, a share of (|q| + |x|)^2.
#pragma once

#include "ivf/model/ivf_model.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class NormTerms {
 public:
  explicit NormTerms(const IvfModel& model);

  bool used() const { return used_; }

  // The queries that are loaded, one by one, as they were given.
  void start_queries() { query_norms_.clear(); }
  void add_query(const float* query);

  void start_rows();
  // The term of a vector whose square, of what is multiplied, is known. `decoded`: what decoding gave, to which the
  // centre is added where there is one.
  float term(const uint8_t* code, const float* decoded, const float* centre, double square);

  // For the queries and vectors loaded; infinite where nothing is certain.
  float error(int64_t query) const;

 private:
  const CodecView codec_;
  const bool used_;
  std::vector<float> held_;
  std::vector<double> query_norms_;
  double largest_term_ = 0;
  double largest_norm_ = 0;  // of a vector
};

}  // namespace kith
