// What each rank of kith-mpi finds, on its way to the files of rank 0.
//
// The queries of rank 0 come first, so it writes its own as they are found. The others keep theirs in a file beside the
// output (NAME.rank-2.part) until all are done; then rank 0 appends these in the order of the ranks.
// Ranks need one file system, as they do for the inputs. Cost: results are written and read once more.
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
  // A rank that cannot make its file is an IoError there.
  RankResults(const NeighborPaths& paths, int64_t queries, int64_t k, Communicator& ranks);
  ~RankResults();
  RankResults(const RankResults&) = delete;
  RankResults& operator=(const RankResults&) = delete;

  void append(const NeighborsView& part);
  // After the search, on all ranks: then the files are there.
  void commit();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string part_path(int rank) const;
  void collect(int rank);

  Communicator& ranks_;
  const std::string name_;  // of the output beside which parts lie
  const int64_t k_;
  std::optional<NeighborFiles> results_;  // of rank 0
  std::unique_ptr<std::FILE, Closer> part_;
  bool has_part_ = false;  // a file of this rank, which it removes
};

}  // namespace kith::cli
