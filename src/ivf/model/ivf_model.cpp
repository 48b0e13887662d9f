#include "ivf/model/ivf_model.hpp"

#include <kith/error.hpp>
#include <kith/kmeans.hpp>

#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/model/norm_training.hpp"
#include "ivf/model/training_sample.hpp"
#include "kernels/distance/canonical.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace kith {
namespace {

constexpr uint64_t kCentreStream = 0x69766663;  // draws the rows on which centres are trained
constexpr uint64_t kCoarseStream = 0x69766673;  // draws the rows of the first, coarse passes
constexpr uint64_t kCodeStream = 0x69766670;    // draws the rows on which the code is trained
constexpr int64_t kCodeRows = 1 << 16;          // 256 rows per codeword, for 256 codewords
constexpr int64_t kMostPointsPerCentre = 256;
constexpr int64_t kManyPoints = 1 << 24;  // training rows in total, unless that is too few per centre
constexpr int64_t kManyLists = 1 << 14;   // above this, fewer iterations
constexpr int64_t kCoarseShare = 4;       // the coarse passes use one row in this many

bool spherical(Metric metric) { return metric == Metric::inner_product || metric == Metric::cosine; }

KMeansParams centre_params(const CentreTraining& training, Metric metric, int64_t lists, uint64_t seed) {
  KMeansParams params;
  params.clusters = lists;
  params.iterations = training.coarse_rows > 0 ? training.coarse_iterations : training.iterations;
  params.init = training.init;
  params.seed = seed;
  params.spherical = spherical(metric);
  params.compute_labels = false;
  return params;
}

// Runs k-means over up to `most` rows, starting from `before` if the parameters ask for it.
MatrixBuffer fit_centres(const KMeansParams& params, Metric metric, RowSource& rows, int64_t most,
                         const CounterRng& rng, const MatrixView& before, const Resources& resources) {
  const int64_t lists = params.clusters;
  const bool here = rows.space().host_readable();
  const auto fitting = [&] { return centre_training_footprint(params, rows.info(), most, resources); };
  const KMeansInput input{{}, before};
  if (here && !sample_fits(std::min(rows.rows(), most), rows.info().cols, fitting, resources)) {
    return train_centres_streamed(params, metric, {rows, most, rng}, input, resources);
  }
  TrainingSample sample(rows, most, rng, {fitting, metric == Metric::cosine}, resources);
  if (metric == Metric::cosine) sample.make_unit_length(resources);  // spherical k-means only uses directions
  KMeans kmeans(params);
  kmeans.fit(sample.view(), input, resources);
  const KMeansSnapshot fitted = kmeans.snapshot();
  MatrixBuffer centres(DType::f32, lists, rows.info().cols, "the centres", resources);
  for (int64_t i = 0; i < lists; ++i) {
    std::memcpy(centres.mutable_view().row(i), fitted.centres.row(i),
                static_cast<size_t>(centres.cols()) * sizeof(float));
  }
  return centres;
}

// The parameters of the passes over all drawn rows that follow the coarse ones.
KMeansParams finishing(KMeansParams params, const CentreTraining& training) {
  params.iterations = training.iterations;
  params.init = KMeansInit::given;
  return params;
}

MatrixBuffer train_centres(const IvfSpec& spec, Metric metric, int64_t lists, RowSource& rows, uint64_t seed,
                           const Resources& resources) {
  const CentreTraining training = centre_training(spec, lists, rows.rows());
  const KMeansParams params = centre_params(training, metric, lists, seed);
  const CounterRng rng(seed, kCentreStream);
  if (training.coarse_rows == 0) return fit_centres(params, metric, rows, training.rows, rng, {}, resources);
  const MatrixBuffer coarse =
      fit_centres(params, metric, rows, training.coarse_rows, CounterRng(seed, kCoarseStream), {}, resources);
  return fit_centres(finishing(params, training), metric, rows, training.rows, rng, coarse.view(), resources);
}

}  // namespace

int64_t IvfModel::bytes() const {
  return array_bytes<float>(centres.rows() * centres.cols()) + codec->bytes() + words->bytes();
}

void check_ivf_metric(Metric metric) {
  if (is_product(key_kind(metric))) return;
  throw Unsupported(fmt::format(
      "metric {} with inverted lists or codes; these have l2, sqeuclidean, inner_product and cosine; Flat has {}",
      name_of(metric), name_of(metric)));
}

void IvfModel::validate() const {
  check_ivf_metric(metric);
  if (codec == nullptr) throw InvalidArgument("the inverted file has no codec");
  if (has_centres() && centres.cols() != cols()) {
    throw InvalidArgument(fmt::format("the centres have {} columns and the codes {}", centres.cols(), cols()));
  }
  if (has_centres() && centres.dtype() != DType::f32) throw InvalidArgument("the centres must be f32");
  check_norm_metric(codec->format().norm, metric);
  if (residual && !has_centres()) throw InvalidArgument("codes of residuals need centres");
}

int64_t default_probes(int64_t lists) {
  constexpr int64_t kMost = 64;
  return std::min(static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(lists)))), kMost);
}

int64_t ivf_lists(const IvfSpec& spec, int64_t training_rows) {
  if (spec.lists == kOneList) return 1;
  if (spec.lists > 0) return spec.lists;
  const int64_t rows = spec.expected_rows > 0 ? spec.expected_rows : training_rows;
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(rows)));
  while (root * root > rows) --root;
  while ((root + 1) * (root + 1) <= rows) ++root;
  return std::max<int64_t>(root, 1);
}

CentreTraining centre_training(const IvfSpec& spec, int64_t lists, int64_t training_rows) {
  const auto times = [&](int64_t points) { return lists > INT64_MAX / points ? INT64_MAX : lists * points; };
  CentreTraining training;
  training.rows = spec.most_points_per_centre > 0
                      ? times(spec.most_points_per_centre)
                      : std::min(times(kMostPointsPerCentre), std::max(kManyPoints, times(kFewPointsPerCentre)));
  training.iterations = spec.iterations > 0 ? spec.iterations : lists > kManyLists ? 10 : 20;
  training.init = spec.init.value_or(KMeansInit::random);
  const int64_t part = std::min(training.rows, training_rows) / kCoarseShare;
  const bool chosen = spec.iterations == 0 && training.init == KMeansInit::random && lists <= kManyLists;
  if (!chosen || part / kFewPointsPerCentre < lists) return training;
  training.coarse_rows = part;
  training.coarse_iterations = 10;
  training.iterations = 8;
  return training;
}

namespace {

int64_t code_rows(const CodeRecipe& code) { return code.code == kStoredCode ? 1 : kCodeRows; }

bool has_residuals(const IvfSpec& spec) {
  return spec.lists != kOneList && spec.residual && spec.code.code != kStoredCode;
}

std::shared_ptr<const IvfModel> train_checked(const IvfSpec& spec, Metric metric, int64_t lists, RowSource& rows,
                                              uint64_t seed, const Resources& resources) {
  const int64_t count = rows.rows();
  auto model = std::make_shared<IvfModel>();
  model->metric = metric;
  if (spec.lists != kOneList) {
    if (count < lists * kFewPointsPerCentre) {
      resources.log(LogLevel::warning, fmt::format("{} training rows for {} centres; {} or more give better lists",
                                                   count, lists, lists * kFewPointsPerCentre));
    }
    model->centres = train_centres(spec, metric, lists, rows, seed, resources);
    model->residual = has_residuals(spec);
  }
  const MatrixView centres = model->residual ? model->centres.view() : MatrixView();
  model->codec = train_code(spec.code, {centres, metric}, rows, code_rows(spec.code), CounterRng(seed, kCodeStream),
                            seed, resources);
  model->validate();
  return model;
}

}  // namespace

Footprint train_ivf_footprint(const IvfSpec& spec, Metric metric, const RowsInfo& rows, const Resources& resources) {
  const int64_t lists = ivf_lists(spec, rows.rows);
  const Footprint code = code_training_footprint(spec.code, has_residuals(spec) ? lists : 0, metric, rows,
                                                 code_rows(spec.code), resources);
  if (spec.lists == kOneList) return code;
  const CentreTraining training = centre_training(spec, lists, rows.rows);
  const KMeansParams params = centre_params(training, metric, lists, 0);
  const Footprint centres = array_footprint<float>(lists, rows.cols);
  if (training.coarse_rows == 0) {
    return centres.beside(centre_training_footprint(params, rows, training.rows, resources).then(code));
  }
  const Footprint all = centre_training_footprint(finishing(params, training), rows, training.rows, resources);
  return centres.beside(
      centre_training_footprint(params, rows, training.coarse_rows, resources).then(centres.beside(all)).then(code));
}

std::shared_ptr<const IvfModel> train_ivf(const IvfSpec& spec, Metric metric, RowSource& rows, uint64_t seed,
                                          const Resources& given) {
  const DefaultFloatMode mode;
  // Samples are kept and processed in the memory space of the rows.
  const MemorySpace space = rows.space();
  const bool follows = !space.host_readable() && given.device().kind == DeviceKind::automatic;
  const Resources resources = follows ? given.with_device(Device::cuda(space.device)) : given;
  check_ivf_metric(metric);
  check_norm_metric(spec.code.norm, metric);
  if (CodeFormat{.norm = spec.code.norm}.has_norm() && !has_differences(key_kind(metric))) {
    resources.log(LogLevel::info, fmt::format("norms of codes are not used by {}; without the suffix codes are shorter "
                                              "and answers the same",
                                              name_of(metric)));
  }
  if (spec.lists < kOneList)
    throw InvalidArgument(fmt::format("{} lists; give at least 1, or 0 for a choice", spec.lists));
  const int64_t count = rows.rows();
  const int64_t lists = ivf_lists(spec, count);
  if (count < lists || count == 0) {
    throw InvalidArgument(
        fmt::format("{} training rows for {} centres; train on at least as many rows, better {} for each", count, lists,
                    kFewPointsPerCentre));
  }
  return train_checked(spec, metric, lists, rows, seed, resources);
}

}  // namespace kith
