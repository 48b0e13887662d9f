// An option is offered only where it has an effect, so that none is silently ignored.
#include "command_line.hpp"

#include <kith/metric.hpp>
#include <kith/version.hpp>

#include "byte_size.hpp"
#include "command_help.hpp"
#include "convert_command.hpp"
#include "eval_command.hpp"
#include "core/nearest_name.hpp"
#include "exit_codes.hpp"
#include "graph_commands.hpp"
#include "head_command.hpp"
#include "index_commands.hpp"
#include "info_command.hpp"
#include "kmeans_command.hpp"
#include "knn_command.hpp"
#include "quantizer_commands.hpp"
#include "range_command.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith::cli {
namespace {

// Options as they were typed; what needs a parser of ours is turned into values after the whole line was read.
struct Typed {
  std::string device = "auto";
  std::string memory_limit;
  std::string device_memory_limit;
  std::string metric = "l2";
  bool no_check_finite = false;
  int64_t eval_k = 0;
  std::string convert_dtype;

  RunOptions run;
  InfoOptions info;
  HeadOptions head;
  std::string shell;
  KnnOptions knn;
  KMeansOptions kmeans;
  std::string init;
  RangeOptions range;
  ConvertOptions convert;
  EvalOptions eval;
  IndexBuildOptions index_build;
  IndexAddOptions index_add;
  IndexSearchOptions index_search;
  IndexInspectOptions index_inspect;
  IndexConvertOptions index_convert;
  IndexMergeOptions index_merge;
  GraphBuildOptions graph_build;
  std::string graph_method = "auto";
  GraphEvalOptions graph_eval;
  GraphInfoOptions graph_info;
  GraphPathOptions graph_path;
  GraphMergeOptions graph_merge;
  GraphExtendOptions graph_extend;
  GraphRefineOptions graph_refine;
  GraphMergeParams merge_params;  // of these three
  NeighborPaths merge_out;
  std::string graph_start;
  std::string graph_update;
  std::string path_by = "steps";
  TrainOptions train;
  CodeOptions encode;
  CodeOptions decode;
};

// CLI11 reads 010 as eight and takes a number that is too large for the largest.
CLI::Validator decimal() {
  const auto check = [](const std::string& text) -> std::string {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
    const bool plain = digits.size() == 1 || !digits.starts_with('0');
    if (error == std::errc::result_out_of_range && stopped == end) {
      return fmt::format("{} is too large; numbers go up to {}", text, std::numeric_limits<int64_t>::max());
    }
    return error == std::errc{} && stopped == end && plain ? ""
                                                           : fmt::format("'{}' is not a decimal whole number", text);
  };
  return {check, "", "decimal"};
}

// For numbers that are kept in an int.
CLI::Validator in_32_bits() {
  const auto check = [](const std::string& text) -> std::string {
    int value = 0;
    const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc::result_out_of_range ? fmt::format("{} is too large", text) : "";
  };
  return {check, "", "32 bits"};
}

CLI::Validator from_0_on() {
  const auto check = [](const std::string& text) -> std::string {
    return text.starts_with('-') ? fmt::format("'{}' is negative", text) : "";
  };
  return {check, "", "from 0 on"};
}

CLI::Validator real() {
  const auto check = [](const std::string& text) -> std::string {
    if (text.empty()) return "";  // which not_empty refuses
    double value = 0;
    const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range && stopped == end) {
      return fmt::format("{} is beyond what a number can be here", text);
    }
    return error == std::errc{} && stopped == end ? "" : fmt::format("'{}' is not a number such as 0.5 or 1e-4", text);
  };
  return {check, "", "number"};
}

CLI::Validator not_empty() {
  return {[](const std::string& text) -> std::string { return text.empty() ? "an empty value" : ""; }, "", "not empty"};
}

void add_output_options(CLI::App& command, Typed& typed) {
  command.add_flag("--json", typed.run.json, "Print one JSON object on stdout, errors included")
      ->disable_flag_override();
  command.add_flag("--quiet", typed.run.quiet, "Print nothing but errors")->disable_flag_override();
}

void add_memory_limit(CLI::App& command, Typed& typed) {
  command
      .add_option("--memory-limit", typed.memory_limit,
                  "Largest resident memory of this process: 512M, 1.5G, 100000 (default: no limit)")
      ->type_name("SIZE");
}

void add_metric_name(CLI::App& command, Typed& typed) {
  command
      .add_option("--metric", typed.metric, "l2, sqeuclidean, inner_product, cosine, l1, linf, chi_square or hamming")
      ->type_name("NAME");
}

void add_metric(CLI::App& command, Typed& typed) {
  add_metric_name(command, typed);
  command.add_flag("--no-check-finite", typed.no_check_finite, "Accept NaN and infinities instead of refusing them");
}

void add_filter(CLI::App& command, std::string& filter) {
  command
      .add_option("--filter", filter,
                  "Which base rows may be found: their numbers (.ibin, .ivecs, .npy), or one byte or bool for each "
                  "row, 0 for those left out (.u8bin, .npy)")
      ->type_name("FILE");
}

void add_threads(CLI::App& command, Typed& typed) {
  command.add_option("--threads", typed.run.threads, "CPU threads; 0 is one per hardware thread")
      ->check(decimal())
      ->check(in_32_bits())
      ->type_name("N");
}

CLI::App* add_info(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("info", "Show this program and machine, or what files hold");
  command->add_option("files", typed.info.files, "Files of vectors or ids")->type_name("FILE");
  add_output_options(*command, typed);
  return command;
}

void add_device(CLI::App& command, Typed& typed) {
  command
      .add_option("--device", typed.device, "auto, cpu or cuda:N; auto stays on the CPU under a memory limit below 1G")
      ->type_name("NAME");
  command
      .add_option("--device-memory-limit", typed.device_memory_limit,
                  "Largest memory to take on a GPU (default: no limit)")
      ->type_name("SIZE");
}

// What every command that computes takes.
void add_run_options(CLI::App& command, Typed& typed) {
  add_device(command, typed);
  add_threads(command, typed);
  add_memory_limit(command, typed);
  add_output_options(command, typed);
}

CLI::App* add_head(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("head", "Show some rows of a file as numbers");
  command->add_option("FILE", typed.head.file, "File of vectors or ids, in any format")->required()->type_name("FILE");
  command->add_option("--rows", typed.head.rows, "FIRST:END, the end left out; 7 is row 7 alone")->type_name("RANGE");
  command->add_option("--columns", typed.head.columns, "Values of a row to show; 0: all")
      ->check(decimal())
      ->type_name("N");
  add_memory_limit(*command, typed);
  add_output_options(*command, typed);
  return command;
}

CLI::App* add_completion(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("completion", "Print a script that lets a shell complete commands and options");
  command->add_option("SHELL", typed.shell, "bash, zsh or fish")->required()->type_name("NAME");
  return command;
}

CLI::App* add_knn(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("knn", "Find the exact k nearest base rows of every query");
  command->add_option("--base", typed.knn.base, "Vectors to search, in any format that convert reads")
      ->required()
      ->type_name("FILE");
  command->add_option("--queries", typed.knn.queries, "Vectors to search for")->required()->type_name("FILE");
  command->add_option("-k", typed.knn.params.k, "Neighbours per query")->check(decimal())->type_name("N");
  add_metric(*command, typed);
  add_filter(*command, typed.knn.filter);
  command->add_option("--out-ids", typed.knn.out.ids, "Where ids go: .ibin or .ivecs (int32), .npy or .hdf5 (int64)")
      ->type_name("FILE");
  command->add_option("--out-distances", typed.knn.out.distances, "Where distances go: .fbin, .fvecs, .npy or .hdf5")
      ->type_name("FILE");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_range(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("range", "Find all base rows within a radius of every query");
  command->add_option("--base", typed.range.base, "Vectors to search")->required()->type_name("FILE");
  command->add_option("--queries", typed.range.queries, "Vectors to search for")->required()->type_name("FILE");
  command
      ->add_option("--radius", typed.range.params.radius,
                   "Largest distance, in the metric's unit; for inner_product the smallest product")
      ->required()
      ->check(real())
      ->type_name("X");
  add_metric(*command, typed);
  add_filter(*command, typed.range.filter);
  command->add_flag("--without-self", typed.range.without_self,
                    "For a file searched for its own rows: query i does not find row i");
  command->add_option("--out-offsets", typed.range.out_offsets, "Where each query's rows begin: a column of ids")
      ->required()
      ->type_name("FILE");
  command->add_option("--out-ids", typed.range.out_ids, "Where the rows go: .ibin (int32) or .npy (int64), a column")
      ->required()
      ->type_name("FILE");
  command->add_option("--out-distances", typed.range.out_distances, "Where their distances go: a column")
      ->type_name("FILE");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_kmeans(CLI::App& app, Typed& typed) {
  KMeansParams& params = typed.kmeans.params;
  CLI::App* command = app.add_subcommand("kmeans", "Find centres of the rows of a file, and the centre of each row");
  const auto number = [&](const char* name, int64_t& value, const char* help) {
    command->add_option(name, value, help)->check(decimal())->type_name("N");
  };
  command->add_option("--data", typed.kmeans.data, "Vectors, in any format; may be larger than memory")
      ->required()
      ->type_name("FILE");
  command->add_option("--out", typed.kmeans.out, "Where the centres go: a format that holds f32")
      ->required()
      ->type_name("FILE");
  command->add_option("--out-labels", typed.kmeans.out_labels, "Where each row's centre goes: a format that holds ids")
      ->type_name("FILE");
  number("-k,--clusters", params.clusters, "Centres");
  number("--iterations", params.iterations, "Maximum passes over the rows");
  command->add_option("--tol", params.tol, "Stop when the centres' squared moves are below this share of the variance")
      ->check(real())
      ->type_name("X");
  number("--n-init", params.n_init, "Runs from different starts; the best is kept");
  command->add_option("--init", typed.init, "kmeans++, random, or given with --centres (default: kmeans++)")
      ->default_str("")
      ->type_name("NAME");
  command->add_option("--centres", typed.kmeans.given, "Centres to begin with")->type_name("FILE");
  command->add_option("--seed", params.seed, "Seed of the random numbers")
      ->check(decimal())
      ->check(from_0_on())
      ->type_name("N");
  command
      ->add_option("--weights", typed.kmeans.weights,
                   "How much each row counts: one column or axis of f32, .npy or .fbin")
      ->type_name("FILE");
  command->add_flag("--spherical", params.spherical, "Centres of length 1, rows assigned by inner product");
  number("--batch-size", params.batch_size, "Rows of a mini-batch; 0: whole passes");
  number("--max-points-per-centre", params.max_points_per_centre, "Rows per centre to train on, a sample; 0: all");
  number("--init-points-per-centre", params.init_points_per_centre,
         "Rows per centre that kmeans++ samples; 0: all; -1: as many as are cheap");
  command->add_flag("--no-check-finite", typed.no_check_finite, "Do not look for NaN and infinities");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_convert(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand(
      "convert",
      "Write vectors or ids in another format or dtype, or some of their rows; file extensions determine the formats");
  command
      ->add_option("IN", typed.convert.input,
                   "File to read: .fvecs .bvecs .ivecs .fbin .f16bin .bf16bin .u8bin .i8bin .ibin .npy .hdf5 .h5 "
                   "-idx3-ubyte[.gz]; FILE.hdf5::NAME is another dataset than train")
      ->required()
      ->type_name("FILE");
  command->add_option("OUT", typed.convert.output, "File to write: any of these but IDX")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--dtype", typed.convert_dtype,
                   "Of the vectors to write: f32, f16, bf16, u8 or i8 (default: what OUT's extension says, else IN's)")
      ->default_str("")
      ->type_name("NAME");
  command->add_option("--first", typed.convert.first, "First row to take")->check(decimal())->type_name("N");
  command->add_option("--count", typed.convert.count, "Rows to take; -1: up to the end")
      ->check(decimal())
      ->type_name("N");
  add_memory_limit(*command, typed);
  add_output_options(*command, typed);
  return command;
}

CLI::App* add_eval(CLI::App& app, Typed& typed) {
  CLI::App* command =
      app.add_subcommand("eval", "Measure found neighbours against the true ones: 1-recall@R and k-recall@k");
  command->add_option("--found", typed.eval.found, "Ids that were found: .ibin, .ivecs, .npy or .hdf5")
      ->required()
      ->type_name("FILE");
  command->add_option("--truth", typed.eval.truth, "Ids of the true neighbours, nearest first")
      ->required()
      ->type_name("FILE");
  command->add_option("-k", typed.eval_k, "k of k-recall@k (default: the columns of found, at most those of truth)")
      ->default_str("")
      ->check(decimal())
      ->type_name("N");
  command->add_option("-R", typed.eval.r, "R values of 1-recall@R (default: 1,10,100 up to the columns of found)")
      ->delimiter(',')
      ->check(decimal())
      ->default_str("")
      ->type_name("N,N,...");
  add_memory_limit(*command, typed);
  add_output_options(*command, typed);
  return command;
}

// The commands under `kith index`.
struct IndexApps {
  const CLI::App* build = nullptr;
  const CLI::App* add = nullptr;
  const CLI::App* search = nullptr;
  const CLI::App* inspect = nullptr;
  const CLI::App* convert = nullptr;
  const CLI::App* merge = nullptr;
};

void add_index_path(CLI::App& command, std::string& path) {
  command.add_option("--index", path, "File of an index: .kith, or any other name for FAISS's format")
      ->required()
      ->type_name("FILE");
}

void add_index_rows(CLI::App& command, std::string& base, std::string& ids) {
  command.add_option("--base", base, "Vectors to add, in any format; may be larger than memory")
      ->required()
      ->type_name("FILE");
  command.add_option("--ids", ids, "Their ids: one row or column of whole numbers (default: 0, 1, 2, ...)")
      ->default_str("")
      ->type_name("FILE");
}

CLI::App* add_index_build(CLI::App& index, Typed& typed) {
  IndexBuildOptions& options = typed.index_build;
  CLI::App* command = index.add_subcommand("build", "Make an index of the vectors of a file");
  add_index_rows(*command, options.base, options.ids);
  command
      ->add_option("--factory", options.factory,
                   "What is kept of a vector, in FAISS's grammar: Flat, IVF1024,PQ16, OPQ16,IVF,PQ16,RFlat, ...")
      ->required()
      ->type_name("NAME");
  command->add_option("--out", options.out, "Where the index goes: .kith, or any other name for FAISS's format")
      ->required()
      ->type_name("FILE");
  command->add_option("--train", options.train, "Vectors to train on (default: those of --base)")
      ->default_str("")
      ->type_name("FILE");
  command
      ->add_option("--expected-rows", options.params.expected_rows,
                   "Vectors that the index will hold, for IVF without a number; 0: those of --base")
      ->check(decimal())
      ->check(from_0_on())
      ->type_name("N");
  command->add_option("--seed", options.params.seed, "Seed of the random numbers of the training")
      ->check(decimal())
      ->check(from_0_on())
      ->type_name("N");
  add_metric(*command, typed);
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_index_add(CLI::App& index, Typed& typed) {
  CLI::App* command = index.add_subcommand("add", "Add the vectors of a file to an index");
  add_index_path(*command, typed.index_add.index);
  add_index_rows(*command, typed.index_add.base, typed.index_add.ids);
  command->add_option("--out", typed.index_add.out, "Where the index goes (default: it replaces --index)")
      ->default_str("")
      ->type_name("FILE");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_index_search(CLI::App& index, Typed& typed) {
  IndexSearchOptions& options = typed.index_search;
  CLI::App* command = index.add_subcommand("search", "Find the k nearest vectors of an index for every query");
  add_index_path(*command, options.index);
  command->add_option("--queries", options.queries, "Vectors to search for")->required()->type_name("FILE");
  command->add_option("-k", options.params.k, "Neighbours per query")->check(decimal())->type_name("N");
  command
      ->add_option("--probes", options.params.probes,
                   "Lists to look at; more find more; 0: the root of their number, at most 64")
      ->check(decimal())
      ->type_name("N");
  command
      ->add_option("--refine", options.params.refine,
                   "With RFlat, Refine(...) or --refine-from: so many times k candidates are compared again; 0: 4")
      ->check(decimal())
      ->type_name("N");
  command
      ->add_option("--refine-from", options.refine_from,
                   "The original vectors, to compare candidates with again: row i is the vector with id i")
      ->type_name("FILE");
  command
      ->add_option("--filter", options.filter,
                   "Which vectors may be found: their ids (.ibin, .ivecs, .npy), or one byte or bool for each vector "
                   "in the order of add, 0 for those left out (.u8bin, .npy)")
      ->type_name("FILE");
  command->add_option("--out-ids", options.out.ids, "Where ids go: .ibin or .ivecs (int32), .npy or .hdf5 (int64)")
      ->type_name("FILE");
  command->add_option("--out-distances", options.out.distances, "Where distances go: .fbin, .fvecs, .npy or .hdf5")
      ->type_name("FILE");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_index_merge(CLI::App& index, Typed& typed) {
  IndexMergeOptions& options = typed.index_merge;
  CLI::App* command = index.add_subcommand("merge", "Put the vectors of another index, trained alike, into one");
  command->add_option("INDEX", options.index, "File of an index")->required()->type_name("FILE");
  command->add_option("OTHER", options.other, "File of the index whose vectors come behind")
      ->required()
      ->type_name("FILE");
  command->add_option("--out", options.out, "Where the index goes: .kith, or any other name for FAISS's format")
      ->required()
      ->type_name("FILE");
  command->add_flag("--shift-ids", options.params.shift_ids,
                    "Give the other's vectors ids behind those of the first; without it ids must differ");
  add_memory_limit(*command, typed);
  add_output_options(*command, typed);
  return command;
}

IndexApps add_index(CLI::App& app, Typed& typed) {
  CLI::App* index =
      app.add_subcommand("index", "Build, grow, search and convert an index: build, add, search, inspect, convert, merge");
  index->require_subcommand(1);
  IndexApps apps;
  apps.build = add_index_build(*index, typed);
  apps.add = add_index_add(*index, typed);
  apps.search = add_index_search(*index, typed);
  CLI::App* inspect = index->add_subcommand("inspect", "Show what an index holds: lists, how even they are, bytes");
  inspect->add_option("INDEX", typed.index_inspect.index, "File of an index")->required()->type_name("FILE");
  add_memory_limit(*inspect, typed);
  add_output_options(*inspect, typed);
  apps.inspect = inspect;
  CLI::App* convert =
      index->add_subcommand("convert", "Write an index in another format: .kith, or any other name for FAISS's");
  convert->add_option("IN", typed.index_convert.input, "File of an index")->required()->type_name("FILE");
  convert->add_option("OUT", typed.index_convert.output, "File to write")->required()->type_name("FILE");
  add_memory_limit(*convert, typed);
  add_output_options(*convert, typed);
  apps.convert = convert;
  apps.merge = add_index_merge(*index, typed);
  return apps;
}

// The commands under `kith graph`.
struct GraphApps {
  const CLI::App* build = nullptr;
  const CLI::App* eval = nullptr;
  const CLI::App* info = nullptr;
  const CLI::App* path = nullptr;
  const CLI::App* merge = nullptr;
  const CLI::App* extend = nullptr;
  const CLI::App* refine = nullptr;
};

// A graph in files, and the metric, which is not in them.
void add_graph_paths(CLI::App& command, GraphPaths& paths, Typed& typed) {
  command.add_option("--ids", paths.ids, "The graph's ids, rows x k: .npy (int64, mapped), .ibin, .ivecs or .hdf5")
      ->required()
      ->type_name("FILE");
  command.add_option("--distances", paths.distances, "The graph's distances: .npy or .fbin (mapped), .fvecs or .hdf5")
      ->required()
      ->type_name("FILE");
  add_metric_name(command, typed);
}

// A parameter that follows from the problem where it is not given.
void add_number(CLI::App& command, const char* name, std::optional<int64_t>& value, const char* help) {
  command.add_option(name, value, help)->check(decimal())->type_name("N");
}

void add_recall_and_seed(CLI::App& command, double& recall, uint64_t& seed) {
  command.add_option("--recall", recall, "The share of the true neighbours to find; 1 is exact")
      ->check(real())
      ->type_name("X");
  command.add_option("--seed", seed, "Seed of the random numbers")->check(decimal())->check(from_0_on())->type_name("N");
}

template <typename Params>
void add_descent_options(CLI::App& command, Params& params) {
  add_number(command, "--samples", params.samples, "Of nn_descent: new and old neighbours that meet in a round, each");
  add_number(command, "--list-length", params.list_length, "Of nn_descent: neighbours in a working list, at least k");
  add_number(command, "--iterations", params.iterations, "Of nn_descent: maximum rounds");
  command.add_option("--delta", params.delta, "Of nn_descent: end when at most this share of neighbours is new")
      ->check(real())
      ->type_name("X");
}

void add_graph_outputs(CLI::App& command, NeighborPaths& out) {
  command.add_option("--out-ids", out.ids, "Where ids go: .npy (which can be mapped), .ibin, .ivecs or .hdf5")
      ->required()
      ->type_name("FILE");
  command.add_option("--out-distances", out.distances, "Where distances go: .npy, .fbin, .fvecs or .hdf5")
      ->required()
      ->type_name("FILE");
}

// What graphs made of graphs share.
void add_merge_options(CLI::App& command, Typed& typed) {
  add_graph_outputs(command, typed.merge_out);
  add_recall_and_seed(command, typed.merge_params.recall, typed.merge_params.seed);
  add_descent_options(command, typed.merge_params);
  command.add_flag("--no-check-finite", typed.no_check_finite, "Do not look for NaN and infinities");
  add_run_options(command, typed);
}

CLI::App* add_graph_merge(CLI::App& graph, Typed& typed) {
  GraphMergeOptions& options = typed.graph_merge;
  CLI::App* command = graph.add_subcommand("merge", "Make the graph of several sets from the graph of each");
  const auto files = [&](const char* name, std::vector<std::string>& value, const char* help) {
    command->add_option(name, value, help)->required()->type_name("FILE");
  };
  files("--ids", options.ids, "The graphs' ids");
  files("--distances", options.distances, "The graphs' distances, in the same order");
  files("--data", options.data, "The vectors that they were built of, in the same order");
  add_metric_name(*command, typed);
  add_merge_options(*command, typed);
  return command;
}

CLI::App* add_graph_extend(CLI::App& graph, Typed& typed) {
  GraphExtendOptions& options = typed.graph_extend;
  CLI::App* command = graph.add_subcommand("extend", "Add vectors to a graph");
  add_graph_paths(*command, options.graph, typed);
  command->add_option("--data", options.data, "The vectors that it was built of")->required()->type_name("FILE");
  command->add_option("--new", options.fresh, "The vectors to add")->required()->type_name("FILE");
  add_merge_options(*command, typed);
  return command;
}

CLI::App* add_graph_refine(CLI::App& graph, Typed& typed) {
  GraphRefineOptions& options = typed.graph_refine;
  CLI::App* command = graph.add_subcommand("refine", "Find more of the true neighbours of a graph's rows");
  add_graph_paths(*command, options.graph, typed);
  command->add_option("--data", options.data, "The vectors that it was built of")->required()->type_name("FILE");
  add_merge_options(*command, typed);
  return command;
}

CLI::App* add_graph_build(CLI::App& graph, Typed& typed) {
  GraphBuildOptions& options = typed.graph_build;
  CLI::App* command = graph.add_subcommand("build", "Find the k nearest other rows of every row of a file");
  command->add_option("--data", options.data, "Vectors, in any format")->required()->type_name("FILE");
  add_graph_outputs(*command, options.out);
  command->add_option("-k", options.params.k, "Neighbours per row")->check(decimal())->type_name("N");
  command
      ->add_option("--method", typed.graph_method,
                   "exact; cells, by k-means cells; nn_descent, by neighbours' neighbours; auto, the fastest")
      ->type_name("NAME");
  add_recall_and_seed(*command, options.params.recall, options.params.seed);
  add_number(*command, "--cells", options.params.cells, "Of cells: how many there are");
  add_number(*command, "--probes", options.params.probes, "Of cells: with how many a row is compared at most");
  command->add_option("--start", typed.graph_start, "Of nn_descent: random, cells or auto")->type_name("NAME");
  add_descent_options(*command, options.params);
  command->add_option("--update", typed.graph_update, "Of nn_descent: selective or all")->type_name("NAME");
  add_metric(*command, typed);
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_graph_eval(CLI::App& graph, Typed& typed) {
  GraphEvalOptions& options = typed.graph_eval;
  CLI::App* command = graph.add_subcommand("eval", "Measure a graph's recall on rows that are searched exactly");
  add_graph_paths(*command, options.graph, typed);
  command->add_option("--data", options.data, "The vectors that it was built of")->required()->type_name("FILE");
  command->add_option("--rows", options.params.rows, "Rows to look at")->check(decimal())->type_name("N");
  command->add_option("--seed", options.params.seed, "Seed by which they are drawn")
      ->check(decimal())
      ->check(from_0_on())
      ->type_name("N");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_graph_path(CLI::App& graph, Typed& typed) {
  GraphPathOptions& options = typed.graph_path;
  CLI::App* command =
      graph.add_subcommand("path", "Find the path between two rows whose largest step is as small as it can be");
  add_graph_paths(*command, options.graph, typed);
  const auto row = [&](const char* name, int64_t& value, const char* help) {
    command->add_option(name, value, help)->check(decimal())->check(from_0_on())->default_str("")->type_name("ROW");
  };
  row("--from", options.from, "Where the path begins");
  row("--to", options.to, "Where it ends");
  command
      ->add_option("--by", typed.path_by, "Of all such paths: steps, one with the fewest; tree, the spanning tree's")
      ->type_name("NAME");
  command->add_option("--out", options.out, "Where the path's rows go: a column of ids")->type_name("FILE");
  command->add_option("--pairs", options.pairs, "In place of one path the widths of many pairs: two columns of ids")
      ->type_name("FILE");
  command->add_option("--out-widths", options.out_widths, "Where these widths go: a column of f32")->type_name("FILE");
  add_threads(*command, typed);
  add_memory_limit(*command, typed);
  add_output_options(*command, typed);
  return command;
}

GraphApps add_graph(CLI::App& app, Typed& typed) {
  CLI::App* graph = app.add_subcommand("graph", "Build, join, measure and walk on a k-NN graph");
  graph->require_subcommand(1);
  GraphApps apps;
  apps.build = add_graph_build(*graph, typed);
  apps.eval = add_graph_eval(*graph, typed);
  CLI::App* info = graph->add_subcommand("info", "Check a graph's files and show what they hold");
  add_graph_paths(*info, typed.graph_info.graph, typed);
  add_threads(*info, typed);
  add_memory_limit(*info, typed);
  add_output_options(*info, typed);
  apps.info = info;
  apps.path = add_graph_path(*graph, typed);
  apps.merge = add_graph_merge(*graph, typed);
  apps.extend = add_graph_extend(*graph, typed);
  apps.refine = add_graph_refine(*graph, typed);
  return apps;
}

CLI::App* add_train(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("train", "Train a quantizer on the vectors of a file");
  command->add_option("--data", typed.train.data, "Vectors, in any format; may be larger than memory")
      ->required()
      ->type_name("FILE");
  command->add_option("--quantizer", typed.train.quantizer,
                      "PQm, PQmxb, LSQmxb, RQmxb, SQ8, SQ6, SQ4 or SQfp16: PQ16, PQ32x4, LSQ8x8, ...")
      ->required()
      ->type_name("NAME");
  command->add_option("--out", typed.train.out, "Where the quantizer goes: a .kith file")
      ->required()
      ->type_name("FILE");
  command->add_option("--seed", typed.train.seed, "Seed of the random numbers")
      ->check(decimal())
      ->check(from_0_on())
      ->type_name("N");
  command->add_flag("--no-check-finite", typed.no_check_finite, "Accept NaN and infinities instead of refusing them");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_encode(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("encode", "Write the codes of the vectors of a file");
  command->add_option("--quantizer", typed.encode.quantizer, "File that train wrote")->required()->type_name("FILE");
  command->add_option("--data", typed.encode.in, "Vectors to encode")->required()->type_name("FILE");
  command->add_option("--out", typed.encode.out, "Where the codes go: .u8bin, .bvecs or .npy")
      ->required()
      ->type_name("FILE");
  command->add_option("--rounds", typed.encode.rounds, "Rounds of local search, for LSQ; more lower the error")
      ->check(decimal())
      ->check(from_0_on())
      ->type_name("N");
  add_run_options(*command, typed);
  return command;
}

CLI::App* add_decode(CLI::App& app, Typed& typed) {
  CLI::App* command = app.add_subcommand("decode", "Write the vectors that codes stand for");
  command->add_option("--quantizer", typed.decode.quantizer, "File that train wrote")->required()->type_name("FILE");
  command->add_option("--codes", typed.decode.in, "Codes that encode wrote")->required()->type_name("FILE");
  command->add_option("--out", typed.decode.out, "Where the vectors go: .fbin, .fvecs, .npy or .hdf5")
      ->required()
      ->type_name("FILE");
  add_run_options(*command, typed);
  return command;
}

void interpret(Typed& typed) {
  typed.run.device = parse_device(typed.device);
  typed.knn.params.metric = parse_metric(typed.metric);
  typed.knn.params.check_finite = !typed.no_check_finite;
  typed.kmeans.params.check_finite = !typed.no_check_finite;
  typed.kmeans.params.init = parse_kmeans_init(typed.init.empty() ? "kmeans++" : typed.init);
  if (!typed.kmeans.given.empty()) {
    if (!typed.init.empty() && typed.kmeans.params.init != KMeansInit::given) {
      throw UsageError(fmt::format("--centres gives the first centres, and --init {} would choose others", typed.init));
    }
    typed.kmeans.params.init = KMeansInit::given;
  }
  typed.range.params.metric = typed.knn.params.metric;
  typed.range.params.check_finite = typed.knn.params.check_finite;
  typed.train.check_finite = typed.knn.params.check_finite;
  typed.index_build.params.metric = typed.knn.params.metric;
  typed.index_build.params.check_finite = typed.knn.params.check_finite;
  typed.graph_build.params.metric = typed.knn.params.metric;
  typed.graph_build.params.check_finite = typed.knn.params.check_finite;
  typed.graph_build.params.method = parse_graph_method(typed.graph_method);
  if (!typed.graph_start.empty()) typed.graph_build.params.start = parse_graph_start(typed.graph_start);
  if (!typed.graph_update.empty()) typed.graph_build.params.update = parse_graph_update(typed.graph_update);
  typed.merge_params.check_finite = typed.knn.params.check_finite;
  typed.graph_merge.params = typed.graph_extend.params = typed.graph_refine.params = typed.merge_params;
  typed.graph_merge.out = typed.graph_extend.out = typed.graph_refine.out = typed.merge_out;
  typed.graph_merge.metric = typed.graph_extend.graph.metric = typed.graph_refine.graph.metric =
      typed.knn.params.metric;
  typed.graph_eval.graph.metric = typed.knn.params.metric;
  typed.graph_info.graph.metric = typed.knn.params.metric;
  typed.graph_path.graph.metric = typed.knn.params.metric;
  typed.graph_path.by = parse_path_by(typed.path_by);
  if (!typed.convert_dtype.empty()) typed.convert.dtype = parse_dtype(typed.convert_dtype);
  if (!typed.memory_limit.empty()) typed.run.memory_limit = parse_byte_size(typed.memory_limit, "--memory-limit");
  if (!typed.device_memory_limit.empty()) {
    typed.run.device_memory_limit = parse_byte_size(typed.device_memory_limit, "--device-memory-limit");
  }
}

std::vector<CommandHelp> describe_commands(const CLI::App& app, const std::string& path) {
  CommandHelp help{path, app.get_description(), {}, !path.empty() && !app.get_subcommands(nullptr).empty()};
  for (const CLI::Option* option : app.get_options()) {
    OptionHelp entry;
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
    entry.operand = entry.names.empty();
    if (entry.operand) entry.names.push_back(option->get_name());
    if (option->get_items_expected_max() > 0) entry.value = option->get_type_name();
    entry.text = option->get_description();
    entry.required = option->get_required();
    help.options.push_back(std::move(entry));
  }
  std::vector<CommandHelp> commands{std::move(help)};
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string below = path.empty() ? command->get_name() : path + " " + command->get_name();
    for (CommandHelp& found : describe_commands(*command, below)) commands.push_back(std::move(found));
  }
  return commands;
}

// The help of every command ends with a line that works.
void add_examples(CLI::App& app, const std::string& path) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string below = path.empty() ? command->get_name() : path + " " + command->get_name();
    if (const std::string example = example_of(below); !example.empty()) {
      command->footer(fmt::format("Example:\n  {}", example));
    }
    add_examples(*command, below);
  }
}

std::string unknown_command(const CLI::App& app, const std::string& name) {
  std::string known;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  const std::string under = app.get_parent() == nullptr ? "" : app.get_name() + " ";
  return fmt::format("unknown command '{}{}'; known are: {}; see kith {}--help", under, name, known, under);
}

// The first option on the line that the command does not have; empty for none.
std::string unknown_option(const CLI::App& command, int first, int argc, const char* const* argv) {
  for (int i = first; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    const std::string name(argument.substr(0, argument.find('=')));
    if (name.starts_with("--") && command.get_option_no_throw(name) == nullptr) return name;
  }
  return "";
}

std::string unknown_option_text(const CLI::App& command, const std::string& name, const std::string& path) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
  }
  const std::string_view nearest = nearest_name(name, known);
  if (nearest.empty()) return fmt::format("kith {}has no option {}; see kith {}--help", path, name, path);
  return fmt::format("kith {}has no option {}; did you mean {}? See kith {}--help", path, name, nearest, path);
}

// An option with nothing after it, such as a variable that is not set, is a mistake and not a default.
void refuse_empty_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() > 0 && option->get_type_size_max() > 0) option->check(not_empty());
    }
    refuse_empty_values(*command);
  }
}

// A mistake on the line, with where to read on.
[[noreturn]] void refuse_line(const CLI::App& app, int argc, const char* const* argv, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string path;
  int depth = 1;  // of the next argument that may name a command
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands()[0];
    path += at->get_name() + " ";
    ++depth;
  }
  const bool has_commands = !at->get_subcommands(nullptr).empty();
  if (has_commands && depth < argc && argv[depth][0] != '-') throw UsageError(unknown_command(*at, argv[depth]));
  if (has_commands && depth > 1) {
    throw UsageError(fmt::format("kith {}needs one of its commands; see kith {}--help", path, path));
  }
  if (const std::string name = unknown_option(*at, depth, argc, argv); !name.empty()) {
    throw UsageError(unknown_option_text(*at, name, path));
  }
  throw UsageError(fmt::format("{}; see kith {}--help", error.what(), path));
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  Typed typed;
  CLI::App app("Kith finds nearest neighbours.", "kith");
  app.set_version_flag("--version", fmt::format("kith {}", version()));
  app.option_defaults()->always_capture_default();
  app.require_subcommand(0, 1);
  app.footer(
      fmt::format("Exit codes: 0 done, 1 other errors, 2 wrong usage, 3 files, 4 memory, 5 devices, 130 interrupted.\n\n"
                  "Example:\n  {}",
                  example_of("")));
  const CLI::App* info = add_info(app, typed);
  const CLI::App* head = add_head(app, typed);
  const CLI::App* knn = add_knn(app, typed);
  const CLI::App* range = add_range(app, typed);
  const CLI::App* kmeans = add_kmeans(app, typed);
  const CLI::App* convert = add_convert(app, typed);
  const CLI::App* eval = add_eval(app, typed);
  const IndexApps index = add_index(app, typed);
  const GraphApps graph = add_graph(app, typed);
  const CLI::App* train = add_train(app, typed);
  const CLI::App* encode = add_encode(app, typed);
  const CLI::App* decode = add_decode(app, typed);
  const CLI::App* completion = add_completion(app, typed);
  const CLI::App* manual = app.add_subcommand("manual", "Print the manual page, for man");
  refuse_empty_values(app);
  add_examples(app, "");

  CommandLine line;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& request) {
    line.answer = fmt::format("{}\n", request.what());
    return line;
  } catch (const CLI::CallForHelp&) {
    line.answer = app.help();
    return line;
  } catch (const CLI::ParseError& error) {
    refuse_line(app, argc, argv, error);
  }
  if (app.get_subcommands().empty()) throw UsageError(fmt::format("no command was given\n\n{}", app.help()));
  if (completion->parsed() || manual->parsed()) {
    const std::vector<CommandHelp> commands = describe_commands(app, "");
    line.answer = manual->parsed() ? manual_page(commands, std::string(version())) : completion_script(typed.shell, commands);
    return line;
  }

  interpret(typed);
  if (eval->count("-k") > 0) typed.eval.k = typed.eval_k;
  // The others copy and count: no GPU need wake for them.
  const bool computes = knn->parsed() || range->parsed() || kmeans->parsed() || index.build->parsed() ||
                        index.add->parsed() || index.search->parsed() || graph.build->parsed() ||
                        graph.eval->parsed() || train->parsed() || encode->parsed() || decode->parsed();
  if (!computes) typed.run.device = Device::cpu();
  line.run = typed.run;
  if (info->parsed()) line.command = [typed] { return run_info(typed.info); };
  if (head->parsed()) line.command = [typed] { return run_head(typed.head, typed.run); };
  if (knn->parsed()) line.command = [typed] { return run_knn(typed.knn, typed.run); };
  if (range->parsed()) line.command = [typed] { return run_range(typed.range, typed.run); };
  if (kmeans->parsed()) line.command = [typed] { return run_kmeans(typed.kmeans, typed.run); };
  if (convert->parsed()) line.command = [typed] { return run_convert(typed.convert, typed.run); };
  if (eval->parsed()) line.command = [typed] { return run_eval(typed.eval, typed.run); };
  if (train->parsed()) line.command = [typed] { return run_train(typed.train, typed.run); };
  if (encode->parsed()) line.command = [typed] { return run_encode(typed.encode, typed.run); };
  if (decode->parsed()) line.command = [typed] { return run_decode(typed.decode, typed.run); };
  if (index.build->parsed()) line.command = [typed] { return run_index_build(typed.index_build, typed.run); };
  if (index.add->parsed()) line.command = [typed] { return run_index_add(typed.index_add, typed.run); };
  if (index.search->parsed()) line.command = [typed] { return run_index_search(typed.index_search, typed.run); };
  if (index.inspect->parsed()) line.command = [typed] { return run_index_inspect(typed.index_inspect, typed.run); };
  if (index.merge->parsed()) line.command = [typed] { return run_index_merge(typed.index_merge, typed.run); };
  if (index.convert->parsed()) line.command = [typed] { return run_index_convert(typed.index_convert, typed.run); };
  if (graph.build->parsed()) line.command = [typed] { return run_graph_build(typed.graph_build, typed.run); };
  if (graph.eval->parsed()) line.command = [typed] { return run_graph_eval(typed.graph_eval, typed.run); };
  if (graph.info->parsed()) line.command = [typed] { return run_graph_info(typed.graph_info, typed.run); };
  if (graph.merge->parsed()) line.command = [typed] { return run_graph_merge(typed.graph_merge, typed.run); };
  if (graph.extend->parsed()) line.command = [typed] { return run_graph_extend(typed.graph_extend, typed.run); };
  if (graph.refine->parsed()) line.command = [typed] { return run_graph_refine(typed.graph_refine, typed.run); };
  if (graph.path->parsed()) line.command = [typed] { return run_graph_path(typed.graph_path, typed.run); };
  return line;
}

bool wants_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") return false;
    if (argument == "--json" || argument.starts_with("--json=")) return true;
  }
  return false;
}

}  // namespace kith::cli
