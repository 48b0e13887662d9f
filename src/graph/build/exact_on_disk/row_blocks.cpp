#include "graph/build/exact_on_disk/row_blocks.hpp"

#include "core/divide.hpp"
#include "core/reservation.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>

namespace kith {
namespace {

constexpr int64_t kBlockSectionRows = 64;
constexpr int64_t kFewestBlockRows = 16384;
constexpr int64_t kBlocks = 64;
constexpr int64_t kFewestSurveyed = 64;  // rows at a time

// `known` where they are verified.
std::vector<uint64_t> survey(const VectorFile& x, std::string_view what, bool check_finite,
                             const std::vector<uint64_t>* known, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  const int64_t batch = rows_that_fit(std::min(kFewestSurveyed, x.rows()), std::min(most_pass_rows(x), x.rows()), quiet,
                                      [&](int64_t rows) { return pass_bytes(x, rows); });
  const auto look = [&](int64_t first, const MatrixView& rows) {
    if (check_finite) refuse_not_finite(what, rows, {first}, quiet);
  };
  return pass_over(x, known == nullptr ? "survey" : "verify", {batch}, known, resources, look);
}

}  // namespace

void count_survey(const VectorFile& x, bool check_finite, const Resources& resources) {
  (void)survey(x, "x", check_finite, nullptr, resources);
}

bool survey_rows(const VectorFile& x, std::string_view what, bool check_finite, WorkFolder& folder,
                 const std::string& name, const Resources& resources) {
  if (const std::optional<StepFile> step = folder.find(name)) {
    std::vector<uint64_t> known(static_cast<size_t>(step->bytes(0)) / sizeof(uint64_t));
    step->read(0, known.data());
    (void)survey(x, what, check_finite, &known, resources);
    return true;
  }
  const std::vector<uint64_t> hashes = survey(x, what, check_finite, nullptr, resources);
  StepWriter writer(folder, name);
  writer.add(std::as_bytes(std::span(hashes)));
  writer.commit();
  return false;
}

int64_t RowBlocks::section_bytes() const { return kBlockSectionRows * row_bytes(); }

void RowBlocks::count(int64_t most) const {
  const HostArray<std::byte> section(section_bytes(), "neighbours", resources_);
  const Reservation tables(StepFile::table_bytes(divide_up(block_rows(most), kBlockSectionRows)), 0, resources_);
}

int64_t RowBlocks::block_rows(int64_t most) const {
  return std::min(std::max(kFewestBlockRows, divide_up(rows_, kBlocks)), most);
}

std::vector<RowBlock> RowBlocks::gaps() const {
  std::vector<RowBlock> done;
  for (const std::string& name : folder_->names(prefix_)) {
    const std::optional<StepFile> step = folder_->find(name);
    int64_t first = 0;
    const char* const digits = name.data() + prefix_.size();
    const auto [end, error] = std::from_chars(digits, name.data() + name.size(), first);
    if (!step || error != std::errc() || end != name.data() + name.size()) continue;
    done.push_back({first, first + step->bytes(0, step->sections()) / row_bytes()});
  }
  std::sort(done.begin(), done.end(), [](const RowBlock& a, const RowBlock& b) { return a.first < b.first; });
  std::vector<RowBlock> missing;
  int64_t at = 0;
  for (const RowBlock& block : done) {
    if (block.first > at) missing.push_back({at, block.first});
    at = block.end;
  }
  if (at < rows_) missing.push_back({at, rows_});
  return missing;
}

std::vector<RowBlock> RowBlocks::missing(int64_t most) const {
  std::vector<RowBlock> blocks;
  for (const RowBlock& gap : gaps()) {
    for (int64_t first = gap.first; first < gap.end; first += block_rows(most)) {
      blocks.push_back({first, std::min(first + block_rows(most), gap.end)});
    }
  }
  return blocks;
}

int64_t RowBlocks::missing_bytes() const {
  int64_t rows = 0;
  for (const RowBlock& gap : gaps()) rows += gap.end - gap.first;
  return rows * row_bytes();
}

void RowBlocks::forget() const {
  for (const std::string& name : folder_->names(prefix_)) folder_->remove(name);
}

RowBlocks::Writer::Writer(const RowBlocks& blocks, const RowBlock& block)
    : k_(blocks.k_),
      section_(blocks.section_bytes(), "neighbours", blocks.resources_),
      step_(*blocks.folder_, blocks.name_of(block.first), (block.end - block.first) * blocks.row_bytes()) {}

NeighborPlaces RowBlocks::Writer::next() {
  if (filled_ == kBlockSectionRows) flush();
  auto* const ids = reinterpret_cast<int64_t*>(section_.data());
  auto* const distances = reinterpret_cast<float*>(ids + kBlockSectionRows * k_);
  const int64_t at = filled_++ * k_;
  return {ids + at, distances + at};
}

// Ids of the rows there are, then their distances.
void RowBlocks::Writer::flush() {
  const auto bytes = [&](int64_t each) { return static_cast<size_t>(filled_ * k_ * each); };
  std::memmove(section_.data() + bytes(8), section_.data() + kBlockSectionRows * k_ * 8, bytes(4));
  step_.add({section_.data(), bytes(12)});
  filled_ = 0;
}

void RowBlocks::Writer::commit() {
  if (filled_ > 0) flush();
  step_.commit();
}

void RowBlocks::append_to(GraphSink& sink, ProgressMeter& meter) const {
  const HostArray<std::byte> section(section_bytes(), "neighbours", resources_);
  for (int64_t row = 0; row < rows_;) {
    const StepFile step = folder_->open(name_of(row));
    for (int64_t at = 0; at < step.sections(); ++at) {
      const int64_t rows = step.bytes(at) / row_bytes();
      if (rows < 1 || rows > kBlockSectionRows || step.bytes(at) != rows * row_bytes()) {
        step.refuse("the step is of other rows");
      }
      step.read(at, section.data());
      auto* const ids = reinterpret_cast<int64_t*>(section.data());
      sink.append({ids, reinterpret_cast<float*>(ids + rows * k_), rows, k_, {}});
      row += rows;
      meter.add(rows);
      meter.poll();
    }
  }
}

}  // namespace kith
