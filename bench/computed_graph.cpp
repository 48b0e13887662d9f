// The k-NN graph, from disk, of rows that are computed whenever they are read: what a machine can do whose disk does not
// hold the rows themselves. Seconds of each phase; after a kill the same command goes on.
//
//   kith_bench computed_graph --folder DIR [--rows 1000000000] [--cols 96] [--k 10] [--cells 0] [--recall-percent 95]
//                             [--host-gib 10] [--device-gib 0] [--device cuda:0] [--out FILE]
//
// DIR holds the work and the graph: ids alone, as int32. Limits of 0 are none. Recall is that of the 1,000 control rows.
#include <kith/graph_of_files.hpp>
#include <kith/kith.hpp>

#include "computed_mixture.hpp"
#include "driver/benchmark.hpp"
#include "driver/timing.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace kith;

// The seconds of each stage, from the report before its first to its last.
class Stages {
 public:
  void report(const Progress& progress) {
    const double now = watch_.seconds().wall;
    const double used = watch_.seconds().processor;
    if (stages_.empty() || stages_.back().name != progress.stage) {
      stages_.push_back({std::string(progress.stage), 0, 0});
    }
    stages_.back().wall += now - last_;
    stages_.back().processor += used - used_;
    last_ = now;
    used_ = used;
    // Now and then, so that a run that is ended from outside has told how far it came.
    if (now - told_ < 10) return;
    told_ = now;
    std::printf("%.0f s: %s %.1f %%\n", now, stages_.back().name.c_str(),
                100.0 * static_cast<double>(progress.done) / static_cast<double>(std::max<int64_t>(progress.total, 1)));
    std::fflush(stdout);
  }

  void add_rows(bench::Report& report, const std::string& shape) const {
    for (const Stage& stage : stages_) {
      if (stage.wall < 0.01) continue;
      report.row({.name = "phase " + stage.name,
                  .shape = shape,
                  .ms = 1e3 * stage.wall,
                  .clock = "wall",
                  .figures = {{"processor_s", stage.processor}}});
    }
  }

 private:
  struct Stage {
    std::string name;
    double wall = 0;
    double processor = 0;
  };

  const bench::Watch watch_;
  double last_ = 0;
  double used_ = 0;
  double told_ = 0;
  std::vector<Stage> stages_;
};

// The most that the process held.
double resident_gib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / (1 << 20);
}

int64_t limit_of(int64_t gib) { return gib == 0 ? kNoLimit : gib << 30; }

void run(const bench::Options& options, bench::Report& report) {
  const std::string folder = options.text("--folder");
  if (folder.empty()) throw InvalidArgument("computed_graph needs --folder");
  const VectorFile x(std::make_shared<bench::ComputedMixture>(options.number("--rows", 1'000'000'000),
                                                              options.number("--cols", 96)));
  KnnGraphParams params{.k = options.number("--k", 10), .method = GraphMethod::cells};
  params.recall = static_cast<double>(options.number("--recall-percent", 95)) / 100;
  if (const int64_t cells = options.number("--cells", 0); cells > 0) params.cells = cells;
  GraphWork work{.folder = folder + "/work", .form = {.ids_only = true, .int32_ids = true}};
  Stages stages;
  ResourceOptions asked;
  asked.device = parse_device(options.text("--device", cuda_devices().empty() ? "cpu" : "cuda:0"));
  asked.host_memory_limit = limit_of(options.number("--host-gib", 10));
  asked.device_memory_limit = limit_of(options.number("--device-gib", 0));
  asked.progress = [&](const Progress& progress) { stages.report(progress); };
  asked.log = [](LogLevel, std::string_view line) {
    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
    std::fflush(stdout);
  };
  const std::string shape = std::to_string(x.rows()) + " x " + std::to_string(x.cols()) + " u8, k = " +
                            std::to_string(params.k);
  const bench::Watch watch;
  const GraphReport made = knn_graph_folder(x, folder + "/graph", params, work, Resources(asked));
  const bench::Seconds spent = watch.seconds();
  stages.add_rows(report, shape);
  bench::Row row{.name = "from disk", .shape = shape, .ms = 1e3 * spent.wall, .clock = "wall"};
  row.figures = {{"processor_s", spent.processor},
                 {"recall", made.recall ? made.recall->recall : 0.0},
                 {"resident_gib", resident_gib()},
                 {"counted_host_gib", static_cast<double>(made.peak_host_bytes) / (1 << 30)},
                 {"counted_device_gib", static_cast<double>(made.peak_device_bytes) / (1 << 30)}};
  for (const GraphParameter& parameter : made.parameters) {
    if (const auto* count = std::get_if<int64_t>(&parameter.value)) {
      row.figures.emplace_back(parameter.name, static_cast<double>(*count));
    }
  }
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx",
                static_cast<unsigned long long>(graph_folder_info(folder + "/graph").hashes.ids));
  row.labels = {{"method", made.method}, {"ids_xxh3", hash}};
  report.row(row);
}

const bench::Registered known({
    .name = "computed_graph",
    .about = "the k-NN graph of rows that are computed, from disk",
    .options = {"--folder", "--rows", "--cols", "--k", "--cells", "--recall-percent", "--host-gib", "--device-gib", "--device"},
    .run = run,
});

}  // namespace
