// Writes an index larger than memory: runs of its rows on the disk, which are merged into one file.
//
// A run is an index file of some rows, numbered from 0: a user's file, or one that was spilled from memory. Spilled
// files are unlinked as soon as they are written, so that nothing remains when the process ends. Runs are merged
// array by array: arrays in the order of rows are concatenated, those in lists are merged list by list, with each run
// read once from beginning to end per array. The result has the bytes of the file that one index in memory would
// save.
//
// With a work folder runs are steps of it, which stay: rows-0-4096 has the rows from 0 to 4096.
//
// Disk: every array of the spilled rows twice. Memory: buffers, 8 bytes per list, and ids other than row numbers.
#pragma once

#include <kith/resources.hpp>

#include "index/id_table.hpp"
#include "index/index_parts.hpp"
#include "io/container/container_file.hpp"
#include "io/passing_files.hpp"
#include "io/work_folder.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kith {

// Rows of the index that a step of the work folder has.
struct StepRows {
  int64_t first = 0;
  int64_t end = 0;
  std::string name() const;
};

class IndexRuns {
 public:
  // Runs are spilled beside the file at `path`. `trained()` returns the parts of the index without its rows.
  IndexRuns(std::string path, std::function<IndexParts()> trained, WorkFolder* folder = nullptr)
      : path_(std::move(path)), trained_(std::move(trained)), folder_(folder) {}

  bool empty() const { return runs_.empty(); }
  int64_t rows() const { return rows_; }
  // InvalidState unless the added files still have `rows` rows, as when they were loaded.
  void expect_rows(int64_t rows) const;

  // Adds a user's file. InvalidArgument if its training differs from that of earlier runs.
  void add_file(const std::string& path, const Resources& resources);
  // The rows that steps have, in order, none twice; a step that others have become is removed.
  static std::vector<StepRows> find_steps(WorkFolder& folder);
  // The parts of an index that a step has, without its rows.
  static IndexParts training_in(WorkFolder& folder, const StepRows& rows, const Resources& resources);
  // The rows of a step, which follow those before. DamagedStep where it is not what was written.
  void add_step(const StepRows& rows, const Resources& resources);
  // Spills rows from memory, without their ids. `to_come`: rows that will be spilled later; IoError if the disk has no
  // room for all of them.
  void spill(const IndexParts& parts, int64_t to_come, const Resources& resources);

  // Writes all rows as one file at the path, with these ids. Verifies the hashes of what it reads before renaming.
  void write(const IdTable& ids, IndexParts whole, const Resources& resources) const;

 private:
  struct Run {
    std::shared_ptr<const ContainerFile> file;
    int64_t first_row = 0;
    int64_t rows = 0;
    std::string step = {};  // of the work folder
  };
  using Runs = std::span<const Run>;

  // Neighbouring runs; as a step into a file.
  void write_runs(Runs runs, const std::string& path, IndexParts whole, const IdTable* ids, DiskFile* into,
                  const Resources& resources) const;
  void write_file(Runs runs, const std::string& path, IndexParts whole, const IdTable* ids, DiskFile* into,
                  const Resources& resources) const;
  Run written_step(const StepRows& rows, const std::function<void(DiskFile&)>& write, const Resources& resources);
  Run opened_step(const StepRows& rows, const Resources& resources) const;
  void join_steps(const Resources& resources);
  void join_runs(const Resources& resources);
  std::string spill_path();
  // Opens a spilled file and unlinks it.
  std::shared_ptr<const ContainerFile> opened_and_removed(const std::string& path) const;

  const std::string path_;
  const std::function<IndexParts()> trained_;
  WorkFolder* const folder_;
  std::optional<PassingFiles> spilled_;
  std::vector<Run> runs_;
  int64_t rows_ = 0;
};

// The first file of an index that knows its columns, unlike a Flat index without vectors.
const std::string& first_with_columns(const std::vector<std::string>& files, const Resources& resources);

// Unsupported if one index cannot have that many rows.
void check_joined_rows(int64_t rows, int64_t more);

// The factory string of an index file.
std::string factory_in(const std::string& path, const Resources& resources);

// InvalidArgument that names both files and the difference if two indexes were trained differently; Unsupported for
// graph indexes, which cannot be searched apart.
void refuse_other_training(const ContainerFile& first, const ContainerFile& other, const Resources& resources);

}  // namespace kith
