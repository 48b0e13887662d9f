#include "graph/build/cells_on_disk/cells_on_disk.hpp"

#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/build/cells_on_disk/block_compare.hpp"
#include "graph/build/cells_on_disk/cell_planning.hpp"
#include "graph/build/cells_on_disk/cell_store.hpp"
#include "graph/build/cells_on_disk/list_steps.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/cells_on_disk/source_ranks.hpp"
#include "io/work_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace kith {
namespace {

WorkManifest manifest_of(const VectorFile& x, const CellsParams& params, bool chosen, bool ids_only) {
  WorkManifest manifest;
  manifest.set("work", chosen ? "a graph by the method that takes least time" : "a graph by cells");
  put_source(x, manifest);
  manifest.set("k", params.k);
  manifest.set("metric", name_of(params.metric));
  manifest.set("recall", fmt::format("{}", *params.recall));
  manifest.set("seed", fmt::format("{}", params.seed));
  manifest.set("cells", params.cells);
  manifest.set("probes", params.probes);
  manifest.set("lists", ids_only ? "ids" : "ids and distances");
  return manifest;
}

// Lists made with a number of probes, and their recall.
struct Wave {
  int64_t probes = 0;
  int64_t pairs = 0;  // that were compared
  RecallEstimate recall;
  bool reached(const CellsParams& params) const { return recall.recall >= *params.recall; }
};

class CellsOnDisk {
 public:
  // Without a folder where memory is only counted.
  CellsOnDisk(const VectorFile& x, const CellsParams& params, bool check_finite, WorkFolder* folder,
              const DiskWork* work, const Resources& resources)
      : x_(x),
        params_(params),
        folder_(folder),
        keep_(work != nullptr && work->keep),
        most_rows_(work == nullptr ? INT64_MAX : work->most_rows),
        step_rows_(work == nullptr ? 0 : work->step_rows),
        goes_on_(work == nullptr ? nullptr : work->goes_on),
        resources_(resources),
        quiet_(resources.with_progress({})),
        planning_(x, params, check_finite, folder, resources),
        form_{params.k} {}

  // What every phase takes at least, one after the other.
  void count() {
    planning_.count();
    const int64_t most_probes = ranked_probes(params_);
    for (const int64_t probes : {int64_t{1}, std::min(SourceRanks::kFewWanted, most_probes), most_probes}) {
      const SourceRanking task = source_ranking(probes);
      const ProbeSteps steps(x_, probes, step_rows_);
      ProgressMeter meter("cells", x_.rows(), resources_);
      write_found(nullptr, steps, {}, task, {}, meter, resources_);
      write_rows(nullptr, StoreNames(probes), steps, task, {}, {}, resources_);
      if (!task.ranks_all()) write_near(nullptr, StoreNames(probes), task, {}, resources_);
      const BlockShape shape = block_shape(probes, x_.rows());
      const Footprint blocks = block_footprint(with_rows(shape, fewest_block_rows(shape), quiet_), quiet_);
      // Under a larger limit there may be smaller pieces, whose tables take up to a sixteenth of it.
      const Reservation table(std::max(store_table_bytes(task, resources_), blocks.host / 15), 0, quiet_);
      const Reservation whole_lists(kControlRows * form_.whole_bytes(), 0, quiet_);
      count_work(blocks, quiet_);
    }
    // Lists are written with a section and a batch of results.
    const int64_t read = std::max(ListChain::section_bytes(params_.k) * resources_.threads(),
                                  kControlRows * form_.whole_bytes());
    const Reservation written(
        read + 2 * 64 * 12 * params_.k + 8 * params_.k * kControlRows + StepFile::table_bytes(x_.rows() / 256 + 1), 0,
        quiet_);
  }

  // The waves of a build, and what they came to.
  struct Course {
    int64_t needed = 0;  // probes that were foreseen
    int64_t looked = 0;  // control rows
    std::vector<Wave> waves;
  };

  // None where it did not go on. A part that does not lead leaves the sink alone.
  std::optional<Course> run(GraphSink& sink) {
    graph_bytes_ = folder_->leads() ? sink.bytes_beside(folder_->path()) : 0;
    const auto [control, forecast] = planning_.find(keep_);
    form_.ids_only = !sink.takes_distances();
    form_.control = control.rows();
    std::sort(form_.control.begin(), form_.control.end());
    const int64_t most = ranked_probes(params_);
    Course course{forecast.needed > 0 ? std::min(forecast.needed, most) : most,
                  static_cast<int64_t>(control.rows().size()), {}};
    if (goes_on_ && !goes_on_(forecast, std::nullopt)) return std::nullopt;
    for (int64_t probes = course.needed;; probes = wave_end(probes, most)) {
      const bool asks = goes_on_ && probes == course.needed && !is_begun(probes);
      if (asks && !goes_on_(forecast, count_pairs(probes))) return std::nullopt;
      course.waves.push_back(find_wave(probes, control));
      if (course.waves.back().reached(params_) || probes == most) break;
      // As in memory: where less was found than foreseen, more probes follow.
      if (!keep_ && folder_->leads()) chain_of(probes).remove();
    }
    if (!folder_->leads()) return course;
    sink.begin();
    chain_of(course.waves.back().probes).write(params_.metric, resources_, [&](const NeighborsView& part) {
      sink.append(part);
    });
    return course;
  }

  GraphReport report_of(const Course& course) const {
    GraphReport report;
    report.method = name_of(GraphMethod::cells);
    report.parameters.push_back({"recall", *params_.recall});
    report.parameters.push_back({"seed", static_cast<int64_t>(params_.seed)});
    for (const Wave& wave : course.waves) {
      GraphRound round;
      round.comparisons = wave.pairs;
      round.recall = wave.recall.recall;
      report.rounds.push_back(round);
    }
    const Wave& last = course.waves.back();
    report.reached = last.reached(params_);
    report.forecast = {course.needed, last.pairs};
    report.parameters.push_back({"cells", params_.cells});
    report.parameters.push_back({"probes", last.probes});
    report.recall = GraphRecall{.recall = last.recall.recall,
                                .recall_at_10 = last.recall.recall_at_10,
                                .standard_error = last.recall.error,
                                .rows = course.looked};
    return report;
  }

  // As bytes, for parts that come when all is done.
  static std::vector<std::byte> told(const Course& course) {
    std::vector<std::byte> bytes(16 + course.waves.size() * sizeof(Wave));
    std::memcpy(bytes.data(), &course.needed, 8);
    std::memcpy(bytes.data() + 8, &course.looked, 8);
    std::memcpy(bytes.data() + 16, course.waves.data(), course.waves.size() * sizeof(Wave));
    return bytes;
  }
  static Course course_of(const StepFile& done) {
    const std::vector<std::byte> bytes = done.values<std::byte>(0);
    if (bytes.size() < 16 + sizeof(Wave)) done.refuse("the step is too short");
    Course course;
    std::memcpy(&course.needed, bytes.data(), 8);
    std::memcpy(&course.looked, bytes.data() + 8, 8);
    course.waves.resize((bytes.size() - 16) / sizeof(Wave));
    std::memcpy(course.waves.data(), bytes.data() + 16, course.waves.size() * sizeof(Wave));
    return course;
  }

 private:
  int64_t row_bytes() const { return RowsInfo(x_).row_bytes(); }
  SourceRanking source_ranking(int64_t probes) const {
    return {x_, planning_.centres(), params_.metric, planning_.longest(), probes};
  }
  ListChain chain_of(int64_t probes) const { return {*folder_, probes, form_, x_.rows()}; }
  BlockShape block_shape(int64_t probes, int64_t largest_cell) const {
    return {x_.cols(), x_.dtype(), params_.metric, params_.k, params_.cells, probes, x_.rows(), largest_cell};
  }

  // Compares what is not compared yet, and measures it.
  Wave find_wave(int64_t probes, const ControlRows& control) {
    const std::string measured = measured_name(probes);
    std::optional<Wave> wave = read_wave(measured);
    // Lists that fell short are not looked at again, and those that are written are whole.
    const bool written = wave && (wave->reached(params_) || probes == ranked_probes(params_));
    if (wave && !(written && folder_->leads())) return *wave;
    ListChain chain = chain_of(probes);
    if (!chain.complete()) compare(probes, chain);
    if (!wave) {
      folder_->await({measured});
      wave = read_wave(measured);
    }
    if (wave) return *wave;
    if (!folder_->leads()) throw WorkDone("the other parts have ended the work");  // and removed what was measured
    wave = Wave{probes, chain.pairs(), chain.measure(control, quiet_)};
    StepWriter writer(*folder_, measured);
    writer.add(std::as_bytes(std::span(&*wave, 1)));
    writer.commit();
    return *wave;
  }

  static std::string measured_name(int64_t probes) { return fmt::format("measured-{}", probes); }
  std::optional<Wave> read_wave(const std::string& name) {
    const std::optional<StepFile> step = folder_->find(name);
    if (!step) return std::nullopt;
    Wave wave;
    if (step->sections() != 1 || step->bytes(0) != int64_t{sizeof(wave)}) {
      step->refuse("the step is of another size");
    }
    step->read(0, &wave);
    return wave;
  }
  bool is_begun(int64_t probes) {
    return read_wave(measured_name(probes)) || chain_of(probes).done({0, x_.rows()}) > 0;
  }

  // Stores all rows in the order of their cells, with their probes. Each part ranks the cells near its share of the
  // rows, step by step; the leading part then assembles everything.
  void make_store(int64_t probes) {
    const StoreNames names(probes);
    const SourceRanking task = source_ranking(probes);
    // Where all cells are ranked both are made at once, and made again where one is gone.
    const bool ordered = folder_->find(names.rows) && (!task.ranks_all() || folder_->find(names.near));
    if (!ordered && folder_->leads()) {
      folder_->remove(names.rows);
      folder_->remove(names.near);
    }
    if (!ordered) find_cells(probes);
    if (!folder_->leads()) return;
    if (!ordered) {
      const ProbeSteps steps(x_, probes, step_rows_);
      write_rows(folder_, names, steps, task, planning_.order(), planning_.hashes(), resources_);
    }
    if (!folder_->find(names.near)) write_near(folder_, names, task, planning_.order(), resources_);
    if (keep_) return;
    for (const std::string& found : folder_->names(ProbeSteps::beginning(probes))) folder_->remove(found);
  }

  // What is to be written from here on, at its fullest: the first pass, the store beside it, lists beside the store,
  // and the graph beside the lists. Less what is there already.
  struct Room {
    int64_t found = 0;
    int64_t store = 0;
    int64_t lists = 0;
    int64_t graph = 0;
  };
  Room room_for(int64_t probes) const {
    const StoredRecord record(row_bytes(), probes, params_.cells);
    const int64_t rows = x_.rows();
    const int64_t found = source_ranking(probes).ranks_all() ? record.all_probes_bytes() : record.probe_bytes;
    const int64_t counts = ProbeSteps(x_, probes, step_rows_).count() * params_.cells * int64_t{sizeof(int64_t)};
    const int64_t whole = form_.ids_only ? std::ssize(form_.control) * form_.whole_bytes() : 0;
    return {rows * found + counts, rows * record.bytes(), rows * form_.row_bytes() + whole, graph_bytes_};
  }
  void require_room(int64_t probes, bool with_cells) const {
    const Room room = room_for(probes);
    const int64_t found = folder_->stored_bytes(ProbeSteps::beginning(probes));
    const int64_t lists = folder_->stored_bytes(ListChain::beginning(probes));
    if (keep_) {
      const int64_t behind = std::max<int64_t>(room.lists - lists, 0) + room.graph;
      return folder_->require_space(behind + (with_cells ? std::max<int64_t>(room.found - found, 0) + room.store : 0));
    }
    if (with_cells) {
      const int64_t most = std::max({room.found + room.store, room.store + room.lists, room.lists + room.graph});
      return folder_->require_space(most - found);
    }
    folder_->require_space(std::max(room.lists, room.lists + room.graph - room.store) - lists);
  }

  // The first pass, the part that leads until all steps are there.
  void find_cells(int64_t probes) {
    const ProbeSteps steps(x_, probes, step_rows_);
    require_room(probes, true);
    ProgressMeter meter("cells", x_.rows(), resources_);
    const auto is_ours = [&](int64_t step) { return folder_->deals(step) && !folder_->find(steps.name(step)); };
    for (int64_t step = 0; step < steps.count(); ++step) {
      if (!is_ours(step)) {
        meter.add(steps.rows(step));
        continue;
      }
      StepRange range{step, step + 1};
      while (range.end < steps.count() && is_ours(range.end)) ++range.end;
      write_found(folder_, steps, range, source_ranking(probes), planning_.hashes(), meter, resources_);
      step = range.end - 1;
    }
    meter.finish();
    if (!folder_->leads()) return;
    folder_->wait_until([&]() -> std::string {
      const std::vector<std::string> made = folder_->names(ProbeSteps::beginning(probes));
      int64_t missing = steps.count();
      for (int64_t at = 0; at < steps.count(); ++at) missing -= std::binary_search(made.begin(), made.end(), steps.name(at));
      return missing == 0 ? "" : fmt::format("{} of {} steps that rank cells", missing, steps.count());
    });
  }

  // None where others have measured all lists before this part came to it, and deleted the store.
  std::optional<CellStore> find_store(int64_t probes) {
    const StoreNames names(probes);
    const std::string measured = measured_name(probes);
    make_store(probes);
    for (;;) {
      folder_->await({names.rows, measured});
      folder_->await({names.near, measured});
      std::optional<StepFile> rows = folder_->find(names.rows);
      std::optional<StepFile> near = folder_->find(names.near);
      if (rows && near) {
        const StoredRecord record(row_bytes(), probes, params_.cells);
        return CellStore(std::move(*rows), std::move(*near), planning_.order(), record, resources_);
      }
      const std::string& gone = rows ? names.near : names.rows;
      if (folder_->leads()) throw DamagedStep(folder_->path() + "/" + gone, gone, 0, "the step is not there");
      if (folder_->find(measured)) return std::nullopt;
    }
  }

  // As in memory: by as many probes as are ranked at once there.
  int64_t count_pairs(int64_t probes) {
    const int64_t counted = std::min(probes, ranked_at_once(x_.rows()));
    return pairs_by_probes(find_store(probes)->count_pairs(counted, quiet_), counted, probes, x_.rows());
  }

  // The share of the places that this part compares: whole pieces.
  ListBlock share_of(const PieceLayout& layout) const {
    const auto begin = [&](int64_t number) {
      if (number == 0) return int64_t{0};
      if (number == folder_->part().count) return x_.rows();
      return layout.place(layout.pieces_within(0, layout.pieces(), x_.rows() / folder_->part().count * number));
    };
    return {begin(folder_->part().number - 1), begin(folder_->part().number)};
  }

  void compare(int64_t probes, ListChain& chain) {
    {
      const std::optional<CellStore> store = find_store(probes);
      if (!store) return;
      compare_share(*store, probes, chain);
    }
    if (!folder_->leads()) return;
    folder_->wait_until([&]() -> std::string {
      chain.look();
      const int64_t missing = x_.rows() - chain.done({0, x_.rows()});
      return missing == 0 ? "" : fmt::format("the lists of {} of {} rows", missing, x_.rows());
    });
    if (keep_) return;
    folder_->remove(StoreNames(probes).rows);
    folder_->remove(StoreNames(probes).near);
  }

  void compare_share(const CellStore& store, int64_t probes, ListChain& chain) {
    const PieceLayout& layout = store.layout();
    const ListBlock share = share_of(layout);
    if (!chain.gap(share)) return;
    require_room(probes, false);
    const BlockShape shape = block_shape(probes, layout.largest_cell());
    const auto needed = [&](int64_t some) {
      const Footprint whole_lists{form_.ids_only ? std::min(some, kControlRows) * form_.whole_bytes() : 0};
      return block_footprint(with_rows(shape, some, resources_), resources_).beside(whole_lists);
    };
    const int64_t rows =
        rows_that_fit(fewest_block_rows(shape), std::min(share.end - share.first, most_rows_), resources_, needed);
    resources_.log(LogLevel::info, fmt::format("comparing blocks of {} of {} rows on {}", rows, share.end - share.first,
                                               name_of(resources_.device())));
    const std::unique_ptr<BlockComparer> comparer =
        make_block_comparer(store, with_rows(shape, rows, resources_), resources_);
    ProgressMeter meter("compare", share.end - share.first, resources_);
    meter.add(chain.done(share));
    while (const std::optional<ListBlock> gap = chain.gap(share)) {
      const int64_t first = layout.piece_at(gap->first);
      const int64_t end = layout.piece_at(gap->end);
      if (first < 0 || end < 0) {  // blocks of a store that was made again, of other pieces
        if (!folder_->part().alone()) {  // others may have done their share, and would not do it again
          throw InvalidState("the lists in the work folder are of other pieces than its rows: end all parts, remove the "
                             "files lists-* there, and start them again");
        }
        chain.remove();
        continue;
      }
      comparer->compare(first, end, chain, meter);
    }
    meter.finish();
  }

  const VectorFile& x_;
  const CellsParams params_;
  WorkFolder* const folder_;
  const bool keep_;
  const int64_t most_rows_;
  const int64_t step_rows_;
  const decltype(DiskWork::goes_on) goes_on_;
  const Resources& resources_;
  const Resources quiet_;
  CellPlanning planning_;
  ListForm form_;            // of which the control rows are known when they were drawn
  int64_t graph_bytes_ = 0;  // on the disk of the work folder
};

}  // namespace

Footprint cells_on_disk_footprint(const VectorFile& x, const CellsParams& params, const Resources& resources) {
  return counted(resources,
                 [&](const Resources& counting) { CellsOnDisk(x, params, false, nullptr, nullptr, counting).count(); });
}

std::optional<GraphReport> cells_on_disk(const VectorFile& x, const CellsParams& params, bool check_finite,
                                         const DiskWork& work, GraphSink& sink, const Resources& resources) {
  const auto least = [&] { return cells_on_disk_footprint(x, params, resources); };
  return within_limits("the graph", resources, least, [&]() -> std::optional<GraphReport> {
    WorkFolder folder(work.disk, work.folder, manifest_of(x, params, work.goes_on != nullptr, !sink.takes_distances()), resources,
                      work.part);
    if (work.file_bytes > 0) folder.divide_steps_by(work.file_bytes);
    const auto make = [&]() -> std::optional<GraphReport> {
      CellsOnDisk build(x, params, check_finite, &folder, &work, resources);
      const std::optional<StepFile> done = folder.done();
      // The part that leads has written the graph before it says that all is done; somebody may have removed it since.
      const bool writes = folder.leads() && (!done || !sink.is_there());
      if (done && writes && folder.names("lists-").empty()) {
        throw InvalidState(fmt::format("the work in '{}' has been done, and its graph is not where it was to be written; "
                                       "remove the folder '{}' and begin anew",
                                       work.folder, work.folder));
      }
      const std::optional<CellsOnDisk::Course> course = done && !writes ? CellsOnDisk::course_of(*done) : build.run(sink);
      if (!course) {
        folder.clear();
        return std::nullopt;
      }
      const GraphReport report = build.report_of(*course);
      if (writes) sink.finish(report);
      folder.finish(CellsOnDisk::told(*course), work.keep);
      return report;
    };
    for (;;) {
      try {
        return repairing(folder, make);
      } catch (const WorkDone&) {  // which done() has
        continue;
      }
    }
  });
}

}  // namespace kith
