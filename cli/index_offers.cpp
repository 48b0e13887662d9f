// The commands under `kith index` and their options.
#include "index_commands.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>

namespace kith::cli {
namespace {

void offer_index_path(OfferedCommand& command, std::string& path) {
  command.file("--index", path, "File of an index: .kith, or one of FAISS's").required();
}

void offer_index_output(OfferedCommand& command, std::string& path) {
  command.file("--out", path, "Where the index goes: .kith, or .faiss or .index for FAISS's format").required();
}

void offer_index_rows(OfferedCommand& command, std::string& base, std::string& ids) {
  command.file("--base,--data", base, "Vectors to add, in any format; may be larger than memory").required();
  command.file("--ids", ids, "Their ids: one row or column of whole numbers (default: 0, 1, 2, ...)").without_default();
}

void offer_index_work(OfferedCommand& command, std::string& work, bool& keep) {
  command
      .file("--work", work, "Keep what is done in this folder, and go on there after a kill")
      .without_default();
  command.flag("--keep-work", keep, "Keep the files in it once the index is there");
}

ListsPlace parse_lists_place(const std::string& word) {
  if (word == "host") return ListsPlace::host;
  if (word == "disk") return ListsPlace::disk;
  throw InvalidArgument(fmt::format("lists are on 'host' or on 'disk', not on '{}'", word));
}

void offer_index_build(Commands& index) {
  const auto options = std::make_shared<IndexBuildOptions>();
  OfferedCommand command = index.offer("build", "Make an index of the vectors of a file",
                                       [options](const RunOptions& run) { return run_index_build(*options, run); });
  offer_index_rows(command, options->base, options->ids);
  command
      .text("--factory", options->factory,
            "What is kept of a vector, in FAISS's grammar: Flat, IVF1024,PQ16, OPQ16,IVF,PQ16,RFlat, ...", "NAME")
      .required();
  offer_index_output(command, options->out);
  command.file("--train", options->train, "Vectors to train on (default: those of --base)").without_default();
  command
      .file("--start", options->start,
            "A folder with the graph of --base (kith graph build --out FOLDER), from which Graph32 is built")
      .without_default();
  command.count("--expected-rows", options->params.expected_rows,
                "Vectors that the index will hold, for IVF without a number; 0: those of --base");
  command.count("--seed", options->params.seed, "Seed of the random numbers of the training");
  command.metric(options->params.metric);
  command.check_finite(options->params.check_finite);
  offer_index_work(command, options->work, options->keep_work);
  command.run_options();
  command.on_ranks();
}

void offer_add(Commands& index) {
  const auto options = std::make_shared<IndexAddOptions>();
  OfferedCommand command = index.offer("add", "Add the vectors of a file to an index",
                                       [options](const RunOptions& run) { return run_index_add(*options, run); });
  offer_index_path(command, options->index);
  offer_index_rows(command, options->base, options->ids);
  command.file("--out", options->out, "Where the index goes (default: it replaces --index)").without_default();
  command.flag("--replace", options->replace, "Replace vectors whose ids are there already; without it they are refused");
  offer_index_work(command, options->work, options->keep_work);
  command.run_options();
}

void offer_search(Commands& index) {
  const auto options = std::make_shared<IndexSearchOptions>();
  OfferedCommand command = index.offer("search", "Find the k nearest vectors of an index for every query",
                                       [options](const RunOptions& run) { return run_index_search(*options, run); });
  command
      .file("--index", options->index,
            "File of an index: .kith, a pattern of such files trained alike, or one of FAISS's")
      .required();
  command.file("--queries", options->queries, "Vectors to search for").required();
  command.number("-k", options->params.k, "Neighbours per query");
  command.number("--probes", options->params.probes,
                 "With IVF: lists to look at; more find more; 0: the root of their number, at most 64");
  command.number("--beam", options->params.beam,
                 "With Graph: the best vectors that a walk keeps; more find more; 0: as many as had a recall of 0.98, up to "
                 "48, else of 0.95");
  command.number("--width", options->params.width, "With Graph: vectors that a step of the walk opens; 0: 2");
  command.real("--recall", options->params.recall,
               "Instead of --probes or --beam: what had this recall in tune, or in a graph's build; 0: not given");
  command.number(
      "--refine", options->params.refine,
      "With Graph, RFlat, Refine(...) or --refine-from: so many times k candidates are compared again; 0: 4");
  command.file("--refine-from", options->refine_from,
               "The original vectors, to compare candidates with again: row i is the vector with id i");
  command.file(
      "--filter", options->filter,
      "Which vectors may be found: their ids (.ibin, .ivecs, .npy), or one byte or bool for each vector in the "
      "order of add, 0 for those left out (.u8bin, .npy)");
  command.flag("--filter-strict", options->params.filter_strict,
               "Refuse ids in --filter that the index does not have, instead of ignoring them");
  command.flag("--mmap", options->load.mmap, "Leave vectors and lists in their file, which is mapped");
  command.word("--lists", options->load.lists, parse_lists_place, "host",
               "Where lists are searched: host (in memory), or disk (in their file)");
  command.flag("--verify", options->load.verify, "With --mmap or --lists disk: hash the whole file first");
  command.file("--out-ids", options->out.ids, "Where ids go: .ibin or .ivecs (int32), .npy or .hdf5 (int64)");
  command.file("--out-distances", options->out.distances, "Where distances go: .fbin, .fvecs, .npy or .hdf5");
  command.run_options();
  command.on_ranks();
}

void offer_remove(Commands& index) {
  const auto options = std::make_shared<IndexRemoveOptions>();
  OfferedCommand command = index.offer("remove", "Remove vectors from an index by their ids",
                                       [options](const RunOptions& run) { return run_index_remove(*options, run); });
  offer_index_path(command, options->index);
  command.file("--ids", options->ids, "Ids: .ibin, .ivecs or .npy; those that the index does not have are no error")
      .required();
  command.file("--out", options->out, "Where the index goes (default: it replaces --index)").without_default();
  command.threads();
  command.memory_limit();
  command.output();
}

void offer_index_range(Commands& index) {
  const auto options = std::make_shared<IndexRangeOptions>();
  OfferedCommand command = index.offer("range", "Find all vectors of an index within a radius of every query",
                                       [options](const RunOptions& run) { return run_index_range(*options, run); });
  offer_index_path(command, options->index);
  command.file("--queries", options->queries, "Vectors to search for").required();
  command
      .real("--radius", options->params.radius,
            "Largest distance, in the metric's unit; for inner_product the smallest product")
      .required();
  command.number("--probes", options->params.probes,
                 "With IVF: lists to look at; more find more; 0: the root of their number, at most 64");
  command.file("--filter", options->filter, "Which vectors may be found, as in index search");
  command.flag("--filter-strict", options->params.filter_strict,
               "Refuse ids in --filter that the index does not have, instead of ignoring them");
  command.file("--out-offsets", options->out_offsets, "Where each query's vectors begin: a column of ids").required();
  command.file("--out-ids", options->out_ids, "Where their ids go: .ibin (int32) or .npy (int64), a column").required();
  command.file("--out-distances", options->out_distances, "Where their distances go: a column");
  command.run_options();
}

void offer_tune(Commands& index) {
  const auto options = std::make_shared<IndexTuneOptions>();
  OfferedCommand command =
      index.offer("tune", "Measure which parameters of a search reach a recall, and keep them for search --recall",
                  [options](const RunOptions& run) { return run_index_tune(*options, run); });
  offer_index_path(command, options->index);
  command.file("--queries", options->queries, "Vectors like those that will be searched for").required();
  command.number("-k", options->params.k, "Neighbours per query");
  command.real("--recall", options->params.recall, "The share of the true k nearest to find");
  command.number("--batch", options->params.batch, "Queries searched at a time, for the times shown; 0: all");
  command.file("--out", options->out, "Where the index goes (default: it replaces --index)").without_default();
  command.run_options();
}

void offer_inspect(Commands& index) {
  const auto options = std::make_shared<IndexInspectOptions>();
  OfferedCommand command = index.offer("inspect", "Show what an index holds: lists, how even they are, bytes",
                                       [options](const RunOptions& run) { return run_index_inspect(*options, run); });
  command.file("INDEX", options->index, "File of an index").required();
  command.memory_limit();
  command.output();
}

void offer_convert_index(Commands& index) {
  const auto options = std::make_shared<IndexConvertOptions>();
  OfferedCommand command =
      index.offer("convert", "Write an index in another format: .kith, or .faiss or .index for FAISS's",
                  [options](const RunOptions& run) { return run_index_convert(*options, run); });
  command.file("IN", options->input, "File of an index").required();
  command.file("OUT", options->output, "File to write").required();
  command.memory_limit();
  command.output();
}

void offer_index_merge(Commands& index) {
  const auto options = std::make_shared<IndexMergeOptions>();
  OfferedCommand command = index.offer("merge", "Put the vectors of another index, trained alike, into one",
                                       [options](const RunOptions& run) { return run_index_merge(*options, run); });
  command.file("INDEX", options->index, "File of an index").required();
  command.file("OTHER", options->other, "File of the index whose vectors come behind").required();
  offer_index_output(command, options->out);
  command.flag("--shift-ids", options->params.shift_ids,
               "Give the other's vectors ids behind those of the first; without it ids must differ");
  command.memory_limit();
  command.output();
}

}  // namespace

void offer_index(Commands& commands) {
  Commands index = commands.group(
      "index", "Build, grow, search and convert an index: build, add, remove, search, range, tune, inspect, convert, merge");
  offer_index_build(index);
  offer_add(index);
  offer_remove(index);
  offer_search(index);
  offer_index_range(index);
  offer_tune(index);
  offer_inspect(index);
  offer_convert_index(index);
  offer_index_merge(index);
}

}  // namespace kith::cli
