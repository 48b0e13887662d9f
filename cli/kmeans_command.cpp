#include "kmeans_command.hpp"

#include <kith/column_file.hpp>
#include <kith/distributed.hpp>
#include <kith/error.hpp>

#include "exit_codes.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace kith::cli {
namespace {

std::vector<NamedPath> outputs_of(const KMeansOptions& options) {
  std::vector<NamedPath> outputs{{"--out", options.out}};
  if (!options.out_labels.empty()) outputs.push_back({"--out-labels", options.out_labels});
  return outputs;
}

// Reads f32 weights, one per row of the data.
MatrixBuffer read_weights(const std::string& path, int64_t rows, const Resources& resources) {
  MatrixBuffer weights = read_column(path, resources);
  if (weights.dtype() != DType::f32 || weights.rows() != rows) {
    throw InvalidArgument(fmt::format("--weights {} holds {} numbers ({}); {} x 1 f32 are needed, one for each row",
                                      path, weights.rows(), name_of(weights.dtype()), rows));
  }
  return weights;
}

void write_labels(const VectorView<const int32_t>& labels, IdFileWriter& writer) {
  constexpr int64_t kAtOnce = 8192;
  int64_t ids[kAtOnce];
  for (int64_t first = 0; first < labels.size; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, labels.size - first);
    std::copy_n(labels.data + first, count, ids);
    writer.append(ids, count);
  }
}

JsonObject describe_params(const KMeansParams& params) {
  JsonObject json;
  json.number("clusters", params.clusters).number("iterations", params.iterations).real("tol", params.tol);
  json.number("n_init", params.n_init).text("init", name_of(params.init));
  json.number("seed", static_cast<int64_t>(params.seed)).flag("spherical", params.spherical);
  json.number("batch_size", params.batch_size).number("max_points_per_centre", params.max_points_per_centre);
  json.number("init_points_per_centre", params.init_points_per_centre);
  return json;
}

// Given centres are the first ones; it is an error to ask for another start as well.
KMeansInit first_centres(const KMeansOptions& options, std::optional<KMeansInit> init) {
  if (options.given.empty()) return init.value_or(KMeansInit::kmeans_plus_plus);
  if (init.value_or(KMeansInit::given) != KMeansInit::given) {
    throw UsageError(fmt::format("--centres gives the first centres, and --init {} would choose others",
                                 name_of(*init)));
  }
  return KMeansInit::given;
}

}  // namespace

Report run_kmeans(const KMeansOptions& options, const RunOptions& run) {
  const Stopwatch total;
  KMeansParams params = options.params;
  params.compute_labels = true;  // so that the reported objective belongs to the written centres
  if (params.init == KMeansInit::given && options.given.empty()) {
    throw UsageError("--init given needs --centres FILE, the centres to begin with");
  }
  params.validate();
  std::vector<NamedPath> inputs{{"--data", options.data}};
  if (!options.weights.empty()) inputs.push_back({"--weights", options.weights});
  if (!options.given.empty()) inputs.push_back({"--centres", options.given});
  check_outputs(outputs_of(options), inputs);

  const VectorFile data(options.data);
  std::optional<VectorFileWriter> centres_file;  // on the first rank, since all have the same centres
  std::optional<IdFileWriter> labels_file;
  if (run.first_rank()) {
    centres_file.emplace(options.out, DType::f32, params.clusters, data.cols());
    if (!options.out_labels.empty()) labels_file.emplace(options.out_labels, data.rows(), 1);
  }
  KMeans model(params);
  double seconds = 0;
  int threads = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    threads = resources.threads();
    MatrixBuffer weights;
    MatrixBuffer given;
    KMeansInput input;
    if (!options.weights.empty()) {
      weights = read_weights(options.weights, data.rows(), resources);
      input.weights = {static_cast<const float*>(weights.view().data()), data.rows(), {}};
    }
    if (!options.given.empty()) {
      given = read_vectors(options.given, {}, resources);
      input.centres = given.view();
    }
    const Stopwatch work;
    run.ranks == nullptr ? model.fit(data, input, resources) : fit(model, *run.ranks, data, input, resources);
    seconds = work.seconds();
    if (!centres_file) return;
    const KMeansSnapshot fitted = model.snapshot();
    centres_file->append(fitted.centres);
    if (labels_file) write_labels(fitted.labels, *labels_file);
    // Syncs both files first, so that both are replaced or neither.
    centres_file->sync();
    if (labels_file) labels_file->sync();
    centres_file->commit();
    if (labels_file) labels_file->commit();
  });

  Report report;
  report.text = fmt::format(
      "{} rows of {} values ({}) to {} centres, {} iterations\n"
      "objective {:.8g}, {}{} threads: {:.3f} s\n"
      "wrote {}{}\n",
      data.rows(), data.cols(), name_of(data.dtype()), params.clusters, model.iterations(), model.objective(),
      run.ranks_text(), threads, seconds, options.out, options.out_labels.empty() ? "" : ", " + options.out_labels);
  for (const std::string& line : log) report.text += line + "\n";

  JsonObject file;
  file.text("path", data.path()).text("dtype", name_of(data.dtype()));
  file.number("rows", data.rows()).number("cols", data.cols());
  JsonObject result;
  result.object("data", std::move(file)).object("params", describe_params(params));
  result.real("objective", model.objective()).number("iterations", model.iterations());
  result.reals("history", model.history()).number("threads", threads).text("out", options.out);
  if (run.ranks != nullptr) result.number("ranks", run.ranks->size());
  if (!options.out_labels.empty()) result.text("out_labels", options.out_labels);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("fit_seconds", seconds).real("total_seconds", total.seconds());
  report.json.text("command", "kmeans").object("result", std::move(result)).object("memory", std::move(memory));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

void offer_kmeans(Commands& commands) {
  const auto options = std::make_shared<KMeansOptions>();
  const auto init = std::make_shared<std::optional<KMeansInit>>();
  KMeansParams& params = options->params;
  OfferedCommand command =
      commands.offer("kmeans", "Find centres of the rows of a file, and the centre of each row",
                     [options, init](const RunOptions& run) {
                       options->params.init = first_centres(*options, *init);
                       return run_kmeans(*options, run);
                     });
  command.file("--data,--base", options->data, "Vectors, in any format; may be larger than memory").required();
  command.file("--out", options->out, "Where the centres go: a format that holds f32").required();
  command.file("--out-labels", options->out_labels, "Where each row's centre goes: a format that holds ids");
  command.number("-k,--clusters", params.clusters, "Centres");
  command.number("--iterations", params.iterations, "Maximum passes over the rows");
  command.real("--tol", params.tol, "Stop when the centres' squared moves are below this share of the variance");
  command.number("--n-init", params.n_init, "Runs from different starts; the best is kept");
  command.word("--init", *init, parse_kmeans_init, "", "kmeans++, random, or given with --centres (default: kmeans++)")
      .without_default();
  command.file("--centres", options->given, "Centres to begin with");
  command.count("--seed", params.seed, "Seed of the random numbers");
  command.file("--weights", options->weights, "How much each row counts: one column or axis of f32, .npy or .fbin");
  command.flag("--spherical", params.spherical, "Centres of length 1, rows assigned by inner product");
  command.number("--batch-size", params.batch_size, "Rows of a mini-batch; 0: whole passes");
  command.number("--max-points-per-centre", params.max_points_per_centre,
                 "Rows per centre to train on, a sample; 0: all");
  command.number("--init-points-per-centre", params.init_points_per_centre,
                 "Rows per centre that kmeans++ samples; 0: all; -1: as many as are cheap");
  command.no_flag("--no-check-finite", params.check_finite, "Do not look for NaN and infinities");
  command.run_options();
  command.on_ranks();
}

}  // namespace kith::cli
