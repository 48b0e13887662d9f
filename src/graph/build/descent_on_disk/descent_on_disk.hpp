// NN-Descent's rounds (nn_descent.hpp) over rows in files, with lists in a work folder: two graphs are merged whose rows
// and lists do not fit. The lists are those of memory, under any limit, after any number of kills.
//
// A round is a function of the lists before it: samples and slots are chosen by hashes, lists hold the first of all that
// was offered. So the rows are divided into blocks, whose number and size no limit changes, and what a row has for the
// rows of another block waits in a step until that block is loaded:
//
//   control      the true neighbours of the control rows
//   lists-T-B    the lists of block B after T rounds; whole-B: at the end, with what was set aside put back
//   round-T      marks that the lists after T rounds are there, with what the last one did
//   names-T-B    whom the rows of block B have sampled, by the block of these
//   offers-T-B   what the joins of block B's rows offer, by the block of the rows that it is offered to; at the end the
//                number of pairs compared
//
// (All names begin with the prefix of the descent.) The rows that the joins of a block need are gathered from the file, for
// as many joins at a time as there is memory for.
//
// Memory: 4.2 bytes a row, the lists and slots of a block, which is 1/256 of the rows, and the rows of one join.
// Reads: up to 4 p rows for each row and round, of which those near each other are one read. Disk: 16 bytes for each place
// of the lists, and up to 48 p bytes a row for offers.
#pragma once

#include <kith/vector_file.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/control_rows.hpp"
#include "graph/lists/working_lists.hpp"
#include "io/work_folder.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

class GatheredRows;

struct DescentTask {
  const VectorFile& x;  // the rows of both sets; those before params.rules.boundary are the first
  DescentParams params;
  int64_t length = 64;   // of the lists
  // The graphs' k neighbours of rows first .. first + count - 1, by their rows in x, each row's -1 at its end.
  std::function<void(int64_t first, int64_t count, int64_t* ids)> graphs;
  std::string prefix;
  int64_t most_rows = INT64_MAX;  // of a block, for tests
};

class DescentOnDisk {
 public:
  // The task must outlive it. Without a folder where memory is only counted.
  DescentOnDisk(const DescentTask& task, WorkFolder* folder, const Resources& resources);

  // The least memory of all phases.
  void count();
  // What steps take on the disk at once, at most.
  int64_t disk_bytes() const;
  // Merges, as merge_graphs() does: from the near half of the graphs' neighbours and random ones of the other set.
  BuildOutcome run();
  int64_t control_rows() const { return static_cast<int64_t>(control_->rows().size()); }
  // After run(), on any thread: the first k neighbours of some rows, packed, without flags, padded. `scratch` has room for
  // scratch_words().
  void read(int64_t first, int64_t count, uint64_t* lists, uint64_t* scratch) const;
  int64_t scratch_words() const { return section_rows_ * task_.length; }
  // Removes all steps.
  void forget();

 private:
  struct Name;
  struct Offer;
  struct JoinMemory;

  int64_t rows() const { return task_.x.rows(); }
  int64_t samples() const { return task_.params.rules.samples; }
  int64_t first_of(int64_t block) const { return block * block_rows_; }
  int64_t rows_of(int64_t block) const { return std::min(block_rows_, rows() - first_of(block)); }
  int64_t sections_of(int64_t block) const { return divide_up(rows_of(block), section_rows_); }
  std::string step_name(std::string_view kind, int64_t round, int64_t block) const;
  std::string lists_name(int64_t round, int64_t block) const;
  std::string mark_name(int64_t round) const;
  std::string present_name(int64_t block) const;  // of the lists that there are now
  bool are_there(const std::function<std::string(int64_t)>& name) const;
  void remove_steps(const std::string& kind);

  void find_control();
  // The number of rounds that are done, none if lists were not begun.
  std::optional<int64_t> rounds_done();
  bool is_over() const;
  void begin_lists();
  void forget_round(int64_t round);
  void descend(ProgressMeter& meter);
  void name_samples(int64_t round, int64_t block);
  void join(int64_t round, int64_t block);
  void merge(int64_t round, int64_t block, GraphRound& told);
  int64_t pairs_compared(int64_t round) const;
  void end_round(const GraphRound& told);
  void put_back();
  RecallEstimate measure() const;

  // Offers the first `most` of the graphs' neighbours, or random rows, to the lists of a block.
  void offer_graphs(int64_t block, int64_t most, WorkingLists& lists);
  void offer_random(int64_t block, WorkingLists& lists);
  // Offers to row i of a block what list_rows(i, rows) appends to `rows`; at most `most` of them.
  void offer_rows(int64_t block, int64_t most, const std::function<void(int64_t, std::vector<uint32_t>&)>& list_rows,
                  WorkingLists& lists);
  void read_block(const std::string& name, int64_t block, WorkingLists& lists) const;
  void write_block(const std::string& name, int64_t block, int64_t entered, const WorkingLists& lists);
  void keep_thresholds(int64_t round);
  void keep_thresholds(int64_t block, const WorkingLists& lists);
  void draw(int64_t block, WorkingLists& lists, uint32_t* samples) const;
  void read_names(int64_t round, int64_t block, uint32_t* reverse) const;
  int64_t least_joined() const;
  Footprint join_footprint(int64_t gathered_rows) const;
  template <typename Body>
  void for_rows(int64_t block, const Body& body) const;

  const DescentTask& task_;
  WorkFolder* const folder_;
  const Resources resources_;
  const Resources quiet_;
  const int64_t block_rows_;
  const int64_t blocks_;
  const int64_t section_rows_;
  std::optional<ControlRows> control_;
  HostArray<uint32_t> thresholds_;  // of all lists, before the round
  bool knows_thresholds_ = false;
  int64_t last_round_ = 0;  // that is done
  RecallEstimate recall_;   // after it
  std::vector<GraphRound> rounds_;
  std::chrono::steady_clock::time_point began_;  // the next one
  bool ends_whole_ = false;  // the lists that there are now are "whole"
};

}  // namespace kith
