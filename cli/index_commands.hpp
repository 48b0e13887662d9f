// kith index: building an index from files, adding to it, searching, inspecting and converting it. Every command loads
// an index, makes one call of kith::Index, and saves it.
#pragma once

#include <kith/index.hpp>

#include "commands.hpp"
#include "neighbor_files.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct IndexBuildOptions {
  std::string base;   // may be larger than memory, like the others
  std::string train;  // empty: the base
  std::string ids;    // empty: 0, 1, 2, ...
  std::string start;  // a folder with the graph of the base; empty: none
  std::string out;
  std::string factory;
  IndexParams params;
  std::string work;  // folder for steps; empty: none
  bool keep_work = false;
};
Report run_index_build(const IndexBuildOptions& options, const RunOptions& run);

struct IndexAddOptions {
  std::string index;
  std::string base;
  std::string ids;
  std::string out;       // empty: the index itself is replaced
  bool replace = false;  // vectors whose ids are there already
  std::string work;      // folder for steps; empty: none
  bool keep_work = false;
};
Report run_index_add(const IndexAddOptions& options, const RunOptions& run);

struct IndexSearchOptions {
  std::string index;
  std::string queries;
  std::string filter;       // empty: all
  std::string refine_from;  // empty: what the index keeps
  NeighborPaths out;
  SearchParams params;
  LoadParams load;
};
Report run_index_search(const IndexSearchOptions& options, const RunOptions& run);

struct IndexRemoveOptions {
  std::string index;
  std::string ids;
  std::string out;  // empty: the index itself is replaced
};
Report run_index_remove(const IndexRemoveOptions& options, const RunOptions& run);

struct IndexRangeOptions {
  std::string index;
  std::string queries;
  std::string filter;  // empty: all
  std::string out_offsets;
  std::string out_ids;
  std::string out_distances;  // empty: not written
  RangeSearchParams params;
};
Report run_index_range(const IndexRangeOptions& options, const RunOptions& run);

struct IndexTuneOptions {
  std::string index;
  std::string queries;
  std::string out;  // empty: the index itself is replaced
  TuneParams params;
};
Report run_index_tune(const IndexTuneOptions& options, const RunOptions& run);

struct IndexMergeOptions {
  std::string index;
  std::string other;
  std::string out;
  MergeParams params;
};
Report run_index_merge(const IndexMergeOptions& options, const RunOptions& run);

struct IndexInspectOptions {
  std::string index;
};
Report run_index_inspect(const IndexInspectOptions& options, const RunOptions& run);

struct IndexConvertOptions {
  std::string input;
  std::string output;
};
Report run_index_convert(const IndexConvertOptions& options, const RunOptions& run);

// Offers all of these commands.
void offer_index(Commands& commands);

}  // namespace kith::cli
