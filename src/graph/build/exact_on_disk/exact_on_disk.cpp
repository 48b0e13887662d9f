#include "graph/build/exact_on_disk/exact_on_disk.hpp"

#include <kith/neighbors.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/handle/graph_output.hpp"
#include "io/row_slice.hpp"
#include "io/work_folder.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kBlock = "rows-";
constexpr int64_t kExactSectionRows = 64;
constexpr int64_t kFewestSurveyed = 64;  // rows at a time
// A block is searched at once, so it has rows enough to hide that the others are read for it, and few enough that little
// is lost by a kill.
constexpr int64_t kFewestBlockRows = 16384;
constexpr int64_t kBlocks = 64;

struct RowRange {
  int64_t first = 0;
  int64_t end = 0;
};

WorkManifest manifest_of(const VectorFile& x, const KnnGraphParams& params, bool ends) {
  WorkManifest manifest;
  manifest.set("work", ends ? "an exact graph, since no other method reaches the recall sooner" : "an exact graph");
  put_source(x, manifest);
  manifest.set("k", params.k);
  manifest.set("metric", name_of(params.metric));
  if (ends) {
    manifest.set("recall", fmt::format("{}", params.recall));
    manifest.set("seed", fmt::format("{}", params.seed));
  }
  return manifest;
}

class ExactOnDisk {
 public:
  // Without a folder where memory is only counted.
  ExactOnDisk(const VectorFile& x, const KnnGraphParams& params, const DiskWork* work, WorkFolder* folder,
              const Resources& resources)
      : x_(x), params_(params), work_(work), folder_(folder), resources_(resources), quiet_(resources.with_progress({})) {}

  void count() {
    (void)survey(nullptr);
    const HostArray<std::byte> section(section_bytes(kExactSectionRows), "neighbours", quiet_);
    count_work(Footprint{2 * x_.memory_bytes()}.beside(search_footprint(shape(x_), wish(), RowFilter(), quiet_)), quiet_);
    const Neighbors part(kExactSectionRows, params_.k, quiet_);
    const Reservation tables(StepFile::table_bytes(divide_up(block_rows(), kExactSectionRows)), 0, quiet_);
  }

  void run(GraphSink& sink) {
    find_survey();
    std::vector<RowRange> blocks = find_blocks();
    ProgressMeter meter("blocks", x_.rows(), resources_);
    for (const RowRange& block : blocks) meter.add(block.end - block.first);
    folder_->require_space(space(blocks, sink));
    for (const RowRange& gap : gaps(blocks)) {
      for (int64_t first = gap.first; first < gap.end; first += block_rows()) {
        const RowRange block{first, std::min(first + block_rows(), gap.end)};
        search(block);
        meter.add(block.end - block.first);
        meter.poll();
      }
    }
    meter.finish();
    write(sink);
  }

 private:
  int64_t row_bytes() const { return 12 * params_.k; }
  int64_t section_bytes(int64_t rows) const { return rows * row_bytes(); }
  int64_t block_rows() const {
    const int64_t most = work_ == nullptr ? INT64_MAX : work_->most_rows;
    return std::min(std::max(kFewestBlockRows, divide_up(x_.rows(), kBlocks)), most);
  }
  static std::string block_name(int64_t first) { return std::string(kBlock) + std::to_string(first); }

  SearchShape shape(const VectorFile& queries) const {
    return check_knn(RowsInfo(queries), RowsInfo(x_), {params_.k + 1, params_.metric});
  }
  SearchWish wish() const { return {.k = params_.k + 1, .check_finite = false, .results_in_memory = false}; }

  // The hashes of all rows, which are numbers; compared with those that are known.
  std::vector<uint64_t> survey(const std::vector<uint64_t>* known) const {
    const int64_t batch = rows_that_fit(std::min(kFewestSurveyed, x_.rows()), std::min(most_pass_rows(x_), x_.rows()),
                                        quiet_, [&](int64_t rows) { return pass_bytes(x_, rows); });
    const auto look = [&](int64_t first, const MatrixView& rows) {
      if (params_.check_finite) refuse_not_finite("x", rows, {first}, quiet_);
    };
    return pass_over(x_, known == nullptr ? "survey" : "verify", {batch}, known, resources_, look);
  }

  void find_survey() {
    if (const std::optional<StepFile> step = folder_->find("survey")) {
      std::vector<uint64_t> known(static_cast<size_t>(step->bytes(0)) / sizeof(uint64_t));
      step->read(0, known.data());
      (void)survey(&known);
      return;
    }
    // Blocks without a survey are of rows that nobody can verify.
    for (const std::string& name : folder_->names(kBlock)) folder_->remove(name);
    const std::vector<uint64_t> hashes = survey(nullptr);
    StepWriter writer(*folder_, "survey");
    writer.add(std::as_bytes(std::span(hashes)));
    writer.commit();
  }

  // Those that are done, by their rows.
  std::vector<RowRange> find_blocks() {
    std::vector<RowRange> blocks;
    for (const std::string& name : folder_->names(kBlock)) {
      const std::optional<StepFile> step = folder_->find(name);
      int64_t first = 0;
      const char* const digits = name.data() + kBlock.size();
      const auto [end, error] = std::from_chars(digits, name.data() + name.size(), first);
      if (!step || error != std::errc() || end != name.data() + name.size()) continue;
      blocks.push_back({first, first + step->bytes(0, step->sections()) / row_bytes()});
    }
    std::sort(blocks.begin(), blocks.end(), [](const RowRange& a, const RowRange& b) { return a.first < b.first; });
    return blocks;
  }

  std::vector<RowRange> gaps(const std::vector<RowRange>& blocks) const {
    std::vector<RowRange> missing;
    int64_t at = 0;
    for (const RowRange& block : blocks) {
      if (block.first > at) missing.push_back({at, block.first});
      at = block.end;
    }
    if (at < x_.rows()) missing.push_back({at, x_.rows()});
    return missing;
  }

  // Bytes that are still to be written.
  int64_t space(const std::vector<RowRange>& blocks, const GraphSink& sink) const {
    int64_t rows = x_.rows();
    for (const RowRange& block : blocks) rows -= block.end - block.first;
    return rows * row_bytes() + sink.bytes_beside(folder_->path());
  }

  // The neighbours of the rows of a block among all.
  void search(const RowRange& block) {
    const VectorFile queries = slice_of(x_, block.first, block.end - block.first);
    const HostArray<std::byte> section(section_bytes(kExactSectionRows), "neighbours", quiet_);
    StepWriter writer(*folder_, block_name(block.first), (block.end - block.first) * row_bytes());
    const auto put = [&](int64_t first, const NeighborsView& part) {
      for (int64_t done = 0; done < part.queries; done += kExactSectionRows) {
        const int64_t rows = std::min(kExactSectionRows, part.queries - done);
        auto* const ids = reinterpret_cast<int64_t*>(section.data());
        auto* const distances = reinterpret_cast<float*>(section.data() + rows * params_.k * 8);
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t at = (done + i) * part.k;
          put_others(part.ids + at, part.distances + at, block.first + first + done + i, params_.k, ids + i * params_.k,
                     distances + i * params_.k);
        }
        writer.add({section.data(), static_cast<size_t>(section_bytes(rows))});
      }
    };
    const SearchShape searched = shape(queries);
    const auto least = [&] { return search_footprint(searched, wish(), RowFilter(), quiet_); };
    search_files(queries, x_, quiet_, least, [&](RowSource& query_rows, RowSource& base) {
      search_knn(searched, wish(), {query_rows, base, RowFilter()}, put, quiet_);
    });
    writer.commit();
  }

  void write(GraphSink& sink) {
    const HostArray<std::byte> section(section_bytes(kExactSectionRows), "neighbours", quiet_);
    ProgressMeter meter("write", x_.rows(), resources_);
    sink.begin();
    for (int64_t row = 0; row < x_.rows();) {
      const StepFile step = folder_->open(block_name(row));
      for (int64_t at = 0; at < step.sections(); ++at) {
        const int64_t rows = step.bytes(at) / row_bytes();
        if (rows < 1 || rows > kExactSectionRows || step.bytes(at) != section_bytes(rows)) {
          throw DamagedStep(step.name(), step.name(), 0, "the step is of other rows");
        }
        step.read(at, section.data());
        auto* const ids = reinterpret_cast<int64_t*>(section.data());
        sink.append({ids, reinterpret_cast<float*>(ids + rows * params_.k), rows, params_.k, {}});
        row += rows;
        meter.add(rows);
        meter.poll();
      }
    }
    meter.finish();
  }

  const VectorFile& x_;
  const KnnGraphParams& params_;
  const DiskWork* const work_;
  WorkFolder* const folder_;
  const Resources& resources_;
  const Resources quiet_;
};

}  // namespace

Footprint exact_on_disk_footprint(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  return counted(resources,
                 [&](const Resources& counting) { ExactOnDisk(x, params, nullptr, nullptr, counting).count(); });
}

GraphReport exact_on_disk(const VectorFile& x, const KnnGraphParams& params, const DiskWork& work, GraphSink& sink,
                          const Resources& resources) {
  const auto least = [&] { return exact_on_disk_footprint(x, params, resources); };
  return within_limits("the graph", resources, least, [&] {
    WorkFolder folder(work.disk, work.folder, manifest_of(x, params, work.exact_ends), resources);
    return repairing(folder, [&] {
      ExactOnDisk(x, params, &work, &folder, resources).run(sink);
      GraphReport report;
      report.method = name_of(GraphMethod::exact);
      report.recall = exact_recall(x.rows());
      sink.finish(report);
      folder.finish({}, work.keep);
      return report;
    });
  });
}

}  // namespace kith
