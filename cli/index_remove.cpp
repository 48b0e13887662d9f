// kith index remove and range: removes vectors by id, and finds those within a radius.
#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "exit_codes.hpp"
#include "file_report.hpp"
#include "filter_file.hpp"
#include "index_commands.hpp"
#include "index_files.hpp"
#include "output_paths.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace kith::cli {

Report run_index_remove(const IndexRemoveOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const std::string out = options.out.empty() ? options.index : options.out;
  std::error_code ignored;
  if (options.ids.find_first_not_of("0123456789, ") == std::string::npos && !std::filesystem::exists(options.ids, ignored)) {
    throw UsageError(fmt::format("--ids names a file of ids, and there is no '{}'; make one, for example with numpy.save('ids.npy', [{}])", options.ids, options.ids));
  }
  check_outputs({{options.out.empty() ? "--index" : "--out", out}}, {{"--ids", options.ids}});
  if (!options.out.empty()) check_index_name(options.out);
  const IdFile file(options.ids);
  IndexInfo info;
  int64_t removed = 0;
  with_resources(run, [&](const Resources& resources) {
    Index index = open_index(options.index, resources);
    const ReadMemory memory = file.reserve_memory(resources);
    const HostArray<int64_t> ids(file.rows() * file.cols(), "the ids", resources);
    file.read(0, file.rows(), ids.data());
    removed = index.remove({ids.data(), ids.size(), {}}, resources);
    info = index.info();
    write_index(index, out, resources);
  });
  Report report;
  report.text = fmt::format("removed {} of {} ids, {} vectors are left\nwrote {}\n", removed, file.rows() * file.cols(),
                            info.size, out);
  JsonObject result;
  result.text("index", options.index).text("ids", options.ids).number("removed", removed).text("out", out);
  result.object("left", index_json(info));
  JsonObject timings;
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "index remove").object("result", std::move(result));
  report.json.object("timings", std::move(timings));
  return report;
}

Report run_index_range(const IndexRangeOptions& options, const RunOptions& run) {
  const Stopwatch total;
  std::vector<NamedPath> outputs{{"--out-offsets", options.out_offsets}, {"--out-ids", options.out_ids}};
  if (!options.out_distances.empty()) outputs.push_back({"--out-distances", options.out_distances});
  std::vector<NamedPath> inputs{{"--index", options.index}, {"--queries", options.queries}};
  if (!options.filter.empty()) inputs.push_back({"--filter", options.filter});
  check_outputs(outputs, inputs);
  const VectorFile queries(options.queries);
  RangeNeighbors found;
  IndexInfo info;
  double search_seconds = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    const Index index = open_index(options.index, resources);
    info = index.info();
    const FilterFile filter(options.filter, resources);
    RangeSearchParams params = options.params;
    params.filter = filter.rows();
    const MatrixBuffer rows = read_vectors(options.queries, {}, resources);
    const Stopwatch search;
    found = index.range_search(rows.view(), params, resources);
    search_seconds = search.seconds();
    const int64_t size = found.size();
    IdFileWriter offsets(options.out_offsets, queries.rows() + 1, 1);
    offsets.append(found.offsets(), queries.rows() + 1);
    IdFileWriter ids(options.out_ids, size, 1);
    ids.append(found.ids(), size);
    std::optional<VectorFileWriter> distances;
    if (!options.out_distances.empty()) {
      distances.emplace(options.out_distances, DType::f32, size, 1);
      distances->append(MatrixView(found.distances(), size, 1));
    }
    // First everything that can fail: either all files are new or none is.
    offsets.sync();
    ids.sync();
    if (distances) distances->sync();
    offsets.commit();
    ids.commit();
    if (distances) distances->commit();
  });
  Report report;
  report.text = fmt::format("{} queries, {} of {} vectors, radius {}, metric {}\n{} vectors in range: {:.3f} s\nwrote {}\n",
                            queries.rows(), info.factory, info.size, options.params.radius, name_of(info.metric),
                            found.size(), search_seconds, options.out_offsets + ", " + options.out_ids);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.object("index", index_json(info)).object("queries", describe_vectors(queries));
  result.real("radius", options.params.radius).number("found", found.size());
  result.text("out_offsets", options.out_offsets).text("out_ids", options.out_ids);
  if (!options.out_distances.empty()) result.text("out_distances", options.out_distances);
  JsonObject timings;
  timings.real("search_seconds", search_seconds).real("total_seconds", total.seconds());
  report.json.text("command", "index range").object("result", std::move(result));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

}  // namespace kith::cli
