// Finished lists on disk: a step for each block of places, with the rows of the block in ascending order, so that all
// can be merged in the order of rows by reading each step sequentially.
//
// A step is named after the first place of its block, and stores its end: together the steps form a chain, whose gaps
// are filled by blocks of any size, in any order.
//
// If the graph is to have no distances, a list is stored as its ids, and those of the control rows once more as a whole,
// since the recall is measured by distances.
//
// Disk: 4 + 8 k bytes per row, 4 + 4 k with ids only.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/lists/control_rows.hpp"
#include "io/work_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kith {

// A block, as described by its step.
struct ListBlock {
  int64_t first = 0;  // place
  int64_t end = 0;
  int64_t pairs = 0;  // number of pairs compared
};

// What is stored of lists.
struct ListForm {
  int64_t k = 0;
  bool ids_only = false;
  std::vector<uint32_t> control = {};  // rows of which whole lists are kept beside ids, ascending

  int64_t entry_bytes() const { return ids_only ? 4 : 8; }
  int64_t row_bytes() const { return 4 + entry_bytes() * k; }
  int64_t whole_bytes() const { return 4 + 8 * k; }
};

// Receives the finished lists of blocks.
struct ListFetch {
  const uint32_t* order = nullptr;  // the block's rows by their numbers
  int64_t at_once = 1;
  // The lists of these `rows`, at most at_once of them, contiguous and valid until the next call.
  std::function<const uint64_t*(const uint32_t* rows, int64_t count)> lists;
};
class BlockLists {
 public:
  virtual ~BlockLists() = default;
  // Appends a block whose rows have these numbers.
  virtual void append(const ListBlock& block, const uint32_t* numbers, const ListFetch& fetch,
                      const Resources& resources) = 0;
};

class ListChain final : public BlockLists {
 public:
  // The prefix of the names of its steps.
  static std::string beginning(int64_t probes);

  // The steps of lists made with `probes` probes, in a collection of `rows` rows. Reads the existing ones.
  ListChain(WorkFolder& folder, int64_t probes, ListForm form, int64_t rows);

  // Reads what other processes have added since.
  void look();
  // The number of finished places of a range, and the first gap in it.
  int64_t done(const ListBlock& range) const;
  std::optional<ListBlock> gap(const ListBlock& range) const;
  bool complete() const { return !gap({0, rows_}); }
  int64_t pairs() const;

  // Appends a block in a gap.
  void append(const ListBlock& block, const uint32_t* numbers, const ListFetch& fetch,
              const Resources& resources) override;
  // The memory of a thread that writes or reads lists.
  static int64_t section_bytes(int64_t k);
  // Measures the recall; the chain must be complete.
  RecallEstimate measure(const ControlRows& control, const Resources& resources) const;
  // Passes the neighbours of all rows, in order and in pieces, on a separate thread while the next ones are read; with
  // ids only their distances are null.
  void write(Metric metric, const Resources& resources,
             const std::function<void(const NeighborsView& part)>& sink) const;
  // Deletes all steps of the chain.
  void remove();

 private:
  class Reader;
  std::string name_of(int64_t place) const;
  void put(const ListBlock& block);
  StepFile open(const ListBlock& block) const;
  // The number of sections with rows; those behind them hold the control rows' lists, with ids only, and the block.
  int64_t sections(const ListBlock& block) const;
  int64_t all_sections(const ListBlock& block) const { return sections(block) + (form_.ids_only ? 2 : 1); }
  std::span<std::byte> put_rows(const uint32_t* numbers, const uint32_t* order, const uint64_t* lists, int64_t count,
                                std::vector<std::byte>& memory) const;
  void find_list(const ListBlock& block, const StepFile& step, uint32_t row, std::byte* memory, uint64_t* list) const;
  void read_whole_lists(const ControlRows& control, const HostArray<uint64_t>& lists, const Resources& resources) const;
  template <typename Body>
  void for_lists(const ListBlock& block, const StepFile& step, int64_t section, std::byte* memory,
                 const Body& body) const;

  WorkFolder& folder_;
  const int64_t probes_;
  const ListForm form_;
  const int64_t rows_;
  std::vector<ListBlock> blocks_;  // ordered by place
};

}  // namespace kith
