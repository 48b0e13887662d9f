#include "graph/handle/graph_folder.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/start_beside.hpp"
#include "graph/handle/graph_access.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_files.hpp"
#include "io/atomic_file_writer.hpp"
#include "io/disk.hpp"
#include "io/file_error.hpp"
#include "io/work_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

namespace kith {
namespace {

constexpr int kFolderVersion = 1;
constexpr std::string_view kVersionKey = "kith_graph";
constexpr std::string_view kDistancesHashKey = "distances_xxh3";
constexpr std::string_view kIdsOnlyKey = "ids_only";  // these two where they are not the usual
constexpr std::string_view kIdsTypeKey = "ids_dtype";

std::string ids_in(const std::string& folder) { return folder + "/ids.npy"; }
std::string distances_in(const std::string& folder) { return folder + "/distances.npy"; }
std::string report_in(const std::string& folder) { return folder + "/report.json"; }

// What a killed process left where it was about to keep steps, or had just ended with them.
void remove_remains_of_steps(const std::string& folder) {
  const std::string steps = own_steps_folder(folder);
  for (const std::string& path : {steps, ending_steps_folder(steps)}) {
    WorkFolder::remove_remains(real_disk(), path);
    std::error_code ignored;  // it holds work, or is not there
    std::filesystem::remove(path, ignored);
  }
}

std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

// One line for each key, so that what is read back is found by its line. Times and memory are left out: the same graph
// has the same report.
class ReportText {
 public:
  void add(std::string_view key, std::string_view json) {
    text_ += fmt::format("{}\n  {}: {}", text_.empty() ? "{" : ",", json_text(key), json);
  }
  std::string take() const { return text_ + "\n}\n"; }

 private:
  std::string text_;
};

std::string json_of(const GraphParameter& parameter) {
  if (const auto* flag = std::get_if<bool>(&parameter.value)) return *flag ? "true" : "false";
  if (const auto* count = std::get_if<int64_t>(&parameter.value)) return std::to_string(*count);
  if (const auto* real = std::get_if<double>(&parameter.value)) return number(*real);
  return json_text(std::get<std::string>(parameter.value));
}

std::string report_text(const GraphFolderInfo& info, const GraphReport& report) {
  ReportText text;
  text.add(kVersionKey, std::to_string(kFolderVersion));
  text.add("metric", json_text(name_of(info.metric)));
  text.add("rows", std::to_string(info.rows));
  text.add("k", std::to_string(info.k));
  text.add("ids_xxh3", json_text(fmt::format("{:016x}", info.hashes.ids)));
  if (info.form.ids_only) {
    text.add(kIdsOnlyKey, "true");
  } else {
    text.add(kDistancesHashKey, json_text(fmt::format("{:016x}", info.hashes.distances)));
  }
  if (info.form.int32_ids) text.add(kIdsTypeKey, json_text("int32"));
  text.add("method", json_text(report.method));
  std::string parameters;
  for (const GraphParameter& parameter : report.parameters) {
    parameters +=
        fmt::format("{}{}: {}", parameters.empty() ? "" : ", ", json_text(parameter.name), json_of(parameter));
  }
  text.add("parameters", "{" + parameters + "}");
  if (report.recall) {
    text.add("recall", number(report.recall->recall));
    text.add("standard_error", number(report.recall->standard_error));
    text.add("rows_looked_at", std::to_string(report.recall->rows));
  }
  text.add("reached", report.reached ? "true" : "false");
  return text.take();
}

// The values of a report that Kith wrote.
class WrittenReport {
 public:
  WrittenReport(std::string text, std::string path) : text_(std::move(text)), path_(std::move(path)) {}

  bool has(std::string_view key) const {
    return text_.find(fmt::format("\n  {}: ", json_text(key))) != std::string::npos;
  }
  std::string_view value(std::string_view key) const {
    const std::string mark = fmt::format("\n  {}: ", json_text(key));
    const size_t at = text_.find(mark);
    if (at == std::string::npos) throw_corrupt(path_, 0, fmt::format("there is no line for {}", json_text(key)));
    const size_t begin = at + mark.size();
    std::string_view found = std::string_view(text_).substr(begin, text_.find('\n', begin) - begin);
    if (found.ends_with(',')) found.remove_suffix(1);
    if (found.size() >= 2 && found.front() == '"' && found.back() == '"') found = found.substr(1, found.size() - 2);
    return found;
  }

  template <typename Integer>
  Integer integer(std::string_view key, int base = 10) const {
    const std::string_view text = value(key);
    Integer read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read, base);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw_corrupt(path_, 0, fmt::format("{} is '{}', which is no number", json_text(key), printable(text)));
    }
    return read;
  }

 private:
  std::string text_;
  std::string path_;
};

template <typename T>
uint64_t hash_of(const T* values, int64_t count, ProgressMeter& meter) {
  constexpr int64_t kPiece = int64_t{1} << 20;  // values
  Xxh3 hash;
  for (int64_t first = 0; first < count; first += kPiece) {
    const int64_t some = std::min(kPiece, count - first);
    hash.update(std::as_bytes(std::span(values + first, static_cast<size_t>(some))));
    meter.add(some);
    meter.poll();
  }
  return hash.digest();
}

}  // namespace

GraphHashes hash_graph(const KnnGraph& graph, const Resources& resources) {
  const KnnGraph here = graph.to(MemorySpace::host(), resources);
  const int64_t count = here.rows() * here.k();
  ProgressMeter meter("hash", 2 * count, resources);
  const GraphHashes hashes{hash_of(here.ids(), count, meter), hash_of(here.distances(), count, meter)};
  meter.finish();
  return hashes;
}

namespace {

const std::string& made_folder(const std::string& folder) {
  real_disk().make_folder(folder);
  remove_left_behind(folder);
  return folder;
}

}  // namespace

GraphFolderWriter::GraphFolderWriter(const std::string& folder, int64_t rows, int64_t k, const GraphFolderForm& form)
    : folder_(made_folder(folder)), rows_(rows), k_(k), form_(form), 
      ids_(ids_in(folder), form.int32_ids ? ElementType::i32 : ElementType::i64, rows, k) {
  if (!form.ids_only) distances_.emplace(distances_in(folder), DType::f32, rows, k);
}

void GraphFolderWriter::append(const NeighborsView& part) {
  constexpr size_t kThreadValues = size_t{1} << 16;  // that are worth a thread
  const auto count = static_cast<size_t>(part.queries * part.k);
  const auto hash_ids = [&] { id_hash_.update(std::as_bytes(std::span(part.ids, count))); };
  const auto put_distances = [&] {
    if (!distances_) return;
    distance_hash_.update(std::as_bytes(std::span(part.distances, count)));
    distances_->append(MatrixView(part.distances, part.queries, part.k));
  };
  if (count < kThreadValues) {
    hash_ids();
    put_distances();
    return write_ids(part);
  }
  std::future<void> hashed = start_beside(hash_ids);
  std::future<void> put = start_beside(put_distances);
  write_ids(part);
  hashed.get();
  put.get();
}

void GraphFolderWriter::write_ids(const NeighborsView& part) {
  const int64_t count = part.queries * part.k;
  ids_.check_room(part.queries);
  if (!form_.int32_ids) return ids_.write(part.ids, array_bytes<int64_t>(count));
  // Rows have 31 bits.
  ids_.write_made(array_bytes<int32_t>(count), [&](int64_t offset, int64_t bytes, std::byte* out) {
    const int64_t* const from = part.ids + offset / int64_t{sizeof(int32_t)};
    std::transform(from, from + bytes / int64_t{sizeof(int32_t)}, reinterpret_cast<int32_t*>(out),
                   [](int64_t id) { return static_cast<int32_t>(id); });
  });
}

void GraphFolderWriter::finish(Metric metric, const GraphReport& report) {
  const GraphHashes hashes{id_hash_.digest(), distances_ ? distance_hash_.digest() : 0};
  const std::string text = report_text({metric, rows_, k_, hashes, form_}, report);
  // First everything that can fail, a full disk for instance.
  ids_.sync();
  if (distances_) distances_->sync();
  // Between the arrays that were there and the new ones the folder has no report, and so holds no graph.
  real_disk().remove(report_in(folder_));
  real_disk().sync_folder(folder_);
  ids_.commit();
  if (distances_) {
    distances_->commit();
  } else {
    real_disk().remove(distances_in(folder_));  // of another graph
  }
  AtomicFileWriter written(report_in(folder_));
  written.write(text.data(), static_cast<int64_t>(text.size()));
  written.commit();
}

void save_graph_folder(const KnnGraph& graph, const std::string& folder, const Resources& resources) {
  save_graph_folder(graph, folder, GraphFolderForm(), resources);
}

void save_graph_folder(const KnnGraph& graph, const std::string& folder, const GraphFolderForm& form,
                       const Resources& resources) {
  const KnnGraph here = graph.to(MemorySpace::host(), resources);
  check_graph(here, resources);  // what is written can be loaded again
  GraphFolderWriter writer(folder, here.rows(), here.k(), form);
  constexpr int64_t kWrittenAtOnce = int64_t{4} << 20;
  const int64_t piece = std::max<int64_t>(kWrittenAtOnce / std::max<int64_t>(here.k() * 12, 1), 1);
  const NeighborsView all = GraphAccess::view(here);
  ProgressMeter meter("write", here.rows(), resources);
  for (int64_t first = 0; first < here.rows(); first += piece) {
    const int64_t count = std::min(piece, here.rows() - first);
    writer.append({all.ids + first * all.k, all.distances + first * all.k, count, all.k, {}});
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  writer.finish(graph.metric(), graph.report());
  remove_remains_of_steps(folder);
}

void remove_graph_folder(const std::string& folder) {
  remove_remains_of_steps(folder);
  std::error_code ignored;  // leaving it is harmless
  // The report first: without it the folder holds no graph.
  for (const std::string& path : {report_in(folder), ids_in(folder), distances_in(folder), folder}) {
    std::filesystem::remove(path, ignored);
  }
}

bool holds_graph(const std::string& folder) { return real_disk().exists(report_in(folder)); }

GraphFolderInfo graph_folder_info(const std::string& folder) {
  constexpr int64_t kMostBytes = 1 << 20;
  const std::string path = report_in(folder);
  Disk& disk = real_disk();
  if (!holds_graph(folder)) {
    throw InvalidArgument(fmt::format(
        "'{}' holds no report.json, and so no whole graph; give a folder that kith graph build --out has made",
        folder));
  }
  const std::unique_ptr<DiskFile> file = disk.open(path);
  if (file->size() > kMostBytes) throw_corrupt(path, kMostBytes, "a report of a graph is shorter");
  std::string text(static_cast<size_t>(file->size()), '\0');
  file->read(0, text.data(), file->size());
  const WrittenReport report(std::move(text), path);
  const int version = report.integer<int>(kVersionKey);
  if (version > kFolderVersion) {
    throw Unsupported(
        fmt::format("'{}' is of version {}, and this Kith knows up to {}", path, version, kFolderVersion));
  }
  GraphFolderInfo info;
  try {
    info.metric = parse_metric(report.value("metric"));
  } catch (const InvalidArgument& error) {
    throw_corrupt(path, 0, error.what());
  }
  info.rows = report.integer<int64_t>("rows");
  info.k = report.integer<int64_t>("k");
  info.form = {report.has(kIdsOnlyKey), report.has(kIdsTypeKey)};
  info.hashes.ids = report.integer<uint64_t>("ids_xxh3", 16);
  if (!info.form.ids_only) info.hashes.distances = report.integer<uint64_t>(kDistancesHashKey, 16);
  return info;
}

KnnGraph load_graph_folder(const std::string& folder, const Resources& resources) {
  const GraphFolderInfo info = graph_folder_info(folder);
  if (info.form.ids_only) {
    throw InvalidArgument(fmt::format("'{}' holds a graph's ids alone, without distances; read '{}' as ids", folder,
                                      ids_in(folder)));
  }
  const KnnGraph graph =
      load_graph_files(ids_in(folder), distances_in(folder), info.metric, GraphMapping::always, resources);
  if (graph.rows() != info.rows || graph.k() != info.k) {
    throw_corrupt(report_in(folder), 0,
                  fmt::format("the report is of {} x {} neighbours, and the arrays have {} x {}", info.rows, info.k,
                              graph.rows(), graph.k()));
  }
  return graph;
}

}  // namespace kith
