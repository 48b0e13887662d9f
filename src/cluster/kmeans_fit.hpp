// A complete fit, from memory or a file: sample, survey, first centres, loop, and the best of n_init runs.
#pragma once

#include <kith/kmeans.hpp>

#include "cluster/data/data_scale.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/planned.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_info.hpp"

#include <functional>

namespace kith {

KMeansRows rows_of(const MatrixView& view);
KMeansRows rows_of(const VectorFile& file);

// The device that `resources` asks for, `automatic` settled: where the rows are, if that is a GPU's memory.
// InvalidArgument where there is no such device, or the rows lie on another.
Device resolve_kmeans_device(const KMeansShape& shape, const KMeansRequest& request, const Resources& resources);

using PlannedKMeans = Planned<KMeansPlan>;
PlannedKMeans plan_kmeans(const KMeansShape& shape, const KMeansRequest& request, const Resources& resources);

// A model with room for `clusters` centres, and for labels of `rows` rows.
KMeansModel empty_model(int64_t clusters, int64_t rows, int64_t cols, const Resources& resources);

// All arguments but the rows' values must have been checked. `sharing`: how other processes share the fit.
KMeansModel fit_kmeans(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input,
                       const Resources& resources, const KMeansSharing* sharing = nullptr);

// The least memory of a fit, results included, for errors that name a limit.
Footprint fit_footprint(const KMeansParams& params, const RowsInfo& rows, const Resources& resources);
// The same for assigning labels, without results.
Footprint assign_footprint(const KMeansParams& params, const RowsInfo& rows, const Resources& resources);

// Converts results for rows times 2^exponent to those of the rows themselves.
void scale_back(KMeansModel& model, int exponent);

struct AssignTask {
  const KMeansParams& params;
  MatrixView centres;
  KMeansRows rows;
  bool wants_keys = true;  // else only labels
};

// Labels and keys of consecutive rows. Keys are of rows and centres times 2^exponent (data_scale.hpp).
struct AssignedRows {
  int64_t first = 0;
  int64_t count = 0;
  const int32_t* labels = nullptr;
  const float* keys = nullptr;  // null where they were not wanted
  int exponent = 0;
};

// The same in arrays on a GPU, for unscaled rows: distances,
// or inner products for spherical. Either may be null.
struct AssignedOnDevice {
  int32_t* labels = nullptr;
  float* distances = nullptr;
  MemorySpace space;
};
void assign_kmeans(const AssignTask& task, const AssignedOnDevice& out, const Resources& resources);

// Receives the results of all rows, in order. Values are checked if `check_finite`.
using KeySink = std::function<void(const AssignedRows& rows)>;
void assign_kmeans(const AssignTask& task, const KeySink& sink, const Resources& resources);

}  // namespace kith
