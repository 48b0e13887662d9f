// The rows of a descent from disk (descent_on_disk.hpp) in blocks, whose number and size no limit changes, and the
// lists of a block as a step: sections of rows, behind the number of neighbours that entered in the round.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/working_lists.hpp"
#include "io/work_folder.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kith {

struct DescentTask {
  const VectorFile& x;  // the rows of both sets; those before params.rules.boundary are the first
  DescentParams params;
  int64_t length = 64;  // of the lists
  // The graphs' k neighbours of rows first .. first + count - 1, by their rows in x, each row's -1 at its end.
  std::function<void(int64_t first, int64_t count, int64_t* ids)> graphs;
  std::string prefix;
  int64_t most_rows = INT64_MAX;  // of a block, for tests
};

inline constexpr int64_t kDescentBlocks = 256;  // at most
inline constexpr int64_t kDescentRowsPerTask = 16;

class DescentBlocks {
 public:
  // The task must outlive it. Without a folder where memory is only counted.
  DescentBlocks(const DescentTask& task, WorkFolder* folder, const Resources& resources);

  const DescentTask& task() const { return task_; }
  WorkFolder& folder() const { return *folder_; }
  const Resources& resources() const { return resources_; }
  int64_t rows() const { return task_.x.rows(); }
  int64_t samples() const { return task_.params.rules.samples; }
  int64_t count() const { return count_; }
  int64_t block_rows() const { return block_rows_; }  // of all but the last
  int64_t section_rows() const { return section_rows_; }
  int64_t block_of(int64_t row) const { return row / block_rows_; }
  int64_t first_of(int64_t block) const { return block * block_rows_; }
  int64_t rows_of(int64_t block) const { return std::min(block_rows_, rows() - first_of(block)); }
  int64_t sections_of(int64_t block) const { return divide_up(rows_of(block), section_rows_); }

  std::string step_name(std::string_view kind, int64_t round, int64_t block) const;
  // The step with the lists after some rounds.
  std::string lists_name(int64_t rounds, int64_t block) const { return step_name("lists", rounds, block); }
  // Whether the step of every block is there.
  bool are_there(const std::function<std::string(int64_t block)>& name) const;
  // Removes the steps whose names begin so.
  void remove_steps(const std::string& beginning) const;

  // Empty lists for the rows of a block.
  WorkingLists empty_lists() const { return WorkingLists(block_rows_, task_.length, resources_); }
  void read_lists(const std::string& name, int64_t block, WorkingLists& lists) const;
  void write_lists(const std::string& name, int64_t block, int64_t entered, const WorkingLists& lists) const;
  // Reads one section of a block's lists.
  void read_section(const StepFile& step, int64_t block, int64_t section, uint64_t* lists) const;
  // The ends of a block's lists, to the places of its rows among all.
  void copy_thresholds(int64_t block, const WorkingLists& lists, const HostArray<uint32_t>& thresholds) const;
  // Draws the samples of a block's rows, which become OLD in the lists.
  void draw(int64_t block, const WorkingLists& lists, uint32_t* samples_of) const;

  // Calls body(row in the block, slot) on all threads.
  template <typename Body>
  void for_rows(int64_t block, const Body& body) const {
    constexpr int64_t kRowsPerTask = 256;
    const auto of_task = [&](int64_t first, int64_t end, int slot) {
      for (int64_t i = first; i < end; ++i) body(i, slot);
    };
    for_row_blocks("rows", rows_of(block), resources_, of_task, kRowsPerTask);
  }

 private:
  int64_t section_bytes(int64_t block, int64_t section) const;

  const DescentTask& task_;
  WorkFolder* const folder_;
  const Resources resources_;
  const int64_t block_rows_;
  const int64_t count_;
  const int64_t section_rows_;
};

}  // namespace kith
