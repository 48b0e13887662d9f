// kith collection create, add, remove, compact and snapshot.
#include <kith/byte_size.hpp>
#include <kith/error.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "collection_commands.hpp"
#include "index_files.hpp"
#include "item_lines.hpp"
#include "rate_text.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

namespace kith::cli {
namespace {

// A piece of this size becomes a segment at once. Smaller ones would stay in SQLite's transaction, and in memory, until
// all are added.
constexpr int64_t kAddBytes = int64_t{64} << 20;

// The rows of a piece: enough for a segment, or all rows; independent of the memory limit.
int64_t rows_of_piece(const VectorFile& vectors, const CollectionParams& params) {
  const int64_t stored = std::max<int64_t>(1, vectors.cols() * size_of(params.dtype));
  return std::max<int64_t>(1, std::min(vectors.rows(), (kAddBytes + stored - 1) / stored));
}

// Checks that the limit has room for a piece as read and as stored, and for the newest rows that the last one leaves.
void require_piece(const VectorFile& vectors, const CollectionParams& params, int64_t piece, const Resources& resources) {
  if (resources.options().host_memory_limit == kNoLimit) return;
  const int64_t read = piece * vectors.cols() * size_of(vectors.dtype());
  const int64_t stored = piece * vectors.cols() * size_of(params.dtype);
  const int64_t last = vectors.rows() % piece * vectors.cols() * size_of(params.dtype);
  const int64_t needed = read + std::max(vectors.dtype() == params.dtype ? 0 : stored, last) + last;
  const int64_t left = resources.host_memory_left();
  if (needed <= left) return;
  const int64_t limit = resources.options().host_memory_limit;
  const int64_t would_do = limit - left + needed;
  const std::string refused =
      fmt::format("not enough memory to add a segment's rows: {} needed, {} left of the host memory limit of {}",
                  format_bytes_up(needed), format_bytes(left), format_bytes(limit));
  throw OutOfMemory(fmt::format("{}; a host memory limit of {} bytes ({}) would do", refused, would_do,
                                format_bytes_up(would_do)),
                    would_do, refused);
}

OpenParams writing(double timeout) {
  if (timeout < 0 || timeout > 1e9) throw InvalidArgument(fmt::format("--timeout {} is no number of seconds", timeout));
  OpenParams params;
  params.timeout = std::chrono::milliseconds(static_cast<int64_t>(1000 * timeout));
  return params;
}

Column parse_column(const std::string& word) {
  const size_t colon = word.rfind(':');
  if (colon == std::string::npos) {
    throw InvalidArgument(fmt::format("--column '{}' has no type; write a name and int, real, text, bool or json, such "
                                      "as year:int",
                                      word));
  }
  return {word.substr(0, colon), parse_column_type(word.substr(colon + 1)), false};
}

template <typename Value>
std::optional<Value> parsed(const std::string& word) {
  Value value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// Parses a parameter: a number, true, false, null, or text; a word in 'quotes' is always text.
ColumnValue parse_value(const std::string& word) {
  if (word == "null") return {};
  if (word == "true" || word == "false") return word == "true";
  if (const auto number = parsed<int64_t>(word)) return *number;
  if (const auto real = parsed<double>(word)) return *real;
  if (word.size() >= 2 && word.front() == '\'' && word.back() == '\'') return word.substr(1, word.size() - 2);
  return word;
}

JsonObject json_of(const CollectionParams& params) {
  JsonObject json;
  json.number("dimension", params.dimension).text("metric", name_of(params.metric)).text("dtype", name_of(params.dtype));
  json.text("ids", params.ids == IdType::text ? "text" : "int").text("factory", params.index);
  return json;
}

}  // namespace

ItemFilter ItemChoice::filter(IdType type) const {
  ItemFilter filter;
  filter.where = where;
  for (const std::string& word : params) filter.params.push_back(parse_value(word));
  if (ids.empty()) return filter;
  if (type == IdType::text) {
    filter.ids = ids;
    return filter;
  }
  std::vector<int64_t> numbers;
  for (const std::string& word : ids) {
    const auto number = parsed<int64_t>(word);
    if (!number) throw InvalidArgument(fmt::format("the id '{}' is no integer, as the ids of this collection are", word));
    numbers.push_back(*number);
  }
  filter.ids = std::move(numbers);
  return filter;
}

Report run_collection_create(const CollectionCreateOptions& options, const RunOptions& run) {
  CollectionParams params = options.params;
  for (const std::string& column : options.columns) params.columns.push_back(parse_column(column));
  with_resources(run, [&](const Resources& resources) {
    Collection::create(options.path, params, {}, resources).close(resources);
  });
  Report report;
  report.text = fmt::format("made {}: vectors of {} values, metric {}, {}\n", options.path, params.dimension,
                            name_of(params.metric), params.index);
  report.json.text("command", "collection create").text("path", options.path).object("result", json_of(params));
  return report;
}

Report run_collection_add(const CollectionAddOptions& options, const RunOptions& run) {
  const Stopwatch watch;
  if (!options.ids.empty() && !options.items.empty()) {
    throw UsageError("--ids and --items both name the items; give ids in one of them");
  }
  const VectorFile vectors(options.vectors);
  int64_t size = 0;
  with_resources(run, [&](const Resources& resources) {
    Collection collection = Collection::open(options.path, writing(options.timeout), resources);
    const CollectionParams params = collection.params();
    const HostArray<int64_t> ids = read_index_ids(options.ids, vectors.rows(), resources);
    std::optional<ItemLinesReader> lines;
    if (!options.items.empty()) lines.emplace(options.items, params);
    const ReadMemory memory = vectors.reserve_memory(resources);
    const int64_t piece = rows_of_piece(vectors, params);
    require_piece(vectors, params, piece, resources);
    MatrixBuffer rows(vectors.dtype(), piece, vectors.cols(), "vectors to add", resources);
    CollectionBatch batch = collection.batch();
    for (int64_t done = 0; done < vectors.rows(); done += piece) {
      resources.check_cancelled();
      const MutableMatrixView part = rows.mutable_view().slice(0, std::min(piece, vectors.rows() - done));
      vectors.read(done, part);
      Items items;
      items.vectors = part;
      if (!options.ids.empty()) items.ids = std::vector<int64_t>(ids.data() + done, ids.data() + done + part.rows());
      if (lines) lines->read(part.rows(), items);
      if (options.upsert) collection.upsert(items, resources);
      else collection.add(items, resources);
      resources.report({"add", done + part.rows(), vectors.rows()});
    }
    if (lines) lines->finish();
    batch.commit(resources);
    size = collection.size();
    collection.close(resources);
  });
  const double seconds = watch.seconds();
  Report report;
  report.text = fmt::format("added {} vectors to {} in {:.3f} s: {} items\n", vectors.rows(), options.path, seconds, size);
  JsonObject timings;
  timings.real("total_seconds", seconds);
  report.json.text("command", "collection add").text("path", options.path).number("added", vectors.rows());
  report.json.number("size", size).object("timings", std::move(timings));
  return report;
}

Report run_collection_remove(const CollectionRemoveOptions& options, const RunOptions& run) {
  if (!options.items.chooses()) throw UsageError("collection remove removes nothing; give --ids or --where");
  int64_t removed = 0;
  int64_t size = 0;
  with_resources(run, [&](const Resources& resources) {
    Collection collection = Collection::open(options.path, writing(options.timeout), resources);
    removed = collection.remove(options.items.filter(collection.params().ids), resources);
    size = collection.size();
    collection.close(resources);
  });
  Report report;
  report.text = fmt::format("removed {} items of {}: {} are left\n", removed, options.path, size);
  report.json.text("command", "collection remove").text("path", options.path).number("removed", removed);
  report.json.number("size", size);
  return report;
}

Report run_collection_compact(const CollectionPathOptions& options, const RunOptions& run) {
  const Stopwatch watch;
  CollectionInfo before, after;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    Collection collection = Collection::open(options.path, writing(options.timeout), resources);
    before = collection.info(resources);
    if (!options.factory.empty() && options.factory != collection.params().index) {
      collection.reindex(options.factory, resources);
    }
    collection.compact(resources);
    after = collection.info(resources);
    collection.close(resources);
  });
  const double seconds = watch.seconds();
  Report report;
  report.text = fmt::format("compacted {} in {:.3f} s: {} items, {} on the disk (before {}), {} in no index\n",
                            options.path, seconds, after.size, format_bytes(after.bytes_on_disk),
                            format_bytes(before.bytes_on_disk), after.not_indexed);
  JsonObject timings;
  timings.real("total_seconds", seconds);
  report.json.text("command", "collection compact").text("path", options.path).number("size", after.size);
  report.json.number("bytes_before", before.bytes_on_disk).number("bytes_on_disk", after.bytes_on_disk);
  report.json.number("not_indexed", after.not_indexed).object("timings", std::move(timings)).texts("log", log);
  return report;
}

Report run_collection_snapshot(const CollectionPathOptions& options, const RunOptions& run) {
  int64_t size = 0;
  with_resources(run, [&](const Resources& resources) {
    const Collection collection = Collection::open(options.path, {.mode = OpenMode::read}, resources);
    size = collection.size();
    collection.snapshot(options.out, resources);
  });
  Report report;
  report.text = fmt::format("wrote {}: {} items of {}\n", options.out, size, options.path);
  report.json.text("command", "collection snapshot").text("path", options.path).text("out", options.out);
  report.json.number("size", size);
  return report;
}

}  // namespace kith::cli
