// Neighbours of rows on their way to a graph, in blocks of rows that are steps of a work folder: after a kill the rows
// that were found are not searched again.
//
//   rows-4096   ids and distances of the rows from 4096 on, some at a time
//
// A step says by its size how many rows it is of: the next one may begin anywhere, so that limits may change.
// Disk: 12 k bytes a row.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "io/work_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

struct RowBlock {
  int64_t first = 0;
  int64_t end = 0;
};

// Where a row's neighbours go, nearest first, -1 where there is none.
struct NeighborPlaces {
  int64_t* ids = nullptr;
  float* distances = nullptr;
};

class RowBlocks {
 public:
  // The steps' names begin with `prefix`, which no other step's does. Without a folder where memory is only counted.
  RowBlocks(WorkFolder* folder, std::string_view prefix, int64_t rows, int64_t k, const Resources& resources)
      : folder_(folder), prefix_(prefix), rows_(rows), k_(k), resources_(resources) {}

  // What a writer and a reader take, and the former beside what goes on meanwhile.
  void count(int64_t most) const;
  int64_t section_bytes() const;
  // Rows of a block: enough to hide that others are read for it, and few enough that little is lost by a kill.
  int64_t block_rows(int64_t most) const;
  // Those that are not done, block_rows(most) at most in each.
  std::vector<RowBlock> missing(int64_t most) const;
  // Bytes that are still to be written.
  int64_t missing_bytes() const;
  void forget() const;

  // A block, row after row.
  class Writer {
   public:
    Writer(const RowBlocks& blocks, const RowBlock& block);
    NeighborPlaces next();
    void commit();

   private:
    void flush();

    const int64_t k_;
    const HostArray<std::byte> section_;
    int64_t filled_ = 0;
    StepWriter step_;
  };

  // All rows, in their order.
  void append_to(GraphSink& sink, ProgressMeter& meter) const;

 private:
  std::string name_of(int64_t first) const { return prefix_ + std::to_string(first); }
  int64_t row_bytes() const { return 12 * k_; }
  std::vector<RowBlock> gaps() const;

  WorkFolder* const folder_;
  const std::string prefix_;
  const int64_t rows_;
  const int64_t k_;
  const Resources& resources_;
};

// A pass over rows that are read again later: their hashes, in a step of that name, against which they are verified where
// work goes on. Rows that are not numbers are refused as rows of `what`. Whether the step was there.
bool survey_rows(const VectorFile& x, std::string_view what, bool check_finite, WorkFolder& folder,
                 const std::string& step, const Resources& resources);
// What that takes.
void count_survey(const VectorFile& x, bool check_finite, const Resources& resources);

}  // namespace kith
