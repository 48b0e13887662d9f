#include "graph/build/descent_on_disk/descent_blocks.hpp"

#include "core/parallel_for.hpp"
#include "graph/build/nn_descent/join_samples.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kFewestBlockRows = 4096;
constexpr int64_t kSectionWords = 16384;  // of lists, read together

int64_t rows_of_a_block(const DescentTask& task) {
  const int64_t rows = task.x.rows();
  const int64_t wanted = std::max(kFewestBlockRows, divide_up(rows, kDescentBlocks));
  return std::max<int64_t>(1, std::min({wanted, task.most_rows, rows}));
}

}  // namespace

DescentBlocks::DescentBlocks(const DescentTask& task, WorkFolder* folder, const Resources& resources)
    : task_(task),
      folder_(folder),
      resources_(resources),
      block_rows_(rows_of_a_block(task)),
      count_(divide_up(rows(), block_rows_)),
      section_rows_(std::clamp<int64_t>(kSectionWords / task.length, 1, block_rows_)) {}

std::string DescentBlocks::step_name(std::string_view kind, int64_t round, int64_t block) const {
  return fmt::format("{}{}-{}-{}", task_.prefix, kind, round, block);
}

bool DescentBlocks::are_there(const std::function<std::string(int64_t)>& name) const {
  for (int64_t block = 0; block < count_; ++block) {
    if (!folder_->find(name(block))) return false;
  }
  return true;
}

void DescentBlocks::remove_steps(const std::string& beginning) const {
  for (const std::string& name : folder_->names(task_.prefix + beginning)) folder_->remove(name);
}

int64_t DescentBlocks::section_bytes(int64_t block, int64_t section) const {
  return std::min(section_rows_, rows_of(block) - section * section_rows_) * task_.length * 8;
}

void DescentBlocks::read_section(const StepFile& step, int64_t block, int64_t section, uint64_t* lists) const {
  if (step.sections() != 1 + sections_of(block) || step.bytes(1 + section) != section_bytes(block, section)) {
    step.refuse("the step is of other rows");
  }
  step.read(1 + section, lists);
}

void DescentBlocks::read_lists(const std::string& name, int64_t block, WorkingLists& lists) const {
  const StepFile step = folder_->open(name);
  ProgressMeter meter("lists", sections_of(block), resources_);
  parallel_for(sections_of(block), meter, resources_, [&](int64_t section, int) {
    const int64_t first = section * section_rows_;
    const int64_t end = std::min(first + section_rows_, rows_of(block));
    read_section(step, block, section, lists.list(first));
    for (int64_t i = first; i < end; ++i) lists.refresh_threshold(i);
  });
}

void DescentBlocks::write_lists(const std::string& name, int64_t block, int64_t entered,
                                const WorkingLists& lists) const {
  std::vector<int64_t> sizes{8};
  for (int64_t section = 0; section < sections_of(block); ++section) sizes.push_back(section_bytes(block, section));
  StepWriter writer(*folder_, name);
  writer.lay_out(sizes);
  writer.put(0, std::as_bytes(std::span(&entered, 1)));
  ProgressMeter meter("lists", sections_of(block), resources_);
  parallel_for(sections_of(block), meter, resources_, [&](int64_t section, int) {
    const auto* const begin = reinterpret_cast<const std::byte*>(lists.list(section * section_rows_));
    writer.put(1 + section, {begin, static_cast<size_t>(section_bytes(block, section))});
  });
  writer.commit();
}

void DescentBlocks::copy_thresholds(int64_t block, const WorkingLists& lists,
                                    const HostArray<uint32_t>& thresholds) const {
  for (int64_t i = 0; i < rows_of(block); ++i) thresholds[first_of(block) + i] = lists.threshold(i);
}

void DescentBlocks::draw(int64_t block, const WorkingLists& lists, uint32_t* samples_of) const {
  for_rows(block, [&](int64_t i, int) {
    draw_samples(task_.params.rules, first_of(block) + i, lists.list(i), task_.length, samples_of + 2 * samples() * i);
  });
}

}  // namespace kith
