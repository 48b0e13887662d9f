// An index larger than memory, as runs of its rows on the disk, and the one file that they become.
//
// A run is an index file of some rows, numbered from 0: one that a user has, or one that was spilled from memory, which
// has no name any more as soon as it is written, so that nothing stays behind when the process ends. Runs become one
// file array by array: what has an order of rows is put end to end, what lies in lists is joined list by list, each run
// being read once from its beginning to its end for each array. The result has the bytes of the file that one index in
// memory would save.
//
// Disk: every array of the spilled rows twice. Memory: buffers, 8 bytes a list, and ids that are not row numbers.
#pragma once

#include <kith/resources.hpp>

#include "index/id_table.hpp"
#include "index/index_parts.hpp"
#include "io/container/container_file.hpp"
#include "io/passing_files.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kith {

class IndexRuns {
 public:
  // Beside the file at `path` the runs are spilled. `trained()` gives the parts of the index without its rows.
  IndexRuns(std::string path, std::function<IndexParts()> trained)
      : path_(std::move(path)), trained_(std::move(trained)) {}

  bool empty() const { return runs_.empty(); }
  int64_t rows() const { return rows_; }
  // InvalidState unless the files that were added have so many rows: they were loaded before, and may have changed.
  void expect_rows(int64_t rows) const;

  // A user's file. InvalidArgument where its training is another than that of the runs before.
  void add_file(const std::string& path, const Resources& resources);
  // Rows in memory, whose ids are left out. `to_come`: rows that will be spilled after these; IoError where the disk
  // has not room for all.
  void spill(const IndexParts& parts, int64_t to_come, const Resources& resources);

  // All rows as one file at the path, with these ids. Hashes of what is read are verified before it has its name.
  void write(const IdTable& ids, IndexParts whole, const Resources& resources) const;

 private:
  struct Run {
    std::shared_ptr<const ContainerFile> file;
    int64_t first_row = 0;
    int64_t rows = 0;
  };

  void write_runs(const std::string& path, IndexParts whole, const IdTable* ids, bool synced,
                  const Resources& resources) const;
  void join_runs(const Resources& resources);
  std::string spill_path();
  // Gives a spilled file up to this process alone.
  std::shared_ptr<const ContainerFile> opened_and_removed(const std::string& path) const;

  const std::string path_;
  const std::function<IndexParts()> trained_;
  std::optional<PassingFiles> spilled_;
  std::vector<Run> runs_;
  int64_t rows_ = 0;
};

// The first file of an index that has seen vectors: a Flat index without any does not know their columns.
const std::string& first_with_columns(const std::vector<std::string>& files, const Resources& resources);

// Unsupported where one index cannot have so many rows.
void check_joined_rows(int64_t rows, int64_t more);

// The factory string of an index file.
std::string factory_in(const std::string& path, const Resources& resources);

// InvalidArgument, naming both files and what differs, where two files of indexes were not trained alike; Unsupported
// for graph indexes, whose vectors are searched together.
void refuse_other_training(const ContainerFile& first, const ContainerFile& other, const Resources& resources);

}  // namespace kith
