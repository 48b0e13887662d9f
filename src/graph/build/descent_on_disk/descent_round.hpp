// One round of a descent from disk (descent_on_disk.hpp), block by block. What a block has for the rows of other blocks
// waits in a step, by the block that it is for: first whom its rows have sampled, then what their joins offer.
#pragma once

#include <kith/graph_report.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "graph/build/descent_on_disk/descent_blocks.hpp"

#include <cstdint>
#include <string>

namespace kith {

class DescentRound {
 public:
  // `thresholds`: the ends of all lists before the round; merge() writes those after it. Both must outlive it.
  DescentRound(const DescentBlocks& blocks, int64_t round, const HostArray<uint32_t>& thresholds);

  std::string names(int64_t block) const { return blocks_.step_name("names", round_, block); }
  std::string offers(int64_t block) const { return blocks_.step_name("offers", round_, block); }

  // A step that is there is not made again. Samples of all blocks come before joins, joins of all before merges.
  void name_samples(int64_t block) const;
  void join(int64_t block) const;
  // Adds to `told` what happened to the lists of a block.
  void merge(int64_t block, GraphRound& told) const;
  // How many the joins of all blocks have compared.
  int64_t pairs_compared() const;

  // Counts the memory that samples and joins take at least, and that of merges.
  static void count_joins(const DescentBlocks& blocks);
  static void count_merges(const DescentBlocks& blocks);
  // The most sections of a step of offers.
  static int64_t most_sections(const DescentBlocks& blocks);
  // What its steps take on the disk, at most.
  static int64_t disk_bytes(const DescentBlocks& blocks);

 private:
  void read_names(int64_t block, uint32_t* reverse) const;

  const DescentBlocks& blocks_;
  const int64_t round_;
  const HostArray<uint32_t>& thresholds_;
};

}  // namespace kith
