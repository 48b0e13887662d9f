#include "ivf/model/norm_terms.hpp"

#include "kernels/codes/code_norm.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"

#include <cmath>
#include <limits>

namespace kith {

NormTerms::NormTerms(const IvfModel& model)
    : codec_(model.codec->view()),
      used_(has_norm_keys(codec_.format, key_kind(model.metric))),
      held_(used_ ? static_cast<size_t>(codec_.format.cols) : 0) {}

void NormTerms::add_query(const float* query) {
  if (used_) query_norms_.push_back(std::sqrt(canonical_squared_norm_cpu(query, codec_.format.cols)));
}

void NormTerms::start_rows() {
  largest_term_ = 0;
  largest_norm_ = 0;
}

float NormTerms::term(const uint8_t* code, const float* decoded, const float* centre, double square) {
  const int64_t cols = codec_.format.cols;
  if (centre != nullptr) {
    for (int64_t c = 0; c < cols; ++c) held_[static_cast<size_t>(c)] = centre[c] + decoded[c];
    decoded = held_.data();
  }
  const double held = canonical_squared_norm_cpu(decoded, cols);
  const double term = square + (static_cast<double>(code_norm(codec_, code)) - held);
  // Written so that a NaN becomes the largest and stays so.
  if (!(std::abs(term) <= largest_term_)) largest_term_ = std::abs(term);
  if (!(held <= largest_norm_ * largest_norm_)) largest_norm_ = std::sqrt(held) * (1 + 0x1p-40);
  return static_cast<float>(term);
}

float NormTerms::error(int64_t query) const {
  const int64_t cols = codec_.format.cols;
  const double norms = query_norms_[static_cast<size_t>(query)] + largest_norm_;
  if (!(norms * norms < kLargestSquaredNorm && largest_term_ < kLargestSquaredNorm)) {
    return std::numeric_limits<float>::infinity();
  }
  const double lost = 1.03 * product_error(tile_sum_roundings(cols)) * largest_term_;
  const double definition = static_cast<double>(cols + 64) * 0x1p-51 * norms * norms;
  return static_cast<float>((lost + definition + underflow_error(cols)) * 1.001);
}

}  // namespace kith
