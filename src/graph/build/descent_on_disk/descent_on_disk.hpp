// NN-Descent's rounds (nn_descent.hpp) over rows in files, with lists in a work folder: two graphs are merged whose
// rows and lists do not fit. The lists are those of memory, under any limit, after any number of kills.
//
// A round is a function of the lists before it: samples and slots are chosen by hashes, lists hold the first of all
// that was offered. So the rows are divided into blocks, whose number and size no limit changes, and what a row has for
// the rows of another block waits in a step until that block is loaded:
//
//   control      the true neighbours of the control rows
//   lists-T-B    the lists of block B after T rounds; whole-B: at the end, with what was set aside put back
//   round-T      marks that the lists after T rounds are there, with what the last one did
//   names-T-B    whom the rows of block B have sampled, by the block of these
//   offers-T-B   what the joins of block B's rows offer, by the block of the rows that it is offered to; at the end the
//                number of pairs compared
//
// (All names begin with the prefix of the descent.) The rows that the joins of a block need are gathered from the file,
// for as many joins at a time as there is memory for.
//
// Memory: 4.2 bytes a row, the lists and slots of a block, which is 1/256 of the rows, and the rows of one join.
// Reads: up to 4 p rows for each row and round, of which those near each other are one read. Disk: 16 bytes for each
// place of the lists, and up to 48 p bytes a row for offers.
#pragma once

#include <kith/graph_report.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/build/descent_on_disk/descent_blocks.hpp"
#include "graph/lists/control_rows.hpp"
#include "graph/lists/working_lists.hpp"
#include "io/work_folder.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kith {

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
  // After run(), on any thread: the first k neighbours of some rows, packed, without flags, padded. `scratch` has room
  // for scratch_words().
  void read(int64_t first, int64_t count, uint64_t* lists, uint64_t* scratch) const;
  int64_t scratch_words() const { return blocks_.section_rows() * task_.length; }
  // Removes all steps.
  void forget();

 private:
  int64_t rows() const { return blocks_.rows(); }
  std::string mark_name(int64_t round) const;
  std::string present_name(int64_t block) const;  // of the lists that there are now

  void find_control();
  // The number of rounds that are done, none if lists were not begun.
  std::optional<int64_t> rounds_done();
  bool is_over() const;
  void begin_lists();
  void forget_round(int64_t round);
  void descend(ProgressMeter& meter);
  void end_round(const GraphRound& told);
  void put_back();
  RecallEstimate measure() const;
  void keep_thresholds(int64_t round);

  const DescentTask& task_;
  WorkFolder* const folder_;
  const Resources resources_;
  const Resources quiet_;
  const DescentBlocks blocks_;
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
