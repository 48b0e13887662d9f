#include "graph/build/cells_on_disk/list_steps.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kSectionRows = 256;
constexpr int64_t kFewestWritten = 64;
constexpr int64_t kMostWritten = 1 << 20;
constexpr size_t kMostOpen = 6;  // of up to eight files each

}  // namespace

ListChain::ListChain(WorkFolder& folder, int64_t probes, ListForm form, int64_t rows)
    : folder_(folder), probes_(probes), form_(std::move(form)), rows_(rows) {
  look();
}

void ListChain::look() {
  for (const std::string& name : folder_.names(beginning(probes_))) {
    const auto known = [&](const ListBlock& block) { return name_of(block.first) == name; };
    if (std::any_of(blocks_.begin(), blocks_.end(), known)) continue;
    const std::optional<StepFile> step = folder_.find(name);
    if (!step) continue;
    ListBlock block;
    if (step->sections() < 1 || step->bytes(step->sections() - 1) != static_cast<int64_t>(sizeof(block))) {
      step->refuse("the step has no end");
    }
    step->read(step->sections() - 1, &block);
    if (block.first < 0 || block.end <= block.first || block.end > rows_ || name_of(block.first) != name ||
        step->sections() != all_sections(block) || done(block) > 0) {
      step->refuse("the step is of other places");
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

std::string ListChain::beginning(int64_t probes) { return fmt::format("lists-{}-", probes); }
std::string ListChain::name_of(int64_t place) const { return beginning(probes_) + std::to_string(place); }

StepFile ListChain::open(const ListBlock& block) const { return folder_.open(name_of(block.first)); }

int64_t ListChain::sections(const ListBlock& block) const { return divide_up(block.end - block.first, kSectionRows); }
int64_t ListChain::section_bytes(int64_t k) { return kSectionRows * (4 + 8 * k); }

int64_t ListChain::pairs() const {
  return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0},
                         [](int64_t sum, const ListBlock& block) { return sum + block.pairs; });
}

// Rows of a block in a section as it is stored: numbers, then lists.
std::span<std::byte> ListChain::put_rows(const uint32_t* numbers, const uint32_t* order, const uint64_t* lists,
                                         int64_t count, std::vector<std::byte>& memory) const {
  memory.resize(static_cast<size_t>(count * form_.row_bytes()));
  std::byte* to = memory.data();
  for (int64_t i = 0; i < count; ++i, to += 4) std::memcpy(to, numbers + order[i], 4);
  if (!form_.ids_only) {
    std::memcpy(to, lists, static_cast<size_t>(8 * count * form_.k));
    return memory;
  }
  for (int64_t i = 0; i < count * form_.k; ++i, to += 4) {
    const uint32_t id = row_of(lists[i]);  // padding too
    std::memcpy(to, &id, 4);
  }
  return memory;
}

void ListChain::append(const ListBlock& block, const uint32_t* numbers, const ListFetch& fetch,
                       const Resources& resources) {
  const int64_t count = block.end - block.first;
  StepWriter writer(folder_, name_of(block.first));
  std::vector<int64_t> sizes;
  for (int64_t first = 0; first < count; first += kSectionRows) {
    sizes.push_back(std::min(kSectionRows, count - first) * form_.row_bytes());
  }
  // Where the control rows are in the order of the block.
  std::vector<int64_t> whole;
  if (form_.ids_only) {
    const auto earlier = [&](uint32_t at, uint32_t row) { return numbers[at] < row; };
    for (const uint32_t row : form_.control) {
      const uint32_t* const found = std::lower_bound(fetch.order, fetch.order + count, row, earlier);
      if (found != fetch.order + count && numbers[*found] == row) whole.push_back(found - fetch.order);
    }
    sizes.push_back(static_cast<int64_t>(whole.size()) * form_.whole_bytes());
  }
  sizes.push_back(static_cast<int64_t>(sizeof(block)));
  writer.lay_out(sizes);
  const HostArray<std::byte> whole_lists(static_cast<int64_t>(whole.size()) * form_.whole_bytes(), "lists", resources);
  std::vector<std::vector<std::byte>> memory(static_cast<size_t>(resources.threads()));
  const Resources quiet = resources.with_progress({});
  const int64_t at_once = std::max<int64_t>(fetch.at_once / kSectionRows, 1) * kSectionRows;
  for (int64_t fetched = 0; fetched < count; fetched += at_once) {
    const int64_t end = std::min(fetched + at_once, count);
    const uint64_t* const lists = fetch.lists(fetch.order + fetched, end - fetched);
    const int64_t some_sections = divide_up(end - fetched, kSectionRows);
    ProgressMeter meter("lists", some_sections, quiet);
    parallel_for(some_sections, meter, quiet, [&](int64_t number, int slot) {
      const int64_t first = fetched + number * kSectionRows;
      const int64_t some = std::min(kSectionRows, end - first);
      const uint64_t* const here = lists + (first - fetched) * form_.k;
      writer.put(first / kSectionRows,
                 put_rows(numbers, fetch.order + first, here, some, memory[static_cast<size_t>(slot)]));
      for (auto at = std::lower_bound(whole.begin(), whole.end(), first); at != whole.end() && *at < first + some; ++at) {
        std::byte* const to = whole_lists.data() + (at - whole.begin()) * form_.whole_bytes();
        std::memcpy(to, numbers + fetch.order[*at], 4);
        std::memcpy(to + 4, here + (*at - first) * form_.k, static_cast<size_t>(8 * form_.k));
      }
    });
  }
  if (form_.ids_only) writer.put(sections(block), {whole_lists.data(), static_cast<size_t>(whole_lists.size())});
  writer.put(all_sections(block) - 1, std::as_bytes(std::span(&block, 1)));
  writer.commit();
  put(block);
}

// body(number, list) of each row of a section; with ids only the keys of its neighbours are 0.
template <typename Body>
void ListChain::for_lists(const ListBlock& block, const StepFile& step, int64_t section, std::byte* memory,
                          const Body& body) const {
  step.read(section, memory);
  const int64_t some = std::min(kSectionRows, block.end - block.first - section * kSectionRows);
  std::vector<uint64_t> list(static_cast<size_t>(form_.k));
  for (int64_t i = 0; i < some; ++i) {
    uint32_t number = 0;
    std::memcpy(&number, memory + i * 4, 4);
    const std::byte* const stored = memory + some * 4 + i * form_.entry_bytes() * form_.k;
    if (!form_.ids_only) {
      std::memcpy(list.data(), stored, static_cast<size_t>(8 * form_.k));
    } else {
      for (size_t j = 0; j < list.size(); ++j) {
        uint32_t id = 0;
        std::memcpy(&id, stored + 4 * j, 4);
        list[j] = id == row_of(kPadding) ? kPadding : id;
      }
    }
    if (number >= rows_) step.refuse("a row that is none");
    body(number, list.data());
  }
}

// The list of a row, if it is in a block, whose rows ascend: found by some of its sections.
void ListChain::find_list(const ListBlock& block, const StepFile& step, uint32_t row, std::byte* memory,
                          uint64_t* list) const {
  int64_t first = 0;
  int64_t end = sections(block);
  int64_t least = 0;  // rows that these sections may have
  int64_t most = rows_;
  for (bool guesses = true; first < end; guesses = !guesses) {
    // A block has rows from all over, so that a guess is seldom far off; every other time the half is left at most.
    const int64_t guess = guesses ? (row - least) * (end - first) / std::max<int64_t>(most - least, 1) : (end - first) / 2;
    const int64_t section = std::clamp(first + guess, first, end - 1);
    uint32_t from = UINT32_MAX;
    uint32_t to = 0;
    bool found = false;
    for_lists(block, step, section, memory, [&](uint32_t number, const uint64_t* here) {
      from = std::min(from, number);
      to = std::max(to, number);
      if (number != row) return;
      found = true;
      std::copy_n(here, form_.k, list);
    });
    if (found || (row > from && row < to)) return;
    if (row < from) {
      end = section;
      most = from;
    } else {
      first = section + 1;
      least = int64_t{to} + 1;
    }
  }
}

// The lists of the control rows that steps keep as a whole.
void ListChain::read_whole_lists(const ControlRows& control, const HostArray<uint64_t>& lists,
                                 const Resources& resources) const {
  std::unordered_map<uint32_t, int64_t> places;
  for (const uint32_t row : control.rows()) places.emplace(row, std::ssize(places));
  const int64_t bytes = form_.whole_bytes();
  const HostArray<std::byte> stored(std::ssize(places) * bytes, "lists", resources);
  for (const ListBlock& block : blocks_) {
    const StepFile step = open(block);
    const int64_t size = step.bytes(sections(block));
    if (size % bytes != 0 || size > stored.size()) step.refuse("the control rows' lists are of another length");
    step.read(sections(block), stored.data());
    for (int64_t at = 0; at < size; at += bytes) {
      uint32_t row = 0;
      std::memcpy(&row, stored.data() + at, 4);
      const auto place = places.find(row);
      if (place == places.end()) step.refuse("it has the list of a row that is no control row, or has it twice");
      std::memcpy(lists.data() + place->second * form_.k, stored.data() + at + 4, static_cast<size_t>(bytes - 4));
      places.erase(place);
    }
  }
  if (places.empty()) return;
  throw InvalidState(fmt::format("the work folder '{}' lacks the lists of {} control rows; remove it and begin anew",
                                 folder_.path(), places.size()));
}

RecallEstimate ListChain::measure(const ControlRows& control, const Resources& resources) const {
  const auto& rows = control.rows();
  const HostArray<uint64_t> lists(static_cast<int64_t>(rows.size()) * form_.k, "the control rows' lists", resources);
  std::fill(lists.begin(), lists.end(), kPadding);
  if (form_.ids_only) {
    read_whole_lists(control, lists, resources);
    return control.measure(lists.data(), form_.k);
  }
  const HostArray<std::byte> memory(resources.threads() * section_bytes(form_.k), "lists", resources);
  for (const ListBlock& block : blocks_) {
    const StepFile step = open(block);
    ProgressMeter meter("recall", static_cast<int64_t>(rows.size()), resources);
    parallel_for(static_cast<int64_t>(rows.size()), meter, resources, [&](int64_t number, int slot) {
      find_list(block, step, rows[static_cast<size_t>(number)], memory.data() + slot * section_bytes(form_.k),
                lists.data() + number * form_.k);
    });
  }
  return control.measure(lists.data(), form_.k);
}

namespace {

// The next sections of a block that rows are looked for in.
struct SectionRun {
  size_t block = 0;
  int64_t first = 0;
  int64_t end = 0;
};

}  // namespace

// Reads steps from front to back, some sections of all steps at a time; the section in which a part ends is read again
// for the next part.
class ListChain::Reader {
 public:
  Reader(const ListChain& chain, Metric metric, const Resources& resources)
      : chain_(chain),
        exit_(metric),
        resources_(resources),
        memory_(resources.threads() * section_bytes(chain.form_.k), "lists", resources),
        next_(chain.blocks_.size(), 0) {
    // Steps stay open while they are few.
    for (size_t b = 0; b < chain.blocks_.size() && chain.blocks_.size() <= kMostOpen; ++b) {
      opened_.push_back(chain.open(chain.blocks_[b]));
    }
  }

  // The lists of rows first .. end - 1. Returns how many there were.
  int64_t read(int64_t first, int64_t end, const NeighborsView& out) {
    int64_t found = 0;
    if (opened_.empty()) {
      for (size_t b = 0; b < next_.size(); ++b) {
        const StepFile step = chain_.open(chain_.blocks_[b]);
        std::vector<const StepFile*> steps(next_.size(), &step);
        found += read_blocks({b}, steps, first, end, out);
      }
      return found;
    }
    std::vector<size_t> blocks(next_.size());
    std::iota(blocks.begin(), blocks.end(), size_t{0});
    std::vector<const StepFile*> steps;
    for (const StepFile& step : opened_) steps.push_back(&step);
    return read_blocks(std::move(blocks), steps, first, end, out);
  }

 private:
  int64_t read_blocks(std::vector<size_t> blocks, const std::vector<const StepFile*>& steps, int64_t first, int64_t end,
                      const NeighborsView& out) {
    std::atomic<int64_t> found = 0;
    while (!blocks.empty()) {
      // Each thread has a few sections, and no more than the rows may be in.
      const auto count = static_cast<int64_t>(blocks.size());
      const int64_t each = std::min(divide_up(int64_t{4} * resources_.threads(), count),
                                    divide_up(end - first, kSectionRows * count) + 1);
      std::vector<SectionRun> runs;
      std::vector<std::pair<size_t, int64_t>> tasks;
      for (const size_t b : blocks) {
        runs.push_back({b, next_[b], std::min(next_[b] + each, chain_.sections(chain_.blocks_[b]))});
        for (int64_t section = runs.back().first; section < runs.back().end; ++section) tasks.emplace_back(b, section);
      }
      std::vector<char> beyond(tasks.size(), 0);
      ProgressMeter meter("write", static_cast<int64_t>(tasks.size()), resources_);
      parallel_for(static_cast<int64_t>(tasks.size()), meter, resources_, [&](int64_t number, int slot) {
        const auto task = static_cast<size_t>(number);
        const auto [block, section] = tasks[task];
        int64_t here = 0;
        const auto put = [&](uint32_t row, const uint64_t* list) {
          if (row >= end) beyond[task] = 1;
          if (row < first || row >= end) return;
          const int64_t at = (row - first) * chain_.form_.k;
          write_results(exit_, list, chain_.form_.k, out.ids + at, out.distances + at);
          ++here;
        };
        std::byte* const mine = memory_.data() + slot * section_bytes(chain_.form_.k);
        chain_.for_lists(chain_.blocks_[block], *steps[block], section, mine, put);
        found += here;
      });
      size_t task = 0;
      blocks.clear();
      for (const SectionRun& run : runs) {
        const int64_t looked = run.end - run.first;
        const auto from = beyond.begin() + static_cast<std::ptrdiff_t>(task);
        const int64_t whole = std::find(from, from + looked, char{1}) - from;
        next_[run.block] = run.first + whole;
        if (whole == looked && run.end < chain_.sections(chain_.blocks_[run.block])) blocks.push_back(run.block);
        task += static_cast<size_t>(looked);
      }
    }
    return found;
  }

  const ListChain& chain_;
  const ResultExit exit_;
  const Resources& resources_;
  const HostArray<std::byte> memory_;
  std::vector<int64_t> next_;  // the section of each block that the next row may be in
  std::vector<StepFile> opened_;
};

void ListChain::write(Metric metric, const Resources& resources,
                      const std::function<void(const NeighborsView& part)>& sink) const {
  const Resources quiet = resources.with_progress({});
  Reader reader(*this, metric, quiet);
  const Reservation tables(StepFile::table_bytes(divide_up(rows_, kSectionRows)), 0, resources);
  const int64_t batch = rows_that_fit(kFewestWritten, std::min(kMostWritten, rows_), resources,
                                      [&](int64_t rows) { return 2 * 12 * form_.k * rows; });
  Neighbors parts[2];
  for (Neighbors& part : parts) part = Neighbors(std::min(batch, rows_), form_.k, resources);
  ProgressMeter meter("write", rows_, resources);
  std::future<void> written;
  int64_t turn = 0;
  for (int64_t first = 0; first < rows_; first += batch, turn = 1 - turn) {
    const int64_t end = std::min(first + batch, rows_);
    const NeighborsView part = parts[turn].view();
    const int64_t found = reader.read(first, end, part);
    if (written.valid()) written.get();
    if (found != end - first) {
      throw InvalidState(
          fmt::format("the work folder '{}' has lists of {} of the rows {} to {}; remove it and begin anew",
                      folder_.path(), found, first, end - 1));
    }
    const NeighborsView whole{part.ids, form_.ids_only ? nullptr : part.distances, end - first, form_.k, {}};
    written = start_beside([&sink, whole] { sink(whole); });
    meter.add(end - first);
    meter.poll();
  }
  if (written.valid()) written.get();
  meter.finish();
}

void ListChain::remove() {
  for (const ListBlock& block : blocks_) folder_.remove(name_of(block.first));
  blocks_.clear();
}

}  // namespace kith
