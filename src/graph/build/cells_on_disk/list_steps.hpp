// Finished lists on disk: a step for each block of places, in it the rows of the block by ascending number, so that all
// are put together in the order of rows by reading every step from front to back.
//
// A step is called after the place that its block begins with, and says where it ends: together they are a chain, whose
// gaps are filled by blocks of any size, in any order.
//
// Disk: 4 + 8 k bytes a row.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "graph/lists/control_rows.hpp"
#include "io/work_folder.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kith {

// What a block's step says of it.
struct ListBlock {
  int64_t first = 0;  // place
  int64_t end = 0;
  int64_t pairs = 0;  // that were compared
};

// Where the finished lists of blocks go.
struct ListFetch {
  const uint32_t* order = nullptr;  // the block's rows by their numbers
  int64_t at_once = 1;
  // The lists of some of these, which are `rows`, one after the other, until the next call; no more than at_once.
  std::function<const uint64_t*(const uint32_t* rows, int64_t count)> lists;
};
class BlockLists {
 public:
  virtual ~BlockLists() = default;
  // The block's rows have these numbers.
  virtual void append(const ListBlock& block, const uint32_t* numbers, const ListFetch& fetch,
                      const Resources& resources) = 0;
};

class ListChain final : public BlockLists {
 public:
  // Beginning of the names of its steps.
  static std::string beginning(int64_t probes);

  // The steps of lists of k made with `probes` probes, in a collection of `rows` rows. Looks at what is there.
  ListChain(WorkFolder& folder, int64_t probes, int64_t k, int64_t rows);

  // What others have added meanwhile.
  void look();
  // Places of a range that are done, and the first gap in it.
  int64_t done(const ListBlock& range) const;
  std::optional<ListBlock> gap(const ListBlock& range) const;
  bool complete() const { return !gap({0, rows_}); }
  int64_t pairs() const;

  // A block in a gap.
  void append(const ListBlock& block, const uint32_t* numbers, const ListFetch& fetch,
              const Resources& resources) override;
  // What a thread takes that writes or reads lists.
  static int64_t section_bytes(int64_t k);
  // Once it is complete.
  RecallEstimate measure(const ControlRows& control, const Resources& resources) const;
  // The neighbours of all rows, in order, some at a time, on a thread of its own while the next ones are read.
  void write(Metric metric, const Resources& resources,
             const std::function<void(const NeighborsView& part)>& sink) const;
  // Deletes all steps of the chain.
  void remove();

 private:
  class Reader;
  std::string name_of(int64_t place) const;
  void put(const ListBlock& block);
  StepFile open(const ListBlock& block) const;
  int64_t sections(const ListBlock& block) const;
  template <typename Body>
  void for_lists(const ListBlock& block, const StepFile& step, int64_t section, std::byte* memory,
                 const Body& body) const;

  WorkFolder& folder_;
  const int64_t probes_;
  const int64_t k_;
  const int64_t rows_;
  std::vector<ListBlock> blocks_;  // by their places
};

}  // namespace kith
