#include "graph/build/cells_on_disk/cells_on_disk.hpp"

#include <kith/error.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>

#include "cluster/kmeans_fit.hpp"
#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells/centre_places.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/build/cells_on_disk/block_compare.hpp"
#include "graph/build/cells_on_disk/cell_curve.hpp"
#include "graph/build/cells_on_disk/cell_sample.hpp"
#include "graph/build/cells_on_disk/cell_store.hpp"
#include "graph/build/cells_on_disk/list_steps.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "io/work_folder.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kFewestRows = 64;  // of a pass, at a time
constexpr int64_t kMostRows = 8192;
constexpr int64_t kPlaceBatch = 1024;  // rows near control rows whose cells are found together

template <typename T>
std::span<const std::byte> as_section(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
std::vector<T> section_of(const StepFile& step, int64_t section) {
  std::vector<T> values(static_cast<size_t>(step.bytes(section)) / sizeof(T));
  step.read(section, values.data());
  return values;
}

// What the first pass over the source leaves.
struct Survey {
  double longest = 0;
  std::vector<uint64_t> hashes;
};

// A forecast as a step keeps it.
struct StoredForecast {
  int64_t needed = 0;
  int64_t for_descent = 0;
  double mean_near = 0;
  int64_t crowded = 0;
};

// The exact first k of queries among all rows of a file.
Neighbors search_file(const MatrixView& queries, const VectorFile& x, Metric metric, int64_t k,
                      const Resources& resources) {
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(x), {k, metric});
  const SearchWish wish{.k = k, .check_finite = false};
  const auto least = [&] {
    const Footprint found = footprint_of<Neighbors>(resources, queries.rows(), k);
    return found.beside({x.memory_bytes()}).beside(search_footprint(shape, wish, RowFilter(), resources));
  };
  return within_limits("the control rows", resources, least, [&] {
    Neighbors found(queries.rows(), k, resources);
    const ReadMemory memory = x.reserve_memory(resources);
    ViewSource query_rows(queries);
    FileSource base_rows(x);
    search_knn(shape, wish, {query_rows, base_rows, RowFilter()}, found.view(), resources);
    return found;
  });
}

// The files that rows lie in, by their names alone: a folder may be moved.
std::string files_of(const VectorFile& x) {
  std::string files;
  for (int64_t row = 0; row < x.rows();) {
    const RowPlace place = x.place_of(row);
    // The first row that lies in another file, by halving.
    int64_t in = row;
    int64_t out = x.rows();
    while (out - in > 1) {
      const int64_t middle = in + (out - in) / 2;
      (middle - x.place_of(middle).row == row ? in : out) = middle;
    }
    files += fmt::format("{}{} ({} rows)", files.empty() ? "" : ", ",
                         std::filesystem::path(place.path).filename().string(), out - row);
    row = out;
  }
  return files;
}

WorkManifest manifest_of(const VectorFile& x, const CellsWish& wish, bool chosen) {
  WorkManifest manifest;
  manifest.set("work", chosen ? "a graph by the method that takes least time" : "a graph by cells");
  manifest.set("rows", x.rows());
  manifest.set("columns", x.cols());
  manifest.set("dtype", name_of(x.dtype()));
  manifest.set("files", files_of(x));
  manifest.set("k", wish.k);
  manifest.set("metric", name_of(wish.metric));
  manifest.set("recall", fmt::format("{}", *wish.recall));
  manifest.set("seed", fmt::format("{}", wish.seed));
  manifest.set("cells", wish.cells);
  manifest.set("probes", wish.probes);
  return manifest;
}

class CellsOnDisk {
 public:
  // Without a folder where memory is only counted.
  CellsOnDisk(const VectorFile& x, const CellsWish& wish, bool check_finite, WorkFolder* folder, const DiskWork* work,
              const Resources& resources)
      : x_(x),
        wish_(wish),
        check_finite_(check_finite),
        folder_(folder),
        keep_(work != nullptr && work->keep),
        most_rows_(work == nullptr ? INT64_MAX : work->most_rows),
        goes_on_(work == nullptr ? nullptr : work->goes_on),
        resources_(resources),
        quiet_(resources.with_progress({})) {}

  // What every phase takes at least, one after the other.
  void count() {
    survey_ = Survey();
    take_survey();
    learn();
    const MatrixBuffer centres(DType::f32, wish_.cells, cell_cols(x_.cols(), wish_.metric), "the cells' centres",
                               quiet_);
    centres_ = centres.view();
    (void)search_control();
    {
      const std::vector<uint32_t> rows = ControlRows::draw(x_.rows(), wish_.seed, quiet_);
      const Neighbors truth(static_cast<int64_t>(rows.size()), ControlRows::wanted(x_.rows(), wish_.k), quiet_);
      (void)foresee(ControlRows(x_.rows(), wish_.metric, wish_.k, rows, Neighbors()));
    }
    for (const int64_t probes : {int64_t{1}, ranked_probes(wish_)}) {
      const RankTask task = rank_task(probes);
      write_found(nullptr, StoreNames(probes), task, {}, resources_);
      write_rows(nullptr, StoreNames(probes), task, {}, {}, resources_);
      if (!task.ranks_all()) write_near(nullptr, StoreNames(probes), task, {}, resources_);
      const BlockShape shape = block_shape(probes, x_.rows());
      const int64_t pieces = x_.rows() / fewest_block_rows(shape) + wish_.cells;
      const Reservation table(2 * StepFile::table_bytes(pieces) + 8 * wish_.cells, 0, quiet_);
      count_work(block_footprint(with_rows(shape, fewest_block_rows(shape), quiet_), quiet_), quiet_);
    }
    // Lists are written with a section and a batch of results.
    const Reservation written(
        256 * (4 + 8 * wish_.k) * resources_.threads() + 64 * 12 * wish_.k + 8 * wish_.k * kControlRows +
            StepFile::table_bytes(x_.rows() / 256 + 1),
        0, quiet_);
  }

  std::optional<GraphReport> run(GraphSink& sink) {
    const bool surveyed = find_survey();
    // The sample is there as long as there are no centres.
    if (!surveyed || (!folder_->find("centres") && !folder_->find("sample"))) {
      take_survey();
    } else {
      verify_source();
    }
    const MatrixBuffer centres = find_centres();
    centres_ = centres.view();
    if (!keep_) folder_->remove("sample");
    ProbeForecast forecast;
    const ControlRows control = find_plan(forecast);

    GraphReport report;
    report.method = name_of(GraphMethod::cells);
    report.parameters.push_back({"recall", *wish_.recall});
    report.parameters.push_back({"seed", static_cast<int64_t>(wish_.seed)});
    const int64_t most = ranked_probes(wish_);
    const int64_t needed = forecast.needed > 0 ? std::min(forecast.needed, most) : most;
    if (goes_on_ && !goes_on_(forecast, std::nullopt)) return std::nullopt;
    for (int64_t probes = needed;;) {
      ListChain chain(*folder_, probes, wish_.k, x_.rows());
      if (goes_on_ && probes == needed && chain.done() == 0 && !goes_on_(forecast, count_pairs(probes))) {
        return std::nullopt;
      }
      if (!chain.complete()) compare(probes, chain);
      const RecallEstimate recall = chain.measure(control, quiet_);
      GraphRound round;
      round.comparisons = chain.pairs();
      round.recall = recall.recall;
      report.rounds.push_back(round);
      report.reached = recall.recall >= *wish_.recall;
      if (!report.reached && probes < most) {
        // As in memory: where less was found than foreseen, more probes follow.
        if (!keep_) chain.remove();
        probes = wave_end(probes, most);
        continue;
      }
      report.forecast = {needed, chain.pairs()};
      report.parameters.push_back({"cells", wish_.cells});
      report.parameters.push_back({"probes", probes});
      report.recall = GraphRecall{.recall = recall.recall,
                                  .recall_at_10 = recall.recall_at_10,
                                  .standard_error = recall.error,
                                  .rows = static_cast<int64_t>(control.rows().size())};
      sink.begin();
      chain.write(wish_.metric, resources_, [&](const NeighborsView& part) { sink.append(part); });
      return report;
    }
  }

 private:
  int64_t sample_count() const { return std::min(x_.rows(), wish_.cells * kSampleRowsPerCell); }
  int64_t row_bytes() const { return RowsInfo(x_).row_bytes(); }
  RankTask rank_task(int64_t probes) const { return {x_, centres_, wish_.metric, survey_.longest, probes}; }
  BlockShape block_shape(int64_t probes, int64_t largest_cell) const {
    return {x_.cols(), x_.dtype(), wish_.metric, wish_.k, wish_.cells, probes, x_.rows(), largest_cell};
  }

  bool find_survey() {
    const std::optional<StepFile> step = folder_->find("survey");
    if (!step) return false;
    const std::vector<double> longest = section_of<double>(*step, 0);
    survey_ = {longest.at(0), section_of<uint64_t>(*step, 1)};
    return true;
  }

  // The first pass.
  void take_survey() {
    const HostArray<std::byte> section(kSampleSection * row_bytes(), "the cells' sample", quiet_);
    const std::vector<uint32_t> sample =
        sample_rows(CounterRng(wish_.seed, kCellSampleStream), x_.rows(), sample_count(), quiet_);
    const int64_t batch = rows_that_fit(std::min(kFewestRows, x_.rows()), std::min(kMostRows, x_.rows()), quiet_,
                                        [&](int64_t rows) { return pass_bytes(x_, rows); });
    if (only_counts(resources_)) {
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
      survey_.longest = std::max(survey_.longest, longest_row(rows, wish_.metric, quiet_));
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
    survey.add(as_section(survey_.hashes));
    survey.commit();
  }

  // Of another process: what it hashed.
  void verify_source() {
    const int64_t batch = rows_that_fit(std::min(kFewestRows, x_.rows()), std::min(kMostRows, x_.rows()), quiet_,
                                        [&](int64_t rows) { return pass_bytes(x_, rows); });
    (void)pass_over(x_, "verify", batch, &survey_.hashes, resources_, [&](int64_t first, const MatrixView& rows) {
      if (check_finite_) refuse_not_finite("x", rows, {first}, quiet_);
    });
  }

  MatrixBuffer learn() {
    const int64_t cols = cell_cols(x_.cols(), wish_.metric);
    if (only_counts(resources_)) {
      RowsInfo sample(sample_count(), cols, DType::f32);
      sample.in_memory = false;
      count_work(fit_footprint(cell_training(wish_), sample, quiet_), quiet_);
      return {};
    }
    std::optional<StepFile> step = folder_->find("sample");
    if (!step) throw DamagedStep(folder_->path() + "/sample", "survey", 0, "the sample is not there");
    const VectorFile sample(std::make_shared<const CellSample>(std::move(*step), sample_count(), x_.cols(), x_.dtype(),
                                                               wish_.metric, survey_.longest));
    KMeans means(cell_training(wish_));
    means.fit(sample, {}, quiet_);
    MatrixBuffer centres(DType::f32, wish_.cells, cols, "the cells' centres", quiet_);
    for (int64_t i = 0; i < wish_.cells; ++i) {
      std::memcpy(centres.mutable_view().row(i), means.centres().row(i), static_cast<size_t>(cols * 4));
    }
    return centres;
  }

  MatrixBuffer find_centres() {
    const int64_t cols = cell_cols(x_.cols(), wish_.metric);
    const int64_t bytes = wish_.cells * cols * 4;
    if (const std::optional<StepFile> step = folder_->find("centres")) {
      MatrixBuffer centres(DType::f32, wish_.cells, cols, "the cells' centres", quiet_);
      if (step->bytes(0) != bytes) throw DamagedStep(step->name(), step->name(), 0, "the step is of other cells");
      step->read(0, centres.mutable_view().row(0));
      order_ = section_of<uint32_t>(*step, 1);
      return centres;
    }
    MatrixBuffer centres = learn();
    order_ = cell_curve(centres.view());
    StepWriter writer(*folder_, "centres", bytes);
    writer.add({static_cast<const std::byte*>(centres.view().row(0)), static_cast<size_t>(bytes)});
    writer.add(as_section(order_));
    writer.commit();
    return centres;
  }

  // The true neighbours of the control rows.
  Neighbors search_control() {
    const std::vector<uint32_t> rows = ControlRows::draw(x_.rows(), wish_.seed, quiet_);
    MatrixBuffer queries(x_.dtype(), static_cast<int64_t>(rows.size()), x_.cols(), "the control rows", quiet_);
    const int64_t wanted = ControlRows::wanted(x_.rows(), wish_.k);
    if (only_counts(resources_)) {
      count_call(quiet_, [&](const Resources& counting) {
        (void)search_file(queries.view(), x_, wish_.metric, wanted, counting);
      });
      return {};
    }
    {
      const ReadMemory memory = x_.reserve_memory(quiet_);
      FileSource source(x_);
      gather(source, rows, queries.mutable_view(), quiet_);
    }
    return search_file(queries.view(), x_, wish_.metric, wanted, resources_);
  }

  ProbeForecast foresee(const ControlRows& control) {
    const ReadMemory memory = x_.reserve_memory(quiet_);
    FileSource source(x_);
    const auto search = [&](const MatrixView& queries, int64_t k, const Resources& used) {
      return search_file(queries, x_, wish_.metric, k, used);
    };
    const ControlTies ties(control, source, wish_.metric, search, resources_);
    const auto listed = [&](const uint32_t* rows, int64_t count, CellSide side) {
      MatrixBuffer stored(x_.dtype(), count, x_.cols(), "rows near the control rows", quiet_);
      if (!only_counts(quiet_)) gather(source, {rows, rows + count}, stored.mutable_view(), quiet_);
      const std::vector<uint32_t> places = row_numbers(0, count);
      return CellSpace(stored.view(), wish_.metric, survey_.longest).listed(places.data(), count, side, quiet_);
    };
    CentrePlaces places(centres_, listed, kPlaceBatch, quiet_);
    return foresee_probes(*wish_.recall, control, ties, places, resources_);
  }

  ControlRows find_plan(ProbeForecast& forecast) {
    const std::vector<uint32_t> rows = ControlRows::draw(x_.rows(), wish_.seed, quiet_);
    const int64_t wanted = ControlRows::wanted(x_.rows(), wish_.k);
    const auto count = static_cast<int64_t>(rows.size());
    if (const std::optional<StepFile> step = folder_->find("plan")) {
      Neighbors truth(count, wanted, quiet_);
      const bool whole = step->sections() == 3 && step->bytes(0) == count * wanted * 8 &&
                         step->bytes(1) == count * wanted * 4 && step->bytes(2) == int64_t{sizeof(StoredForecast)};
      if (!whole) throw DamagedStep(step->name(), step->name(), 0, "the step is of other control rows");
      step->read(0, truth.view().ids);
      step->read(1, truth.view().distances);
      StoredForecast stored;
      step->read(2, &stored);
      forecast = {stored.needed, stored.for_descent, stored.mean_near, stored.crowded != 0};
      return {x_.rows(), wish_.metric, wish_.k, rows, truth};
    }
    Neighbors truth = search_control();
    ControlRows control(x_.rows(), wish_.metric, wish_.k, rows, truth);
    forecast = foresee(control);
    resources_.log(LogLevel::info, fmt::format("graph of {} rows from disk: {} of {} cells are probed by each row",
                                               x_.rows(), forecast.needed, wish_.cells));
    StepWriter writer(*folder_, "plan");
    writer.add({reinterpret_cast<const std::byte*>(truth.ids()), static_cast<size_t>(count * wanted * 8)});
    writer.add({reinterpret_cast<const std::byte*>(truth.distances()), static_cast<size_t>(count * wanted * 4)});
    const StoredForecast stored{forecast.needed, forecast.for_descent, forecast.mean_near, forecast.crowded ? 1 : 0};
    writer.add(std::as_bytes(std::span(&stored, 1)));
    writer.commit();
    return control;
  }

  // All rows in the order of their cells, with so many probes.
  CellStore find_store(int64_t probes) {
    const StoreNames names(probes);
    const StoredRecord record(row_bytes(), probes, wish_.cells);
    const RankTask task = rank_task(probes);
    if (!folder_->find(names.rows)) {
      if (!folder_->find(names.found)) {
        folder_->require_space(x_.rows() * (record.bytes() + record.all_probes_bytes() + 4 + 8 * wish_.k));
        write_found(folder_, names, task, survey_.hashes, resources_);
      }
      write_rows(folder_, names, task, order_, survey_.hashes, resources_);
    }
    if (!folder_->find(names.near)) {
      if (task.ranks_all()) throw DamagedStep(names.rows, names.rows, 0, "the cells near its rows are not there");
      write_near(folder_, names, task, order_, resources_);
    }
    if (!keep_) folder_->remove(names.found);
    return CellStore(*folder_, names, order_, record, resources_);
  }

  // As in memory: by as many probes as are ranked at once there.
  int64_t count_pairs(int64_t probes) {
    const int64_t counted = std::min(probes, ranked_at_once(x_.rows()));
    return pairs_by_probes(find_store(probes).count_pairs(counted, quiet_), counted, probes, x_.rows());
  }

  void compare(int64_t probes, ListChain& chain) {
    const CellStore store = find_store(probes);
    const BlockShape shape = block_shape(probes, store.layout().largest_cell());
    const int64_t rows =
        rows_that_fit(fewest_block_rows(shape), std::min(x_.rows(), most_rows_), resources_,
                      [&](int64_t some) { return block_footprint(with_rows(shape, some, resources_), resources_); });
    resources_.log(LogLevel::info, fmt::format("comparing blocks of {} of {} rows on {}", rows, x_.rows(),
                                               name_of(resources_.device())));
    const std::unique_ptr<BlockComparer> comparer =
        make_block_comparer(store, with_rows(shape, rows, resources_), resources_);
    ProgressMeter meter("compare", x_.rows(), resources_);
    meter.add(chain.done());
    while (!chain.complete()) {
      const int64_t piece = store.layout().piece_at(chain.done());
      if (piece < 0) {  // blocks of a store that was made again, of other pieces
        chain.remove();
        continue;
      }
      comparer->compare(piece, chain, meter);
    }
    meter.finish();
    if (keep_) return;
    folder_->remove(StoreNames(probes).rows);
    folder_->remove(StoreNames(probes).near);
  }

  const VectorFile& x_;
  const CellsWish wish_;
  const bool check_finite_;
  WorkFolder* const folder_;
  const bool keep_;
  const int64_t most_rows_;
  const decltype(DiskWork::goes_on) goes_on_;
  const Resources& resources_;
  const Resources quiet_;
  Survey survey_;
  MatrixView centres_;
  std::vector<uint32_t> order_;
};

}  // namespace

Footprint cells_on_disk_footprint(const VectorFile& x, const CellsWish& wish, const Resources& resources) {
  return counted(resources,
                 [&](const Resources& counting) { CellsOnDisk(x, wish, false, nullptr, nullptr, counting).count(); });
}

std::optional<GraphReport> cells_on_disk(const VectorFile& x, const CellsWish& wish, bool check_finite,
                                         const DiskWork& work, GraphSink& sink, const Resources& resources) {
  constexpr int kMostRepairs = 3;
  const auto least = [&] { return cells_on_disk_footprint(x, wish, resources); };
  return within_limits("the graph", resources, least, [&] {
    WorkFolder folder(work.disk, work.folder, manifest_of(x, wish, work.goes_on != nullptr), resources);
    std::map<std::string, int> repairs;
    for (;;) {
      try {
        const std::optional<GraphReport> report =
            CellsOnDisk(x, wish, check_finite, &folder, &work, resources).run(sink);
        if (report) sink.finish(*report);
        if (!report || !work.keep) folder.clear();
        return report;
      } catch (const DamagedStep& damaged) {
        if (++repairs[damaged.step()] > kMostRepairs) throw;
        resources.log(LogLevel::warning, fmt::format("{}; the step is made again", damaged.what()));
        folder.remove(damaged.step());
      }
    }
  });
}

}  // namespace kith
