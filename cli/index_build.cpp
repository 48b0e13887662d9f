// kith index build and add: index files from files of vectors.
#include <kith/distributed.hpp>
#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/index_work.hpp>
#include <kith/vector_file.hpp>

#include "exit_codes.hpp"
#include "file_report.hpp"
#include "index_commands.hpp"
#include "index_files.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "stopwatch.hpp"
#include "whole_vectors.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

namespace kith::cli {
namespace {

struct Times {
  double train = 0;
  double add = 0;
  double save = 0;
};

void add_rows(Index& index, const VectorFile& base, const std::string& ids_path, Times& times,
              const Resources& resources) {
  const HostArray<int64_t> ids = read_index_ids(ids_path, base.rows(), resources);
  const Stopwatch add;
  index.add(base, {ids.data(), ids.size(), {}}, resources);
  times.add = add.seconds();
}

// Returns the number of replaced vectors.
int64_t replace_rows(Index& index, const VectorFile& base, const std::string& ids_path, Times& times,
                     const Resources& resources) {
  const HostArray<int64_t> ids = read_index_ids(ids_path, base.rows(), resources);
  const Stopwatch add;
  const int64_t replaced = index.replace(base, {ids.data(), ids.size(), {}}, resources);
  times.add = add.seconds();
  return replaced;
}

// The same for the first vectors with their graph, which are read at once.
void add_from(Index& index, const IndexBuildOptions& options, int64_t rows, Times& times, const Resources& resources) {
  const HostArray<int64_t> ids = read_index_ids(options.ids, rows, resources);
  const KnnGraph start = load_graph_folder(options.start, resources);
  const WholeVectors base(options.base, resources);
  const Stopwatch add;
  index.add(base.view(), {ids.data(), ids.size(), {}}, start, resources);
  times.add = add.seconds();
}

void save(const Index& index, const std::string& path, Times& times, const Resources& resources) {
  const Stopwatch watch;
  write_index(index, path, resources);
  times.save = watch.seconds();
}

// Whether to write the index while vectors are added, since it may exceed the memory limit.
bool is_streamed(const std::string& out, const RunOptions& run) { return run.memory_limit && is_kith_file(out); }

// Returns the information about the new file.
IndexInfo write_added(const Index& index, const VectorFile& base, const std::string& ids_path, const std::string& out,
                      Times& times, const Resources& resources) {
  {
    const HostArray<int64_t> ids = read_index_ids(ids_path, base.rows(), resources);
    const Stopwatch add;
    index.save_added(base, {ids.data(), ids.size(), {}}, out, resources);
    times.add = add.seconds();
  }
  return Index::load(out, {.mmap = true}, resources).info();
}

// The same in steps, the training among them, where `train` is needed. They are timed together.
IndexInfo write_in_steps(const Index& index, const VectorFile& base, const std::string& ids_path, const std::string& out,
                         const IndexWork& work, Times& times, const Resources& resources) {
  {
    const HostArray<int64_t> ids = read_index_ids(ids_path, base.rows(), resources);
    const Stopwatch add;
    save_added(index, base, {ids.data(), ids.size(), {}}, out, work, resources);
    times.add = add.seconds();
  }
  return Index::load(out, {.mmap = true}, resources).info();
}

struct Grown {
  Grown(std::string done, std::string path) : command(std::move(done)), out(std::move(path)) {}

  std::string command;
  std::string out;
  IndexInfo info;
  Times times;
  double total = 0;
  int64_t replaced = 0;
  std::vector<std::string> log;
};

Report report_of(const Grown& grown, const VectorFile& base, const RunOptions& run) {
  const Times& times = grown.times;
  Report report;
  report.text = index_text(grown.info);
  if (times.train > 0) report.text += fmt::format("trained in {:.3f} s, ", times.train);
  report.text += fmt::format("added {} in {:.3f} s{}\nwrote {}\n", base.rows(), times.add,
                             run.ranks == nullptr ? "" : fmt::format(" by {} ranks", run.ranks->size()), grown.out);
  if (grown.replaced > 0) report.text += fmt::format("{} of them in the place of others\n", grown.replaced);
  for (const std::string& line : grown.log) report.text += line + "\n";
  JsonObject result;
  result.object("base", describe_vectors(base)).object("index", index_json(grown.info)).text("out", grown.out);
  if (grown.replaced > 0) result.number("replaced", grown.replaced);
  if (run.ranks != nullptr) result.number("ranks", run.ranks->size());
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("train_seconds", times.train).real("add_seconds", times.add).real("save_seconds", times.save);
  timings.real("total_seconds", grown.total);
  report.json.text("command", grown.command).object("result", std::move(result));
  report.json.object("memory", std::move(memory)).object("timings", std::move(timings)).texts("log", grown.log);
  return report;
}

}  // namespace

Report run_index_build(const IndexBuildOptions& options, const RunOptions& run) {
  const Stopwatch total;
  std::vector<NamedPath> inputs{{"--base", options.base}};
  if (!options.train.empty()) inputs.push_back({"--train", options.train});
  if (!options.ids.empty()) inputs.push_back({"--ids", options.ids});
  if (!options.start.empty()) inputs.push_back({"--start", options.start});
  check_outputs({{"--out", options.out}}, inputs);
  check_index_name(options.out);

  const VectorFile base(options.base);
  std::optional<VectorFile> train;
  if (!options.train.empty()) train.emplace(options.train);
  IndexParams params = options.params;
  if (params.expected_rows == 0) params.expected_rows = base.rows();
  Index index(options.factory, params);
  Grown grown("index build", options.out);
  if (run.ranks != nullptr && (!options.start.empty() || !is_kith_file(options.out))) {
    throw UsageError("kith-mpi index build writes .kith files, without --start");
  }
  const bool in_steps = !options.work.empty();
  if (options.keep_work && !in_steps) throw UsageError("--keep-work goes with --work");
  if (in_steps && (run.ranks != nullptr || !options.start.empty() || !is_kith_file(options.out))) {
    throw UsageError("--work is for .kith files, without --start, and for one process");
  }
  grown.log = with_resources(run, [&](const Resources& resources) {
    if (in_steps) {
      const IndexWork work{options.work, options.keep_work, train ? &*train : &base};
      grown.info = write_in_steps(index, base, options.ids, options.out, work, grown.times, resources);
      return;
    }
    if (run.ranks != nullptr) {
      const HostArray<int64_t> ids = read_index_ids(options.ids, base.rows(), resources);
      const IndexRows rows{base, {ids.data(), ids.size(), {}}, train ? &*train : nullptr};
      const Stopwatch watch;
      build_index(index, *run.ranks, rows, options.out, resources);
      grown.times.add = watch.seconds();
      grown.info = Index::load(options.out, {.mmap = true}, resources).info();
      return;
    }
    if (!index.trained()) {
      const Stopwatch watch;
      index.train(train ? *train : base, resources);
      grown.times.train = watch.seconds();
    }
    if (!options.start.empty()) {
      add_from(index, options, base.rows(), grown.times, resources);
    } else if (is_streamed(options.out, run)) {
      grown.info = write_added(index, base, options.ids, options.out, grown.times, resources);
      return;
    } else {
      add_rows(index, base, options.ids, grown.times, resources);
    }
    grown.info = index.info();
    save(index, options.out, grown.times, resources);
  });
  grown.total = total.seconds();
  return report_of(grown, base, run);
}

Report run_index_add(const IndexAddOptions& options, const RunOptions& run) {
  const Stopwatch total;
  std::vector<NamedPath> inputs{{"--base", options.base}};
  if (!options.ids.empty()) inputs.push_back({"--ids", options.ids});
  const std::string out = options.out.empty() ? options.index : options.out;
  check_outputs({{options.out.empty() ? "--index" : "--out", out}}, inputs);
  if (!options.out.empty()) check_index_name(options.out);

  if (options.replace && options.ids.empty()) throw UsageError("--replace goes by ids: give --ids");
  const VectorFile base(options.base);
  Grown grown("index add", out);
  const bool in_steps = !options.work.empty();
  if (options.keep_work && !in_steps) throw UsageError("--keep-work goes with --work");
  if (in_steps && (options.out.empty() || options.replace || !is_kith_file(out) || !is_kith_file(options.index))) {
    throw UsageError("--work is for .kith files, with --out and without --replace");
  }
  grown.log = with_resources(run, [&](const Resources& resources) {
    if (in_steps) {
      const Index index = Index::load(options.index, {.mmap = true}, resources);
      const IndexWork work{options.work, options.keep_work};
      grown.info = write_in_steps(index, base, options.ids, out, work, grown.times, resources);
      return;
    }
    if (is_streamed(out, run) && is_kith_file(options.index) && !options.replace) {
      const Index index = Index::load(options.index, {.mmap = true}, resources);
      if (index.info().degree == 0) {  // what a graph index holds must fit into memory
        grown.info = write_added(index, base, options.ids, out, grown.times, resources);
        return;
      }
    }
    Index index = open_index(options.index, resources);
    if (options.replace) {
      grown.replaced = replace_rows(index, base, options.ids, grown.times, resources);
    } else {
      add_rows(index, base, options.ids, grown.times, resources);
    }
    grown.info = index.info();
    save(index, out, grown.times, resources);
  });
  grown.total = total.seconds();
  return report_of(grown, base, run);
}

}  // namespace kith::cli
