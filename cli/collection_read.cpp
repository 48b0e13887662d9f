// kith collection search, info, verify and export, which only read, even while another program writes.
#include <kith/byte_size.hpp>
#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "collection_commands.hpp"
#include "file_report.hpp"
#include "item_lines.hpp"
#include "output_paths.hpp"
#include "rate_text.hpp"
#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace kith::cli {
namespace {

// Approximate bytes of vectors that an export fetches at a time.
constexpr int64_t kExportBytes = int64_t{16} << 20;
// The most queries whose results are printed if there is no output file.
constexpr int64_t kPrintedQueries = 100;

Collection open_to_read(const std::string& path, const Resources& resources) {
  return Collection::open(path, {.mode = OpenMode::read}, resources);
}

JsonObject segment_json(const CollectionSegment& segment) {
  JsonObject json;
  json.text("file", segment.file).number("rows", segment.rows).number("removed", segment.removed);
  json.number("bytes", segment.bytes).text("index", segment.index).text("index_file", segment.index_file);
  return json;
}

ItemIds slice_of(const ItemIds& ids, int64_t first, int64_t count) {
  const auto cut = [&](const auto& all) {
    return std::decay_t<decltype(all)>(all.begin() + first, all.begin() + first + count);
  };
  if (ids.type() == IdType::text) return cut(ids.texts());
  return cut(ids.numbers());
}

}  // namespace

Report run_collection_search(const CollectionSearchOptions& options, const RunOptions& run) {
  const Stopwatch total;
  KnnParams{.k = options.params.k}.validate();
  std::vector<NamedPath> outputs;
  if (!options.out.ids.empty() || !options.out.distances.empty()) outputs = options.out.outputs("collection search");
  if (!options.lines.empty()) outputs.push_back({"--out", options.lines});
  check_outputs(outputs, {{"--queries", options.queries}});
  const VectorFile queries(options.queries);
  const bool prints = outputs.empty();
  if (prints && queries.rows() > kPrintedQueries) {
    throw UsageError(fmt::format("the results of {} queries have no output; give --out, --out-ids or --out-distances",
                                 queries.rows()));
  }
  std::optional<NeighborFiles> results;
  if (!options.out.ids.empty() || !options.out.distances.empty()) {
    results.emplace(options.out, queries.rows(), options.params.k);
  }
  std::optional<LinesWriter> lines;
  if (!options.lines.empty()) lines.emplace(options.lines);
  std::string printed;
  std::vector<JsonObject> found_json;
  int64_t size = 0;
  double seconds = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    const Collection collection = open_to_read(options.path, resources);
    const CollectionView view = collection.view();
    size = view.size();
    if (view.params().ids == IdType::text && !options.out.ids.empty()) {
      throw UsageError("the ids of this collection are text, which --out-ids cannot hold; give --out, for JSON lines");
    }
    const CollectionSearchParams params{options.params, options.items.filter(view.params().ids)};
    const ReadMemory memory = queries.reserve_memory(resources);
    const int64_t row_bytes = 4 * (queries.cols() * size_of(queries.dtype()) + options.params.k * 12);
    const int64_t piece = rows_per_piece(queries.rows(), row_bytes, resources);
    MatrixBuffer rows(queries.dtype(), piece, queries.cols(), "a piece of the queries", resources);
    for (int64_t done = 0; done < queries.rows(); done += piece) {
      resources.check_cancelled();
      const MutableMatrixView part = rows.mutable_view().slice(0, std::min(piece, queries.rows() - done));
      queries.read(done, part);
      const Stopwatch watch;
      CollectionNeighbors found = view.search(part, params, resources);
      seconds += watch.seconds();
      if (results) results->append(found.neighbors.view());
      if (lines) lines->append(found);
      for (int64_t query = 0; prints && query < part.rows(); ++query) {
        JsonObject one;
        std::vector<double> distances;
        std::vector<int64_t> ids;
        std::vector<std::string> texts;
        const Neighbors& all = found.neighbors;
        for (int64_t i = 0; i < all.k() && all.ids(query)[i] >= 0; ++i) {
          ids.push_back(all.ids(query)[i]);
          distances.push_back(all.distances(query)[i]);
          if (!found.texts.empty()) texts.push_back(found.texts[static_cast<size_t>(query * all.k() + i)]);
        }
        if (found.texts.empty()) one.numbers("ids", ids);
        else one.texts("ids", texts);
        found_json.push_back(std::move(one.reals("distances", distances)));
      }
      if (prints) printed += neighbors_text(found);
      resources.report({"queries", done + part.rows(), queries.rows()});
    }
    if (results) results->commit();
    if (lines) lines->commit();
  });
  Report report;
  report.text = printed;
  if (!prints) {
    std::string written;
    for (const NamedPath& output : outputs) written += (written.empty() ? "" : ", ") + output.path;
    report.text = fmt::format("{} queries, {} items, k = {}: {:.3f} s\nwrote {}\n", queries.rows(), size,
                              options.params.k, seconds, written);
  }
  JsonObject result;
  result.number("size", size).object("queries", describe_vectors(queries)).number("k", options.params.k);
  if (!options.items.where.empty()) result.text("where", options.items.where);
  if (prints) result.list("found", std::move(found_json));
  for (const NamedPath& output : outputs) result.text(output.name.substr(2), output.path);
  JsonObject timings;
  timings.real("search_seconds", seconds).real("total_seconds", total.seconds());
  report.json.text("command", "collection search").text("path", options.path).object("result", std::move(result));
  report.json.object("timings", std::move(timings)).texts("log", log);
  return report;
}

Report run_collection_info(const CollectionPathOptions& options, const RunOptions& run) {
  CollectionInfo info;
  with_resources(run, [&](const Resources& resources) { info = open_to_read(options.path, resources).info(resources); });
  const CollectionParams& params = info.params;
  Report report;
  report.text = fmt::format("{}, {}, version {}\n", options.path, format_bytes(info.bytes_on_disk), info.version);
  report.text += fmt::format("{} items of {} x {}, metric {}, {} ids, index {}\n", info.size, params.dimension,
                             name_of(params.dtype), name_of(params.metric),
                             params.ids == IdType::text ? "text" : "int", params.index);
  std::vector<JsonObject> columns;
  for (const Column& column : params.columns) {
    report.text += fmt::format("column {}: {}{}\n", column.name, name_of(column.type), column.indexed ? ", indexed" : "");
    JsonObject one;
    one.text("name", column.name).text("type", name_of(column.type)).flag("indexed", column.indexed);
    columns.push_back(std::move(one));
  }
  report.text += fmt::format("{} newest rows in SQLite, {} removed rows on the disk, {} items in no index\n", info.newest,
                             info.removed, info.not_indexed);
  std::vector<JsonObject> segments;
  for (const CollectionSegment& segment : info.segments) {
    report.text += fmt::format("{}: {} rows, {} removed, {}, {}\n", segment.file, segment.rows, segment.removed,
                               format_bytes(segment.bytes), segment.index.empty() ? "no index" : segment.index);
    segments.push_back(segment_json(segment));
  }
  JsonObject result;
  result.number("version", info.version).number("size", info.size).number("dimension", params.dimension);
  result.text("metric", name_of(params.metric)).text("dtype", name_of(params.dtype));
  result.text("ids", params.ids == IdType::text ? "text" : "int").text("factory", params.index);
  result.list("columns", std::move(columns)).number("newest", info.newest).number("removed", info.removed);
  result.number("not_indexed", info.not_indexed).number("bytes_on_disk", info.bytes_on_disk);
  result.list("segments", std::move(segments));
  report.json.text("command", "collection info").text("path", options.path).object("result", std::move(result));
  return report;
}

Report run_collection_verify(const CollectionPathOptions& options, const RunOptions& run) {
  VerifyReport found;
  with_resources(run, [&](const Resources& resources) { found = open_to_read(options.path, resources).verify(resources); });
  Report report;
  report.text = fmt::format("{}: {} items, {} files, {} read: {}\n", options.path, found.items, found.files,
                            format_bytes(found.bytes), found.sound() ? "sound" : "damaged");
  std::vector<JsonObject> problems;
  for (const VerifyProblem& problem : found.problems) {
    JsonObject one;
    one.text("file", problem.file).text("reason", problem.reason);
    problems.push_back(std::move(one));
    report.failures.push_back(std::make_exception_ptr(
        CorruptFile(fmt::format("{}: {}", problem.file, problem.reason), problem.file, 0)));
  }
  report.json.text("command", "collection verify").text("path", options.path).flag("sound", found.sound());
  report.json.number("items", found.items).number("files", found.files).number("bytes", found.bytes);
  report.json.list("problems", std::move(problems));
  return report;
}

Report run_collection_export(const CollectionExportOptions& options, const RunOptions& run) {
  std::vector<NamedPath> outputs;
  if (!options.vectors.empty()) outputs.push_back({"--out-vectors", options.vectors});
  if (!options.lines.empty()) outputs.push_back({"--out-items", options.lines});
  if (outputs.empty()) throw UsageError("collection export has no output; give --out-vectors, --out-items or both");
  check_outputs(outputs, {});
  int64_t count = 0;
  with_resources(run, [&](const Resources& resources) {
    const Collection collection = open_to_read(options.path, resources);
    const CollectionView view = collection.view();
    const CollectionParams& params = view.params();
    const ItemIds ids = view.ids(options.items.filter(params.ids), resources);
    count = ids.size();
    std::optional<VectorFileWriter> vectors;
    if (!options.vectors.empty()) vectors.emplace(options.vectors, params.dtype, count, params.dimension);
    std::optional<LinesWriter> lines;
    if (!options.lines.empty()) lines.emplace(options.lines);
    const int64_t piece = std::max<int64_t>(1, kExportBytes / std::max<int64_t>(1, params.dimension * 4));
    for (int64_t done = 0; done < count; done += piece) {
      resources.check_cancelled();
      const ItemTable items = view.get(slice_of(ids, done, std::min(piece, count - done)), resources);
      if (vectors) vectors->append(items.vectors.view());
      if (lines) lines->append(items, params);
      resources.report({"export", std::min(done + piece, count), count});
    }
    if (vectors) vectors->sync();
    if (lines) lines->commit();
    if (vectors) vectors->commit();
  });
  std::string written;
  for (const NamedPath& output : outputs) written += (written.empty() ? "" : ", ") + output.path;
  Report report;
  report.text = fmt::format("wrote {}: {} items of {}\n", written, count, options.path);
  report.json.text("command", "collection export").text("path", options.path).number("items", count);
  for (const NamedPath& output : outputs) report.json.text(output.name.substr(2), output.path);
  return report;
}

}  // namespace kith::cli
