// Collects the results of all ranks of kith-mpi in the files of rank 0.
//
// The queries of rank 0 come first, so it writes its results directly. Each other rank writes a file beside the output
// (NAME.rank-2.part). At the end rank 0 appends these in the order of the ranks. Ranks need a common file system, as
// they do for inputs. Cost: results are written and read once more.
#pragma once

#include <kith/communicator.hpp>
#include <kith/neighbors.hpp>

#include "neighbor_files.hpp"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace kith::cli {

class RankResults {
 public:
  // IoError on a rank that cannot create its file.
  RankResults(const NeighborPaths& paths, int64_t queries, int64_t k, Communicator& ranks);
  ~RankResults();
  RankResults(const RankResults&) = delete;
  RankResults& operator=(const RankResults&) = delete;

  void append(const NeighborsView& part);
  // Call it after the search, on all ranks; creates the output files.
  void commit();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string part_path(int rank) const;
  void collect(int rank);

  Communicator& ranks_;
  const std::string name_;  // of the output; parts are beside it
  const int64_t k_;
  std::optional<NeighborFiles> results_;  // of rank 0
  std::unique_ptr<std::FILE, Closer> part_;
  bool has_part_ = false;  // a file of this rank, which it removes
};

}  // namespace kith::cli
