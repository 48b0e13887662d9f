// What an inverted file has learned: the centres of its lists and the code of its vectors. Immutable once trained.
//
// A vector belongs to the first list by (key of the metric to the list's centre, list). Its code is of the vector, or
// of what is left when the centre is taken off (`residual`, one f32 subtraction a value). What the index then holds is
// the vector x' that the code stands for: decode(code), or centre + decode(code), one f32 addition a value.
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

// What a GPU keeps of a model, for all versions of an index that share it: the centres, laid out for searches, and the
// code's values (gpu_model_cuda.hpp).
class GpuModel {
 public:
  virtual ~GpuModel() = default;
  virtual int64_t bytes() const = 0;  // on the device
};

struct IvfModel {
  Metric metric = Metric::l2;
  MatrixBuffer centres;  // lists x cols, f32; no rows: a single list without a centre
  std::shared_ptr<const Codec> codec;
  bool residual = false;                                             // needs centres
  std::shared_ptr<CodeWords> words = std::make_shared<CodeWords>();  // what searches keep of a product code
  std::shared_ptr<Placed<GpuModel>> on_gpus = std::make_shared<Placed<GpuModel>>();

  int64_t lists() const { return std::max<int64_t>(centres.rows(), 1); }
  int64_t cols() const { return codec->format().cols; }
  bool has_centres() const { return centres.rows() > 0; }
  const float* centre(int64_t list) const { return typed_row<float>(centres.view(), list); }
  // What is added to a decoded code of that list; null where nothing is.
  const float* base_of(int64_t list) const { return residual ? centre(list) : nullptr; }
  int64_t bytes() const;  // on the host

  // InvalidArgument or Unsupported for parts that do not go together.
  void validate() const;
};

// The metrics that lists can be searched by.
void check_ivf_metric(Metric metric);

// How many lists a search looks at where nothing is said: the root of their number, at most 64.
int64_t default_probes(int64_t lists);

inline constexpr int64_t kOneList = -1;  // a single list without a centre

struct IvfSpec {
  int64_t lists = 0;          // 0: the root of expected_rows, or of the training rows where that is 0; kOneList
  int64_t expected_rows = 0;  // that will be added
  CodeRecipe code;
  bool residual = true;  // ignored for stored codes and a single list: these have none
  // How centres are trained; what is not said here follows from the number of lists.
  int64_t iterations = 0;
  int64_t most_points_per_centre = 0;  // a sample of so many rows for each centre
  std::optional<KMeansInit> init = {};
};

// What k-means of that many lists is given: up to 256 rows for each centre, but no more than 2^24 in all unless that
// leaves fewer than kFewPointsPerCentre; 20 iterations, above 2^14 lists 10, from random rows. Where there are up to
// 2^14 lists and a quarter of the rows is enough for each centre, 10 iterations over a quarter come first and 8 over
// all follow, in half the time: centres move most at first, and a part of the rows tells where to. k-means++ makes
// lists evener, so that the same probes look at fewer vectors and find fewer neighbours, and takes longer (all measured
// in bench/results/cpu/list_starts_aarch64.txt).
struct CentreTraining {
  int64_t rows = 0;
  int64_t iterations = 0;
  KMeansInit init = KMeansInit::random;
  int64_t coarse_rows = 0;  // 0: all passes are over all rows
  int64_t coarse_iterations = 0;
};
CentreTraining centre_training(const IvfSpec& spec, int64_t lists, int64_t training_rows);

// Fewer rows than this for each centre are worth a line in the log.
inline constexpr int64_t kFewPointsPerCentre = 39;

// The lists of a spec, for so many training rows.
int64_t ivf_lists(const IvfSpec& spec, int64_t training_rows);

// The centres by k-means over a sample of the rows, spherical for inner_product and cosine; then the code, of another
// use of a sample. The rows are f32 or widened to it. Memory: the larger sample as f32, where the rows lie
// (training_sample.hpp), or, where the host's limit has no room for that, a piece of it at a time
// (train_centres_streamed, train_code): the same bytes, in more time.
std::shared_ptr<const IvfModel> train_ivf(const IvfSpec& spec, Metric metric, RowSource& rows, uint64_t seed,
                                          const Resources& resources);
// What that takes at least.
Footprint train_ivf_footprint(const IvfSpec& spec, Metric metric, const RowsInfo& rows, const Resources& resources);

}  // namespace kith
