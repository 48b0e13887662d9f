// The lists of a shard as a part of a step: sections of rows, each read, merged and written by a thread of its own.
#pragma once

#include <kith/resources.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "io/work_step.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kith {

inline constexpr int64_t kShardSectionRows = 1024;

// Packed neighbours of the rows of a shard, in sections, behind those that tell of something else.
class ListSections {
 public:
  ListSections(int64_t rows, int64_t k, int64_t before) : rows_(rows), k_(k), before_(before) {}

  int64_t count() const { return divide_up(rows_, kShardSectionRows); }
  int64_t first(int64_t section) const { return section * kShardSectionRows; }
  int64_t rows(int64_t section) const { return std::min(kShardSectionRows, rows_ - first(section)); }

  // Calls body(section, its lists) for all sections on all threads; `lists` has room for one a thread.
  template <typename Body>
  void for_each(const HostArray<uint64_t>& lists, const Resources& resources, const Body& body) const {
    ProgressMeter meter("lists", count(), resources);
    parallel_for(count(), meter, resources, [&](int64_t section, int slot) {
      body(section, lists.data() + slot * kShardSectionRows * k_);
    });
  }
  // The sizes of a step that begins with these.
  std::vector<int64_t> sizes(std::vector<int64_t> first) const {
    for (int64_t section = 0; section < count(); ++section) first.push_back(rows(section) * k_ * 8);
    return first;
  }
  void read(const StepFile& step, int64_t section, uint64_t* lists) const {
    if (step.sections() != before_ + count() || step.bytes(before_ + section) != rows(section) * k_ * 8) {
      step.refuse("the step is of other rows");
    }
    step.read(before_ + section, lists);
  }
  std::span<const std::byte> bytes(int64_t section, const uint64_t* lists) const {
    return std::as_bytes(std::span(lists, static_cast<size_t>(rows(section) * k_)));
  }

 private:
  int64_t rows_;
  int64_t k_;
  int64_t before_;
};

}  // namespace kith
