// The commands under `kith collection` and their options.
#include "collection_commands.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>

namespace kith::cli {
namespace {

IdType parse_id_type(const std::string& word) {
  if (word == "int") return IdType::integer;
  if (word == "text") return IdType::text;
  throw InvalidArgument(fmt::format("ids are 'int' or 'text', not '{}'", word));
}

void offer_path(OfferedCommand& command, std::string& path) {
  command.text("collection", path, "The directory of the collection", "DIR").required();
}

void offer_timeout(OfferedCommand& command, double& seconds) {
  command.real("--timeout", seconds, "Seconds to wait for another program that writes");
}

void offer_choice(OfferedCommand& command, ItemChoice& items) {
  command
      .text("--where", items.where, "Only items that an expression of SQLite keeps: 'year > ? and genre = ?'", "EXPR")
      .without_default();
  command.texts("--params", items.params, "The values of its question marks: numbers, true, false, null or text",
                "VALUE");
  command.texts("--ids", items.ids, "Only the items with these ids", "ID");
}

void offer_items_create(Commands& collection) {
  const auto options = std::make_shared<CollectionCreateOptions>();
  OfferedCommand command =
      collection.offer("create", "Make a collection, in a directory that is new or empty",
                       [options](const RunOptions& run) { return run_collection_create(*options, run); });
  offer_path(command, options->path);
  command.count("--dimension", options->params.dimension, "Values of a vector").required();
  command.metric(options->params.metric);
  command.word("--dtype", options->params.dtype, parse_dtype, "f32", "How vectors are stored: f32, f16, bf16, u8 or i8");
  command.word("--ids", options->params.ids, parse_id_type, "int", "What ids are: int or text");
  command.texts("--column", options->columns, "A column and its type: int, real, text, bool or json", "NAME:TYPE");
  command.text("--factory", options->params.index,
               "The index that compact builds: IVF1024,SQ8, Graph32, ...; Flat is exact search", "NAME");
  command.output();
}

void offer_items_add(Commands& collection) {
  const auto options = std::make_shared<CollectionAddOptions>();
  OfferedCommand command =
      collection.offer("add", "Add vectors with what belongs to them: all or, after an error, none",
                       [options](const RunOptions& run) { return run_collection_add(*options, run); });
  offer_path(command, options->path);
  command.file("--vectors", options->vectors, "The vectors, in any format; may be larger than memory").required();
  command
      .file("--items", options->items,
            "Ids, columns and payloads: a line for each vector, as {\"id\": 7, \"year\": 1931}")
      .without_default();
  command.file("--ids", options->ids, "Or ids alone: one row or column of whole numbers (default: new ones)")
      .without_default();
  command.flag("--upsert", options->upsert, "Replace items with these ids instead of refusing them");
  offer_timeout(command, options->timeout);
  command.threads();
  command.memory_limit();
  command.output();
}

void offer_items_remove(Commands& collection) {
  const auto options = std::make_shared<CollectionRemoveOptions>();
  OfferedCommand command =
      collection.offer("remove", "Remove items by their ids, or those that an expression keeps",
                       [options](const RunOptions& run) { return run_collection_remove(*options, run); });
  offer_path(command, options->path);
  offer_choice(command, options->items);
  offer_timeout(command, options->timeout);
  command.memory_limit();
  command.output();
}

void offer_items_search(Commands& collection) {
  const auto options = std::make_shared<CollectionSearchOptions>();
  OfferedCommand command =
      collection.offer("search", "Find the k nearest items for every query",
                       [options](const RunOptions& run) { return run_collection_search(*options, run); });
  offer_path(command, options->path);
  command.file("--queries", options->queries, "Vectors to search for").required();
  command.number("-k", options->params.k, "Items per query");
  offer_choice(command, options->items);
  command.number("--probes", options->params.probes, "With IVF: lists to look at; 0: as kith index search does");
  command.number("--beam", options->params.beam, "With Graph: the best vectors that a walk keeps; 0: as when built");
  command.number("--refine", options->params.refine, "With RFlat, Refine or Graph: candidates by k; 0: 4");
  command.file("--out", options->lines, "Where ids and distances go, as a JSON line for each query").without_default();
  command.file("--out-ids", options->out.ids, "Where ids go, if they are integers: .ibin, .ivecs or .npy")
      .without_default();
  command.file("--out-distances", options->out.distances, "Where distances go: .fbin, .fvecs or .npy").without_default();
  command.run_options();
}

template <typename Run>
OfferedCommand offer_on_path(Commands& collection, const char* name, const char* help,
                             const std::shared_ptr<CollectionPathOptions>& options, Run run_command) {
  OfferedCommand command = collection.offer(
      name, help, [options, run_command](const RunOptions& run) { return run_command(*options, run); });
  offer_path(command, options->path);
  return command;
}

void offer_upkeep(Commands& collection) {
  const auto info = std::make_shared<CollectionPathOptions>();
  offer_on_path(collection, "info", "Show what a collection holds, and its files", info, run_collection_info).output();

  const auto verify = std::make_shared<CollectionPathOptions>();
  OfferedCommand verifying = offer_on_path(
      collection, "verify", "Read everything and compare it with its hashes", verify, run_collection_verify);
  verifying.memory_limit();
  verifying.output();

  const auto compact = std::make_shared<CollectionPathOptions>();
  OfferedCommand compacting =
      offer_on_path(collection, "compact", "Make one segment of all, drop removed items, build the index", compact,
                    run_collection_compact);
  compacting.text("--factory", compact->factory, "Take another index from now on (default: the one it has)", "NAME")
      .without_default();
  offer_timeout(compacting, compact->timeout);
  compacting.run_options();

  const auto snapshot = std::make_shared<CollectionPathOptions>();
  OfferedCommand copying =
      offer_on_path(collection, "snapshot", "Make a consistent copy, also while another program writes", snapshot,
                    run_collection_snapshot);
  copying.text("out", snapshot->out, "The new directory", "DIR").required();
  copying.output();
}

void offer_items_export(Commands& collection) {
  const auto options = std::make_shared<CollectionExportOptions>();
  OfferedCommand command =
      collection.offer("export", "Write vectors, and what belongs to them, to files",
                       [options](const RunOptions& run) { return run_collection_export(*options, run); });
  offer_path(command, options->path);
  offer_choice(command, options->items);
  command.file("--out-vectors", options->vectors, "Where the vectors go, in any format").without_default();
  command.file("--out-items", options->lines, "Where ids, columns and payloads go, as a JSON line for each item")
      .without_default();
  command.memory_limit();
  command.output();
}

}  // namespace

void offer_collection(Commands& commands) {
  Commands collection =
      commands.group("collection", "Make, fill and search collections: vectors with their data, safe from crashes");
  offer_items_create(collection);
  offer_items_add(collection);
  offer_items_remove(collection);
  offer_items_search(collection);
  offer_upkeep(collection);
  offer_items_export(collection);
}

}  // namespace kith::cli
