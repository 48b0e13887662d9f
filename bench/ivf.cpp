// Queries per second of an inverted file on the CPU, by number of probes; bench/ivf_vs_faiss.py runs it beside FAISS.
//
//   kith_bench ivf --base FILE --queries FILE [--train FILE] [--lists N] [--code Flat|SQ8|PQm|PQmx4] [--k N]
//                  [--probes 1,8,32] [--threads N] [--batch N] [--repeat N] [--metric NAME] [--residual 0|1]
//                  [--centres FILE --values FILE] [--ids FILE] [--keep FILE] [--count N]
//
// --centres and --values put in centres and the code's values that were trained elsewhere; --batch searches so many
// queries at a time. --ids writes the neighbours found as i32, a matrix for each number of probes, one after the other.
// --keep keeps the lists in a file between runs. Rates are of wall time and of processor time, which other work on the
// machine disturbs less.
#include <kith/kith.hpp>

#include "ivf/search/ivf_search.hpp"
#include "driver/benchmark.hpp"
#include "driver/timing.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace kith;

MatrixBuffer as_floats(const MatrixBuffer& rows) {
  MatrixBuffer floats(DType::f32, rows.rows(), rows.cols(), "rows", Resources());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    widen_row(rows.view(), i, reinterpret_cast<float*>(floats.mutable_view().row(i)));
  }
  return floats;
}

// An array as a file holds it: its length, then its values.
template <typename T>
void write_array(std::FILE* file, const T* values, int64_t count) {
  std::fwrite(&count, sizeof count, 1, file);
  std::fwrite(values, sizeof(T), static_cast<size_t>(count), file);
}
template <typename T>
HostArray<T> read_array(std::FILE* file) {
  int64_t count = 0;
  if (std::fread(&count, sizeof count, 1, file) != 1) throw InvalidArgument("the kept lists are cut");
  HostArray<T> values(count, "kept lists", Resources());
  if (std::fread(values.data(), sizeof(T), static_cast<size_t>(count), file) != static_cast<size_t>(count)) {
    throw InvalidArgument("the kept lists are cut");
  }
  return values;
}

Segment kept_or_built(const std::string& path, const IvfModel& model, const std::string& base,
                      const Resources& resources) {
  if (std::FILE* const file = path.empty() ? nullptr : std::fopen(path.c_str(), "rb")) {
    auto offsets = read_array<int64_t>(file);
    auto codes = read_array<uint8_t>(file);
    auto rows = read_array<uint32_t>(file);
    std::fclose(file);
    return std::make_shared<ListSegment>(std::move(offsets), std::move(codes), std::move(rows),
                                         model.codec->format().bytes(), resources);
  }
  const Segment segment = build_segment(model, read_vectors(base).view(), 0, resources);
  if (std::FILE* const file = path.empty() ? nullptr : std::fopen(path.c_str(), "wb")) {
    write_array(file, segment->offsets(), segment->lists() + 1);
    write_array(file, segment->codes(), segment->size() * segment->code_bytes());
    write_array(file, segment->rows(), segment->size());
    std::fclose(file);
  }
  return segment;
}

CodeRecipe parse_code(const std::string& name) {
  if (name == "Flat") return {kStoredCode, DType::f32, 8, 0};
  if (name == "Flat16") return {kStoredCode, DType::f16, 8, 0};
  if (name.rfind("SQ", 0) == 0) return {kScalarCode, DType::f32, std::atoi(name.c_str() + 2), 0};
  const size_t x = name.find('x');
  const int bits = x == std::string::npos ? 8 : std::atoi(name.c_str() + x + 1);
  return {kProductCode, DType::f32, bits, std::atoll(name.c_str() + 2)};
}

std::shared_ptr<const IvfModel> make_model(const bench::Options& given, const MatrixView& rows, int64_t cols,
                                           const Resources& resources) {
  const CodeRecipe code = parse_code(given.text("--code", "PQ16"));
  const Metric metric = parse_metric(given.text("--metric", "sqeuclidean"));
  const bool residual = given.number("--residual", 1) != 0 && code.code != kStoredCode;
  if (given.text("--values").empty() && given.text("--centres").empty()) {
    IvfSpec spec;
    spec.lists = given.number("--lists", 1024);
    spec.code = code;
    spec.residual = residual;
    ViewSource source(rows);
    return train_ivf(spec, metric, source, 1, resources);
  }
  auto model = std::make_shared<IvfModel>();
  model->metric = metric;
  if (!given.text("--centres").empty()) {
    model->centres = read_vectors(given.text("--centres"));
    model->residual = residual;
  }
  std::vector<float> values;
  if (!given.text("--values").empty()) {
    const MatrixBuffer read = read_vectors(given.text("--values"));
    const auto* const first = static_cast<const float*>(read.view().data());
    values.assign(first, first + read.rows() * read.cols());
  }
  model->codec = Codec::from_parts(code, cols, std::move(values));
  model->validate();
  return model;
}

void run(const bench::Options& given, bench::Report& report) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = static_cast<int>(given.number("--threads", 1));
  const Resources resources(options);
  const MatrixBuffer queries = as_floats(read_vectors(given.text("--queries")));
  const bool trained = !given.text("--values").empty() || !given.text("--centres").empty();
  const MatrixBuffer training = trained ? MatrixBuffer() : read_vectors(given.text("--train", given.text("--base")));
  const bench::Watch training_time;
  const auto model = make_model(given, training.view(), queries.cols(), resources);
  report.row({.name = "train", .ms = 1e3 * training_time.seconds().wall, .clock = "wall"});
  const bench::Watch adding_time;
  const std::vector<Segment> segments = {kept_or_built(given.text("--keep"), *model, given.text("--base"), resources)};
  report.row({.name = "add", .ms = 1e3 * adding_time.seconds().wall, .clock = "wall"});

  const int64_t k = given.number("--k", 100);
  const int64_t count = std::min(queries.rows(), given.number("--count", queries.rows()));
  const int64_t batch = std::min(count, given.number("--batch", count));
  Neighbors found(count, k, resources);
  const NeighborsView to = found.view();
  std::FILE* const ids = given.text("--ids").empty() ? nullptr : std::fopen(given.text("--ids").c_str(), "wb");
  std::stringstream probes(given.text("--probes", "1,8,32,128"));
  for (std::string one; std::getline(probes, one, ',');) {
    const bench::Seconds best = bench::best_seconds(given.number("--repeat", 3), [&] {
      for (int64_t first = 0; first < count; first += batch) {
        search_ivf(*model, segments, queries.view().slice(first, std::min(batch, count - first)),
                   {k, std::atoll(one.c_str())},
                   {to.ids + first * k, to.distances + first * k, std::min(batch, count - first), k, {}}, resources);
      }
    });
    report.row({.name = "probes " + one,
                .shape = std::to_string(count) + " queries, k = " + std::to_string(k),
                .ms = 1e3 * best.wall,
                .clock = "wall",
                .figures = {{"queries/s", static_cast<double>(count) / best.wall},
                            {"queries/s of processors", static_cast<double>(count) / best.processor}}});
    if (ids == nullptr) continue;
    for (int64_t i = 0; i < count * k; ++i) {
      const auto row = static_cast<int32_t>(to.ids[i]);
      std::fwrite(&row, sizeof row, 1, ids);
    }
  }
  if (ids != nullptr) std::fclose(ids);
}

const bench::Registered known({
    .name = "ivf",
    .about = "queries a second of an inverted file on the CPU, by number of probes",
    .options = {"--base", "--queries", "--train", "--lists", "--code", "--k", "--probes", "--threads", "--batch",
                "--repeat", "--metric", "--residual", "--centres", "--values", "--ids", "--count", "--keep"},
    .run = run,
});

}  // namespace
