// Neighbours found for blocks of rows, each a step of a work folder, before they are written to a graph: after a kill,
// finished rows are not searched again.
//
//   rows-4096   ids and distances of the rows from 4096 on, in sections
//
// The size of a step determines its number of rows: the next one may begin anywhere, so that limits may change.
// Disk: 12 k bytes per row.
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

// Output for a row's neighbours, nearest first, padded with -1.
struct NeighborPlaces {
  int64_t* ids = nullptr;
  float* distances = nullptr;
};

class RowBlocks {
 public:
  // The steps' names begin with `prefix`, which must be unique. `folder` is null when memory is only counted.
  RowBlocks(WorkFolder* folder, std::string_view prefix, int64_t rows, int64_t k, const Resources& resources)
      : folder_(folder), prefix_(prefix), rows_(rows), k_(k), resources_(resources) {}

  // Counts the memory of a writer, during other work, and of a reader.
  void count(int64_t most) const;
  int64_t section_bytes() const;
  // Rows of a block: enough to hide reading the others, few enough that a kill loses little.
  int64_t block_rows(int64_t most) const;
  // The blocks not yet done, with at most block_rows(most) rows each.
  std::vector<RowBlock> missing(int64_t most) const;
  // Bytes still to be written.
  int64_t missing_bytes() const;
  void forget() const;

  // Writes a block, row by row.
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

  // Appends all rows, in order.
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

// A pass over rows that will be read again: stores their hashes in a step of that name, against which later reads are
// verified. Non-finite rows are rejected as rows of `what`. Returns whether the step already existed.
bool survey_rows(const VectorFile& x, std::string_view what, bool check_finite, WorkFolder& folder,
                 const std::string& step, const Resources& resources);
// Counts the memory of that pass.
void count_survey(const VectorFile& x, bool check_finite, const Resources& resources);

}  // namespace kith
