// The trained parts of an inverted file: the centres of its lists and the codec of its vectors. Immutable once trained.
//
// A vector belongs to the first list by (key of the metric to the list's centre, list). Its code encodes the vector, or
// its difference from the centre (`residual`, one f32 subtraction per value). The stored vector x' is what the code
// decodes to: decode(code), or centre + decode(code), one f32 addition per value.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/placed.hpp"
#include "core/typed_row.hpp"
#include "ivf/model/code_words.hpp"
#include "quantize/codec.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// A model's copy on a GPU, shared by all versions of an index with that model: the centres, laid out for searches, and
// the codec's tables (gpu_model_cuda.hpp).
class GpuModel {
 public:
  virtual ~GpuModel() = default;
  virtual int64_t bytes() const = 0;  // on the device
};

struct IvfModel {
  Metric metric = Metric::l2;
  MatrixBuffer centres;  // lists x cols, f32; no rows for a single list without a centre
  std::shared_ptr<const Codec> codec;
  bool residual = false;                                             // requires centres
  std::shared_ptr<CodeWords> words = std::make_shared<CodeWords>();  // of a product code, kept for searches
  std::shared_ptr<Placed<GpuModel>> on_gpus = std::make_shared<Placed<GpuModel>>();

  int64_t lists() const { return std::max<int64_t>(centres.rows(), 1); }
  int64_t cols() const { return codec->format().cols; }
  bool has_centres() const { return centres.rows() > 0; }
  const float* centre(int64_t list) const { return typed_row<float>(centres.view(), list); }
  // The vector to add to decoded codes of that list; null for none.
  const float* base_of(int64_t list) const { return residual ? centre(list) : nullptr; }
  int64_t bytes() const;  // on the host

  // Throws InvalidArgument or Unsupported if the parts do not fit together.
  void validate() const;
};

// Throws Unsupported for a metric by which lists cannot be searched.
void check_ivf_metric(Metric metric);

// The default number of lists that a search visits: the square root of their number, at most 64.
int64_t default_probes(int64_t lists);

inline constexpr int64_t kOneList = -1;  // a single list without a centre

struct IvfSpec {
  int64_t lists = 0;          // 0: square root of expected_rows, or of the training rows if that is 0; or kOneList
  int64_t expected_rows = 0;  // that will be added in total
  CodeRecipe code;
  bool residual = true;  // ignored for stored codes and a single list, which have none
  // How centres are trained; defaults depend on the number of lists.
  int64_t iterations = 0;
  int64_t most_points_per_centre = 0;  // size of the sample, in rows per centre
  std::optional<KMeansInit> init = {};
};

// The settings of k-means for that many lists: up to 256 rows per centre, but no more than 2^24 in total unless that
// leaves fewer than kFewPointsPerCentre; 20 iterations, or 10 above 2^14 lists, starting from random rows. For up to
// 2^14 lists, if a quarter of the rows is enough, 10 iterations over a quarter are followed by 8 over all rows, in half
// the time: centres move most in the first iterations, for which a part of the rows suffices. k-means++ makes lists of
// more even size, so that the same probes visit fewer vectors and find fewer neighbours, and takes longer (all measured
// in bench/results/cpu/list_starts_aarch64.jsonl).
struct CentreTraining {
  int64_t rows = 0;
  int64_t iterations = 0;
  KMeansInit init = KMeansInit::random;
  int64_t coarse_rows = 0;  // 0: all passes use all rows
  int64_t coarse_iterations = 0;
};
CentreTraining centre_training(const IvfSpec& spec, int64_t lists, int64_t training_rows);

// With fewer rows per centre than this, training logs a warning.
inline constexpr int64_t kFewPointsPerCentre = 39;

// The number of lists of a spec, given the number of training rows.
int64_t ivf_lists(const IvfSpec& spec, int64_t training_rows);

// Trains the centres by k-means over a sample of the rows, spherical for inner_product and cosine; then the code, on
// another sample. The rows are f32 or converted to it. Memory: the larger sample as f32, in the memory of the rows
// (training_sample.hpp), or, if the host's limit has no room for that, a piece of it at a time
// (train_centres_streamed, train_code): the result is identical, but training takes longer.
std::shared_ptr<const IvfModel> train_ivf(const IvfSpec& spec, Metric metric, RowSource& rows, uint64_t seed,
                                          const Resources& resources);
// The least memory of train_ivf().
Footprint train_ivf_footprint(const IvfSpec& spec, Metric metric, const RowsInfo& rows, const Resources& resources);

}  // namespace kith
