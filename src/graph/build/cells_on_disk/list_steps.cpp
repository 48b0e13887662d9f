#include "graph/build/cells_on_disk/list_steps.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kSectionRows = 256;
constexpr int64_t kFewestWritten = 64;
constexpr int64_t kMostWritten = 1 << 20;
constexpr size_t kMostOpen = 16;

}  // namespace

ListChain::ListChain(WorkFolder& folder, int64_t probes, int64_t k, int64_t rows)
    : folder_(folder), probes_(probes), k_(k), rows_(rows) {
  look();
}

void ListChain::look() {
  for (const std::string& name : folder_.names(beginning())) {
    const auto known = [&](const ListBlock& block) { return name_of(block.first) == name; };
    if (std::any_of(blocks_.begin(), blocks_.end(), known)) continue;
    const std::optional<StepFile> step = folder_.find(name);
    if (!step) continue;
    ListBlock block;
    if (step->sections() < 1 || step->bytes(step->sections() - 1) != static_cast<int64_t>(sizeof(block))) {
      throw DamagedStep(step->name(), step->name(), 0, "the step has no end");
    }
    step->read(step->sections() - 1, &block);
    if (block.first < 0 || block.end <= block.first || block.end > rows_ || name_of(block.first) != name ||
        step->sections() != sections(block) + 1 || done(block) > 0) {
      throw DamagedStep(step->name(), step->name(), 0, "the step is of other places");
    }
    put(block);
  }
}

void ListChain::put(const ListBlock& block) {
  const auto later = [](const ListBlock& a, const ListBlock& b) { return a.first < b.first; };
  blocks_.insert(std::upper_bound(blocks_.begin(), blocks_.end(), block, later), block);
}

int64_t ListChain::done(const ListBlock& range) const {
  int64_t places = 0;
  for (const ListBlock& block : blocks_) {
    places += std::max<int64_t>(0, std::min(range.end, block.end) - std::max(range.first, block.first));
  }
  return places;
}

std::optional<ListBlock> ListChain::gap(const ListBlock& range) const {
  int64_t at = range.first;
  for (const ListBlock& block : blocks_) {
    if (block.end <= at) continue;
    if (block.first > at) return at < range.end ? std::optional(ListBlock{at, std::min(block.first, range.end)}) : std::nullopt;
    at = block.end;
  }
  if (at >= range.end) return std::nullopt;
  return ListBlock{at, range.end};
}

std::string ListChain::beginning() const { return fmt::format("lists-{}-", probes_); }
std::string ListChain::name_of(int64_t place) const { return beginning() + std::to_string(place); }

StepFile ListChain::open(const ListBlock& block) const {
  std::optional<StepFile> step = folder_.find(name_of(block.first));
  if (!step) throw DamagedStep(name_of(block.first), name_of(block.first), 0, "the step is not there");
  return std::move(*step);
}

int64_t ListChain::sections(const ListBlock& block) const { return divide_up(block.end - block.first, kSectionRows); }
int64_t ListChain::section_bytes() const { return kSectionRows * (4 + 8 * k_); }

int64_t ListChain::pairs() const {
  return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0},
                         [](int64_t sum, const ListBlock& block) { return sum + block.pairs; });
}

void ListChain::append(const ListBlock& block, const uint32_t* numbers, const ListFetch& fetch) {
  const int64_t count = block.end - block.first;
  StepWriter writer(folder_, name_of(block.first), count * (4 + 8 * k_));
  std::vector<std::byte> section;
  const int64_t at_once = std::max<int64_t>(fetch.at_once / kSectionRows, 1) * kSectionRows;
  for (int64_t fetched = 0; fetched < count; fetched += at_once) {
    const int64_t end = std::min(fetched + at_once, count);
    const uint64_t* const lists = fetch.lists(fetch.order + fetched, end - fetched);
    for (int64_t first = fetched; first < end; first += kSectionRows) {
      const int64_t some = std::min(kSectionRows, end - first);
      section.resize(static_cast<size_t>(some * (4 + 8 * k_)));
      for (int64_t i = 0; i < some; ++i) {
        std::memcpy(section.data() + i * 4, numbers + fetch.order[first + i], 4);
      }
      std::memcpy(section.data() + some * 4, lists + (first - fetched) * k_, static_cast<size_t>(some * 8 * k_));
      writer.add(section);
    }
  }
  writer.add(std::as_bytes(std::span(&block, 1)));
  writer.commit();
  put(block);
}

// body(number, list) of each row of a section.
template <typename Body>
void ListChain::for_lists(const ListBlock& block, const StepFile& step, int64_t section, std::byte* memory,
                          const Body& body) const {
  step.read(section, memory);
  const int64_t some = std::min(kSectionRows, block.end - block.first - section * kSectionRows);
  std::vector<uint64_t> list(static_cast<size_t>(k_));
  for (int64_t i = 0; i < some; ++i) {
    uint32_t number = 0;
    std::memcpy(&number, memory + i * 4, 4);
    std::memcpy(list.data(), memory + some * 4 + i * 8 * k_, static_cast<size_t>(8 * k_));
    if (number >= rows_) throw DamagedStep(step.name(), step.name(), 0, "a row that is none");
    body(number, list.data());
  }
}

RecallEstimate ListChain::measure(const ControlRows& control, const Resources& resources) const {
  const auto& rows = control.rows();
  const HostArray<std::byte> memory(section_bytes(), "lists", resources);
  const HostArray<uint64_t> lists(static_cast<int64_t>(rows.size()) * k_, "the control rows' lists", resources);
  if (only_counts(resources)) return {};
  std::fill(lists.begin(), lists.end(), kPadding);
  for (const ListBlock& block : blocks_) {
    const StepFile step = open(block);
    for (int64_t section = 0; section < sections(block); ++section) {
      for_lists(block, step, section, memory.data(), [&](uint32_t number, const uint64_t* list) {
        const auto at = std::lower_bound(rows.begin(), rows.end(), number);
        if (at != rows.end() && *at == number) std::copy_n(list, k_, lists.data() + (at - rows.begin()) * k_);
      });
    }
    resources.check_cancelled();
  }
  return control.measure(lists.data(), k_);
}

void ListChain::write(Metric metric, const Resources& resources,
                      const std::function<void(const NeighborsView& part)>& sink) const {
  const HostArray<std::byte> memory(resources.threads() * section_bytes(), "lists", resources);
  const int64_t batch = rows_that_fit(kFewestWritten, std::min(kMostWritten, rows_), resources,
                                      [&](int64_t rows) { return 12 * k_ * rows; });
  Neighbors part(std::min(batch, rows_), k_, resources);
  if (only_counts(resources)) return;
  const ResultExit exit(metric);
  // The section of each block that the next row may be in: steps are read from front to back, and the section where a
  // batch ends once more for the next.
  std::vector<int64_t> next(blocks_.size(), 0);
  ProgressMeter meter("write", rows_, resources);
  const Reservation tables(StepFile::table_bytes(divide_up(rows_, kSectionRows)), 0, resources);
  // Steps stay open while they are few.
  std::vector<StepFile> opened;
  for (size_t b = 0; b < blocks_.size() && blocks_.size() <= kMostOpen; ++b) opened.push_back(open(blocks_[b]));
  for (int64_t first = 0; first < rows_; first += batch) {
    const int64_t end = std::min(first + batch, rows_);
    std::atomic<int64_t> found = 0;
    const auto take = [&](size_t b, const StepFile& step, int slot) {
      int64_t here = 0;
      for (int64_t& section = next[b]; section < sections(blocks_[b]); ++section) {
        bool beyond = false;
        const auto put = [&](uint32_t number, const uint64_t* list) {
          beyond |= number >= end;
          if (number < first || number >= end) return;
          const int64_t at = (number - first) * k_;
          write_results(exit, list, k_, part.view().ids + at, part.view().distances + at);
          ++here;
        };
        for_lists(blocks_[b], step, section, memory.data() + slot * section_bytes(), put);
        if (beyond) break;
      }
      found += here;
    };
    if (opened.empty()) {
      for (size_t b = 0; b < blocks_.size(); ++b) take(b, open(blocks_[b]), 0);
    } else {
      parallel_for(static_cast<int64_t>(blocks_.size()), meter, resources, [&](int64_t block, int slot) {
        take(static_cast<size_t>(block), opened[static_cast<size_t>(block)], slot);
      });
    }
    meter.poll();
    if (found != end - first) {
      throw InvalidState(
          fmt::format("the work folder '{}' has lists of {} of the rows {} to {}; remove it and begin anew",
                      folder_.path(), found.load(), first, end - 1));
    }
    sink({part.view().ids, part.view().distances, end - first, k_, {}});
    meter.add(end - first);
    meter.poll();
  }
  meter.finish();
}

void ListChain::remove() {
  for (const ListBlock& block : blocks_) folder_.remove(name_of(block.first));
  blocks_.clear();
}

}  // namespace kith
