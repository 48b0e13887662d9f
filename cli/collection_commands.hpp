// kith collection: creating, filling, searching and maintaining a collection. Every command opens it, makes a few calls
// of kith::Collection, and closes it.
#pragma once

#include <kith/collection.hpp>

#include "commands.hpp"
#include "neighbor_files.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kith::cli {

struct CollectionCreateOptions {
  std::string path;
  std::vector<std::string> columns;  // "year:int"
  CollectionParams params;
};
Report run_collection_create(const CollectionCreateOptions& options, const RunOptions& run);

struct CollectionAddOptions {
  std::string path;
  std::string vectors;  // may be larger than memory
  std::string ids;      // a file of whole numbers; empty: those of the items, or new ones
  std::string items;    // a file of JSON lines; empty: no columns and payloads
  bool upsert = false;
  double timeout = 0;  // seconds
};
Report run_collection_add(const CollectionAddOptions& options, const RunOptions& run);

// Selects the items of a command.
struct ItemChoice {
  std::string where;
  std::vector<std::string> params;
  std::vector<std::string> ids;

  bool chooses() const { return !where.empty() || !ids.empty(); }
  ItemFilter filter(IdType type) const;
};

struct CollectionRemoveOptions {
  std::string path;
  ItemChoice items;
  double timeout = 0;
};
Report run_collection_remove(const CollectionRemoveOptions& options, const RunOptions& run);

struct CollectionSearchOptions {
  std::string path;
  std::string queries;
  ItemChoice items;
  NeighborPaths out;  // both may be empty here
  std::string lines;  // JSON lines; empty: none
  SearchParams params;
};
Report run_collection_search(const CollectionSearchOptions& options, const RunOptions& run);

struct CollectionPathOptions {
  std::string path;
  std::string out;      // of snapshot
  std::string factory;  // of compact: another index from now on; empty: the one it has
  double timeout = 0;
};
Report run_collection_info(const CollectionPathOptions& options, const RunOptions& run);
Report run_collection_verify(const CollectionPathOptions& options, const RunOptions& run);
Report run_collection_compact(const CollectionPathOptions& options, const RunOptions& run);
Report run_collection_snapshot(const CollectionPathOptions& options, const RunOptions& run);

struct CollectionExportOptions {
  std::string path;
  ItemChoice items;
  std::string vectors;  // either may be empty, not both
  std::string lines;
};
Report run_collection_export(const CollectionExportOptions& options, const RunOptions& run);

// Offers all of these commands; in a build without SQLite one that says so.
void offer_collection(Commands& commands);

}  // namespace kith::cli
