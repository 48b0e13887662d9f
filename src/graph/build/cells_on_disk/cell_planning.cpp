#include "graph/build/cells_on_disk/cell_planning.hpp"

#include <kith/kmeans.hpp>
#include <kith/knn.hpp>

#include "cluster/kmeans_fit.hpp"
#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells/centre_places.hpp"
#include "graph/build/cells_on_disk/cell_curve.hpp"
#include "graph/build/cells_on_disk/cell_sample.hpp"
#include "graph/build/cells_on_disk/control_search.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"
#include "rows/threaded_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kFewestRows = 64;  // of a pass, at a time
constexpr int64_t kPlaceBatch = 1024;  // rows near control rows whose cells are found together

// A forecast as a step keeps it.
struct StoredForecast {
  int64_t needed = 0;
  int64_t for_descent = 0;
  double mean_near = 0;
  int64_t crowded = 0;
};

}  // namespace

CellPlanning::CellPlanning(const VectorFile& x, const CellsParams& params, bool check_finite, WorkFolder* folder,
                           const Resources& resources)
    : x_(x),
      params_(params),
      check_finite_(check_finite),
      folder_(folder),
      resources_(resources),
      quiet_(resources.with_progress({})) {}

void CellPlanning::count() {
  take_survey();
  learn();
  centres_ =
      MatrixBuffer(DType::f32, params_.cells, cell_cols(x_.cols(), params_.metric), "the cells' centres", quiet_);
  (void)search_control();
  const std::vector<uint32_t> rows = ControlRows::draw(x_.rows(), params_.seed, quiet_);
  const Neighbors truth(static_cast<int64_t>(rows.size()), ControlRows::wanted(x_.rows(), params_.k), quiet_);
  (void)foresee(ControlRows(x_.rows(), params_.metric, params_.k, rows, Neighbors()));
}

CellPlanning::Plan CellPlanning::find(bool keep) {
  folder_->await({"survey"});
  folder_->await({"centres"});
  const bool surveyed = find_survey();
  // The sample is there as long as there are no centres.
  if (!surveyed || (!folder_->find("centres") && !folder_->find("sample"))) {
    take_survey();
  } else if (folder_->leads()) {  // the passes of other parts verify what they read
    verify_source();
  }
  centres_ = find_centres();
  if (!keep && folder_->leads()) folder_->remove("sample");
  return find_plan();
}

bool CellPlanning::find_survey() {
  const std::optional<StepFile> step = folder_->find("survey");
  if (!step) return false;
  const std::vector<double> longest = step->values<double>(0);
  survey_ = {longest.at(0), step->values<uint64_t>(1)};
  return true;
}

PassBatch CellPlanning::pass_batch() const {
  const int64_t rows = rows_that_fit(std::min(kFewestRows, x_.rows()), std::min(most_hashed_rows(x_, quiet_), x_.rows()),
                                     quiet_, [&](int64_t some) { return pass_bytes(x_, some); });
  return {rows < rows_per_hash(x_) ? rows : rows / rows_per_hash(x_) * rows_per_hash(x_)};
}

// The first pass.
void CellPlanning::take_survey() {
  const HostArray<std::byte> section(kSampleSection * row_bytes(), "the cells' sample", quiet_);
  const std::vector<uint32_t> sample =
      sample_rows(CounterRng(params_.seed, kCellSampleStream), x_.rows(), sample_count(), quiet_);
  const PassBatch batch = pass_batch();
  if (counts_only(resources_)) {
    const HostArray<float> longest(resources_.threads() * x_.cols(), "the longest row", quiet_);
    (void)pass_over(x_, "survey", batch, nullptr, resources_, {});
    return;
  }
  StepWriter writer(*folder_, "sample", sample_count() * row_bytes());
  int64_t filled = 0;
  const auto end_section = [&] {
    if (filled > 0) writer.add({section.data(), static_cast<size_t>(std::exchange(filled, 0) * row_bytes())});
  };
  auto next = sample.begin();
  const auto look = [&](int64_t first, const MatrixView& rows) {
    if (check_finite_) refuse_not_finite("x", rows, {first}, quiet_);
    survey_.longest = std::max(survey_.longest, longest_row(rows, params_.metric, quiet_));
    for (; next != sample.end() && *next < first + rows.rows(); ++next) {
      std::memcpy(section.data() + filled * row_bytes(), rows.row(*next - first), static_cast<size_t>(row_bytes()));
      if (++filled == kSampleSection) end_section();
    }
  };
  // Where the sample alone has to be made again, the vectors are those that were hashed.
  const std::vector<uint64_t> known = std::exchange(survey_, Survey()).hashes;
  survey_.hashes = pass_over(x_, "survey", batch, known.empty() ? nullptr : &known, resources_, look);
  end_section();
  writer.commit();
  StepWriter survey(*folder_, "survey");
  survey.add(std::as_bytes(std::span(&survey_.longest, 1)));
  survey.add(std::as_bytes(std::span(survey_.hashes)));
  survey.commit();
}

// Checks the rows against what another process hashed.
void CellPlanning::verify_source() const {
  (void)pass_over(x_, "verify", pass_batch(), &survey_.hashes, resources_, [&](int64_t first, const MatrixView& rows) {
    if (check_finite_) refuse_not_finite("x", rows, {first}, quiet_);
  });
}

MatrixBuffer CellPlanning::learn() {
  const int64_t cols = cell_cols(x_.cols(), params_.metric);
  if (counts_only(resources_)) {
    RowsInfo sample(sample_count(), cols, DType::f32);
    sample.in_memory = false;
    count_work(fit_footprint(cell_training(params_), sample, quiet_), quiet_);
    return {};
  }
  std::optional<StepFile> step = folder_->find("sample");
  if (!step) throw DamagedStep(folder_->path() + "/sample", "survey", 0, "the sample is not there");
  const VectorFile sample(std::make_shared<const CellSample>(std::move(*step), sample_count(), x_.cols(), x_.dtype(),
                                                             params_.metric, survey_.longest));
  KMeans means(cell_training(params_));
  means.fit(sample, {}, quiet_);
  const KMeansSnapshot fitted = means.snapshot();
  MatrixBuffer centres(DType::f32, params_.cells, cols, "the cells' centres", quiet_);
  for (int64_t i = 0; i < params_.cells; ++i) {
    std::memcpy(centres.mutable_view().row(i), fitted.centres.row(i), static_cast<size_t>(cols * 4));
  }
  return centres;
}

MatrixBuffer CellPlanning::find_centres() {
  const int64_t cols = cell_cols(x_.cols(), params_.metric);
  const int64_t bytes = params_.cells * cols * 4;
  if (const std::optional<StepFile> step = folder_->find("centres")) {
    MatrixBuffer centres(DType::f32, params_.cells, cols, "the cells' centres", quiet_);
    if (step->bytes(0) != bytes) step->refuse("the step is of other cells");
    step->read(0, centres.mutable_view().row(0));
    order_ = step->values<uint32_t>(1);
    return centres;
  }
  MatrixBuffer centres = learn();
  order_ = cell_curve(centres.view());
  StepWriter writer(*folder_, "centres", bytes);
  writer.add({static_cast<const std::byte*>(centres.view().row(0)), static_cast<size_t>(bytes)});
  writer.add(std::as_bytes(std::span(order_)));
  writer.commit();
  return centres;
}

Neighbors CellPlanning::search_control() const {
  return search_control_rows(x_, {params_.metric, params_.k, params_.seed}, resources_);
}

ProbeForecast CellPlanning::foresee(const ControlRows& control) const {
  const ReadMemory memory = x_.reserve_memory(quiet_);
  FileSource source(x_);
  const auto search = [&](const MatrixView& queries, int64_t k, const Resources& used) {
    return search_file(queries, x_, params_.metric, k, used);
  };
  const ControlTies ties(control, source, params_.metric, search, resources_);
  const auto listed = [&](const uint32_t* rows, int64_t count, CellSide side) {
    MatrixBuffer stored(x_.dtype(), count, x_.cols(), "rows near the control rows", quiet_);
    if (!counts_only(quiet_)) gather(source, {rows, rows + count}, stored.mutable_view(), quiet_);
    const std::vector<uint32_t> places = row_numbers(0, count);
    return CellSpace(stored.view(), params_.metric, survey_.longest).listed(places.data(), count, side, quiet_);
  };
  CentrePlaces places(centres(), listed, kPlaceBatch, quiet_);
  return foresee_probes(*params_.recall, control, ties, places, resources_);
}

CellPlanning::Plan CellPlanning::find_plan() const {
  const std::vector<uint32_t> rows = ControlRows::draw(x_.rows(), params_.seed, quiet_);
  const int64_t wanted = ControlRows::wanted(x_.rows(), params_.k);
  const auto count = static_cast<int64_t>(rows.size());
  folder_->await({"plan"});
  if (const std::optional<StepFile> step = folder_->find("plan")) {
    Neighbors truth(count, wanted, quiet_);
    const bool whole = step->sections() == 3 && step->bytes(0) == count * wanted * 8 &&
                       step->bytes(1) == count * wanted * 4 && step->bytes(2) == int64_t{sizeof(StoredForecast)};
    if (!whole) step->refuse("the step is of other control rows");
    step->read(0, truth.view().ids);
    step->read(1, truth.view().distances);
    StoredForecast stored;
    step->read(2, &stored);
    return {ControlRows(x_.rows(), params_.metric, params_.k, rows, truth),
            {stored.needed, stored.for_descent, stored.mean_near, stored.crowded != 0}};
  }
  Neighbors truth = search_control();
  ControlRows control(x_.rows(), params_.metric, params_.k, rows, truth);
  const ProbeForecast forecast = foresee(control);
  resources_.log(LogLevel::info, fmt::format("graph of {} rows from disk: {} of {} cells are probed by each row",
                                             x_.rows(), forecast.needed, params_.cells));
  StepWriter writer(*folder_, "plan");
  writer.add({reinterpret_cast<const std::byte*>(truth.ids()), static_cast<size_t>(count * wanted * 8)});
  writer.add({reinterpret_cast<const std::byte*>(truth.distances()), static_cast<size_t>(count * wanted * 4)});
  const StoredForecast stored{forecast.needed, forecast.for_descent, forecast.mean_near, forecast.crowded ? 1 : 0};
  writer.add(std::as_bytes(std::span(&stored, 1)));
  writer.commit();
  return {std::move(control), forecast};
}

}  // namespace kith
