// What a backend does for k-means; the loops around it (lloyd, mini_batch) are the same for all.
//
//   set_centres(centres)             the centres that the next rows are assigned to
//   assign(rows, labels, keys)       exactly the nearest (nearest_centre.hpp); labels come with guesses or kNoLabel
//   clear_sums, add, sums            the sums of each centre's rows, in the order that centre_sums.hpp defines
//
// Rows are handed over in pieces of whole kSumBlock blocks, in their order; a piece is valid until the call returns.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/centre_sums.hpp"
#include "cluster/kmeans_plan.hpp"
#include "core/parallel_for.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class KMeansBackend {
 public:
  virtual ~KMeansBackend() = default;
  // The values of `centres` must not change before the next call of set_centres.
  virtual void set_centres(const MatrixView& centres) = 0;
  virtual void assign(const MatrixView& rows, int32_t* labels, float* keys, ProgressMeter& meter) = 0;
  virtual void clear_sums() = 0;
  virtual void add(const MatrixView& rows, const int32_t* labels, const float* weights, ProgressMeter& meter) = 0;
  // Of everything added since clear_sums(); may be changed.
  virtual SumsView sums() = 0;
};

// `origin` is a vector near the data's mean, any will do: what the fast products subtract to lose fewer digits.
std::unique_ptr<KMeansBackend> make_kmeans_cpu(const KMeansProblem& problem, const KMeansPlan& plan,
                                               std::vector<float> origin, const Resources& resources);

// On the device that was resolved.
std::unique_ptr<KMeansBackend> make_kmeans_backend(const KMeansProblem& problem, const KMeansPlan& plan,
                                                   std::vector<float> origin, const Resources& resources);

}  // namespace kith
