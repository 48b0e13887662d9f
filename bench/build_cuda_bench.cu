// How fast a compressed index is built from rows in a GPU's memory, and how it answers then: the mixture of
// mixture.hpp, made on the device batch by batch, so that a billion rows need no place to lie.
//
//   build_cuda_bench [--factory S] [--rows N] [--cols N] [--train N] [--batch N] [--queries N] [--probes N] [--k N]
//                    [--truth N] [--graph N] [--graph-probes N,N...] [--apart 0|1] [--starts N] [--out FILE]
//
// --truth: so many queries are searched exactly too, among all rows, made again, and recall is told.
// --graph: so many of the rows are searched for their neighbours, as the k-NN graph of all would be made, with each of
// --graph-probes; with --truth, recall@10 of so many of them is told.
// --apart: the steps of coding a batch, by themselves.
// --starts: so many centres are trained from a k-means++ and from a random start, and what comes of it is told.
// Without --factory the table of builds: 4,096 lists of PQ8 and PQ32 from 10M x 128. Times are wall clock, of calls
// that return when all is done; the making of rows is not counted.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "mixture_rows_cuda.hpp"

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_context.hpp"
#include "ivf/model/gpu_model_cuda.hpp"
#include "ivf/segment/code_rows_cuda.hpp"
#include "ivf/segment/coding_steps_cuda.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

namespace {

using namespace kith;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kBaseSeed = 1;
constexpr uint64_t kQuerySeed = 2;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Settings {
  std::string factory;
  int64_t rows = 10'000'000;
  int64_t cols = 128;
  int64_t train = 1'000'000;
  int64_t batch = 10'000'000;
  int64_t queries = 10'000;
  int64_t probes = 16;
  int64_t k = 100;
  int64_t truth = 0;
  int64_t graph = 0;
  std::vector<int64_t> graph_probes;
  bool apart = false;
  int64_t starts = 0;
};

Settings parse(const bench::Options& options) {
  Settings s;
  s.factory = options.text("--factory");
  s.rows = options.number("--rows", s.rows);
  s.cols = options.number("--cols", s.cols);
  s.train = options.number("--train", std::min(s.train, s.rows));
  s.batch = std::min(options.number("--batch", s.batch), s.rows);
  s.queries = options.number("--queries", s.queries);
  s.probes = options.number("--probes", s.probes);
  s.k = options.number("--k", s.k);
  s.truth = options.number("--truth", s.truth);
  s.graph = options.number("--graph", s.graph);
  s.graph_probes = options.numbers("--graph-probes", {s.probes});
  s.apart = options.number("--apart", 0) != 0;
  s.starts = options.number("--starts", s.starts);
  return s;
}

std::string shape_of(const Settings& s) { return std::to_string(s.rows) + " x " + std::to_string(s.cols); }

MatrixView on_device(const DeviceBytes& memory, int64_t rows, int64_t cols) {
  return {memory.as<float>(), DType::f32, {rows, cols, cols}, MemorySpace::cuda(0)};
}

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

int64_t device_in_use() {
  size_t free = 0;
  size_t total = 0;
  check(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total - free);
}

// How long each stage of a call took, by when the stages before it and it itself reported last.
class Stages {
 public:
  ProgressSink sink() {
    begin_ = Clock::now();
    return [this](const Progress& progress) {
      if (ends_.empty() || ends_.back().first != progress.stage)
        ends_.emplace_back(std::string(progress.stage), begin_);
      ends_.back().second = Clock::now();
    };
  }
  void add_to(bench::Row& row) const {
    Clock::time_point before = begin_;
    for (const auto& [name, end] : ends_) {
      row.figures.emplace_back(name + "_s", std::chrono::duration<double>(end - before).count());
      before = end;
    }
  }

 private:
  Clock::time_point begin_;
  std::vector<std::pair<std::string, Clock::time_point>> ends_;
};

// What was found of some queries, on the device.
struct Found {
  Found(int64_t queries, int64_t k)
      : ids(static_cast<size_t>(queries * k) * sizeof(int64_t)),
        distances(static_cast<size_t>(queries * k) * sizeof(float)),
        view{ids.as<int64_t>(), distances.as<float>(), queries, k, MemorySpace::cuda(0)} {}
  std::vector<int64_t> on_host() const {
    std::vector<int64_t> numbers(static_cast<size_t>(view.queries * view.k));
    check(cudaMemcpy(numbers.data(), view.ids, numbers.size() * sizeof(int64_t), cudaMemcpyDeviceToHost));
    return numbers;
  }
  DeviceBytes ids;
  DeviceBytes distances;
  NeighborsView view;
};

// The steps of coding so many rows, with lists and a code of that shape: which values they have matters little.
void take_apart(bench::Report& report, const mixture::OnDevice& data, int64_t rows, int64_t cols, int64_t lists,
                const CodeRecipe& code, const Resources& resources) {
  const DeviceBytes memory(static_cast<size_t>(rows * cols) * sizeof(float));
  data.fill(kBaseSeed, 0, rows, memory.as<float>());
  const MatrixView view = on_device(memory, rows, cols);
  IvfModel model;
  model.metric = Metric::sqeuclidean;
  model.centres = MatrixBuffer(DType::f32, lists, cols, "centres", resources);
  check(cudaMemcpy(model.centres.mutable_view().data(), view.data(), static_cast<size_t>(lists * cols) * sizeof(float),
                   cudaMemcpyDeviceToHost));
  model.residual = true;
  const int64_t sampled = std::min<int64_t>(rows, 65536);
  model.codec = Codec::train(code, view.slice(rows - sampled, sampled), 0, resources);
  const auto context = std::make_shared<const DeviceContext>(0);
  const Resources streamed = resources.with_device(Device::cuda(0)).with_stream(context->stream());
  const auto there = gpu_model(0, model, streamed);
  const DeviceBytes labels(static_cast<size_t>(rows) * 4);
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("assign", rows, quiet);
  double assign = 1e9;
  {
    ListLabels search(model, *there, rows, DType::f32, context, streamed);
    for (int run = 0; run < 2; ++run) {
      const auto start = Clock::now();
      search.find(view, labels.as<int32_t>(), meter);
      context->synchronize();
      assign = std::min(assign, since(start));
    }
  }
  const DeviceBytes codes(static_cast<size_t>(rows * model.codec->format().bytes()));
  const MutableMatrixView out(codes.as<uint8_t>(), DType::u8,
                              {rows, model.codec->format().bytes(), model.codec->format().bytes()},
                              MemorySpace::cuda(0));
  double encode = 1e9;
  double whole = 1e9;
  for (int run = 0; run < 2; ++run) {
    auto start = Clock::now();
    model.codec->encode(view, out, streamed);
    encode = std::min(encode, since(start));
    start = Clock::now();
    const Segment segment = code_rows_cuda(0, model, view, 0, resources);
    whole = std::min(whole, since(start));
  }
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(lists) * static_cast<double>(cols);
  const std::string shape = std::to_string(rows) + " x " + std::to_string(cols);
  report.row(
      {.name = "coding a batch, " + shape + " to " + std::to_string(lists) + " lists",
       .shape = shape,
       .ms = 1e3 * whole,
       .runs = 2,
       .clock = "wall",
       .figures = {
           {"assign_ms", 1e3 * assign}, {"assign_tflops", flops / assign * 1e-12}, {"encode_ms", 1e3 * encode}}});
}

// Centres of so many lists from either start: time, imbalance, and how far rows that were not trained on are from
// theirs.
void compare_starts(bench::Report& report, const Settings& s, const Resources& resources) {
  const mixture::OnDevice data(s.cols);
  const DeviceBytes memory(static_cast<size_t>(s.train * s.cols) * sizeof(float));
  const MatrixView view = on_device(memory, s.train, s.cols);
  for (const KMeansInit init : {KMeansInit::random, KMeansInit::kmeans_plus_plus}) {
    data.fill(kBaseSeed, 0, s.train, memory.as<float>());
    IvfSpec spec;
    spec.lists = s.starts;
    spec.init = init;
    Stages stages;
    ViewSource source(view);
    const auto start = Clock::now();
    const auto model = train_ivf(spec, Metric::sqeuclidean, source, 0, resources.with_progress(stages.sink()));
    const double took = since(start);
    data.fill(kBaseSeed, s.train, s.train, memory.as<float>());
    const Segment segment = code_rows_cuda(0, *model, view, 0, resources)->copied_to(Device::cpu(), resources);
    double squares = 0;
    int64_t longest = 0;
    for (int64_t list = 0; list < s.starts; ++list) {
      const auto size = static_cast<double>(segment->size_of(list));
      squares += size * size;
      longest = std::max(longest, segment->size_of(list));
    }
    const auto rows = static_cast<double>(s.train);
    const int64_t some = std::min<int64_t>(s.train, 100'000);
    const Neighbors nearest = knn(view.slice(0, some), model->centres.view(),
                                  {.k = 1, .metric = Metric::sqeuclidean}, resources.with_device(Device::cuda(0)));
    double distances = 0;
    for (int64_t i = 0; i < some; ++i) distances += static_cast<double>(nearest.distances()[i]);
    bench::Row row{.name = std::string(name_of(init)) + " start, " + std::to_string(s.starts) + " lists",
                   .shape = std::to_string(s.train) + " x " + std::to_string(s.cols),
                   .ms = 1e3 * took,
                   .clock = "wall",
                   .figures = {{"imbalance", squares * static_cast<double>(s.starts) / (rows * rows)},
                               {"longest", static_cast<double>(longest)},
                               {"mean_squared_distance", distances / static_cast<double>(some)}}};
    stages.add_to(row);
    report.row(row);
  }
}

// The k nearest of all rows for the first queries: rows are made again, batch by batch.
std::vector<int64_t> exact_answers(const mixture::OnDevice& data, const Settings& s, const MatrixView& queries,
                                   float* rows, const Resources& resources) {
  const int64_t count = queries.rows();
  std::vector<std::vector<std::pair<float, int64_t>>> nearest(static_cast<size_t>(count));
  for (int64_t first = 0; first < s.rows; first += s.batch) {
    const int64_t some = std::min(s.batch, s.rows - first);
    data.fill(kBaseSeed, first, some, rows);
    const MatrixView view(rows, DType::f32, {some, s.cols, s.cols}, MemorySpace::cuda(0));
    const Neighbors found = knn(queries, view, {.k = s.k, .metric = Metric::sqeuclidean}, resources);
    for (int64_t q = 0; q < count; ++q) {
      auto& own = nearest[static_cast<size_t>(q)];
      for (int64_t i = 0; i < s.k; ++i) {
        if (found.ids()[q * s.k + i] >= 0)
          own.emplace_back(found.distances()[q * s.k + i], first + found.ids()[q * s.k + i]);
      }
      std::sort(own.begin(), own.end());
      own.resize(std::min<size_t>(own.size(), static_cast<size_t>(s.k)));
    }
  }
  std::vector<int64_t> ids;
  for (const auto& own : nearest) {
    for (const auto& [distance, id] : own) ids.push_back(id);
  }
  return ids;
}

void add_recall(bench::Report& report, const std::string& name, const std::vector<int64_t>& found,
                const std::vector<int64_t>& truth, int64_t queries, int64_t k) {
  double first[3] = {};
  double shared = 0;
  const int64_t reaches[3] = {1, 10, 100};
  for (int64_t q = 0; q < queries; ++q) {
    const auto own = found.begin() + q * k;
    for (int r = 0; r < 3; ++r) {
      const auto end = own + std::min(k, reaches[r]);
      first[r] += std::find(own, end, truth[static_cast<size_t>(q * k)]) != end;
    }
    std::vector<int64_t> a(own, own + k);
    std::vector<int64_t> b(truth.begin() + q * k, truth.begin() + (q + 1) * k);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<int64_t> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    shared += static_cast<double>(both.size());
  }
  const auto n = static_cast<double>(queries);
  const std::string all = std::to_string(k) + "-recall@" + std::to_string(k);
  report.row({.name = name + ", recall of " + std::to_string(queries) + " queries",
              .figures = {{"recall@1", first[0] / n},
                          {"recall@10", first[1] / n},
                          {"recall@100", first[2] / n},
                          {all, shared / n / static_cast<double>(k)}}});
}

// The share of the k true neighbours of each row, itself left out, that was found. Both have k + 1 of them for a row.
double graph_recall(const std::vector<int64_t>& found, const std::vector<int64_t>& truth, int64_t rows, int64_t k) {
  int64_t shared = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto neighbors_of = [&](const std::vector<int64_t>& ids) {
      std::vector<int64_t> own(ids.begin() + row * (k + 1), ids.begin() + (row + 1) * (k + 1));
      std::erase(own, row);
      own.resize(static_cast<size_t>(k), -1);
      return own;
    };
    const std::vector<int64_t> true_ones = neighbors_of(truth);
    for (const int64_t id : neighbors_of(found)) {
      shared += std::find(true_ones.begin(), true_ones.end(), id) != true_ones.end();
    }
  }
  return static_cast<double>(shared) / static_cast<double>(rows * k);
}

// The first rows' neighbours by the index: what the graph of all would take, and its recall.
void graph_by_index(bench::Report& report, const Index& index, const mixture::OnDevice& data, const Settings& s,
                    float* rows, const Resources& resources) {
  constexpr int64_t kNeighbors = 10;
  const int64_t sampled = std::min(s.truth, s.graph);
  std::vector<int64_t> truth;
  if (sampled > 0) {
    const DeviceBytes memory(static_cast<size_t>(sampled * s.cols) * sizeof(float));
    data.fill(kBaseSeed, 0, sampled, memory.as<float>());
    Settings of_rows = s;
    of_rows.k = kNeighbors + 1;
    truth = exact_answers(data, of_rows, on_device(memory, sampled, s.cols), rows, resources);
  }
  data.fill(kBaseSeed, 0, s.graph, rows);
  const MatrixView queries(rows, DType::f32, {s.graph, s.cols, s.cols}, MemorySpace::cuda(0));
  const Found neighbors(s.graph, kNeighbors + 1);
  for (const int64_t probes : s.graph_probes) {
    const auto at = Clock::now();
    index.search(queries, neighbors.view, {.k = kNeighbors + 1, .probes = probes}, resources);
    const double took = since(at);
    bench::Row row{
        .name = s.factory + ", graph of " + std::to_string(s.graph) + " rows, " + std::to_string(probes) + " probes",
        .shape = shape_of(s) + ", k = " + std::to_string(kNeighbors),
        .ms = 1e3 * took,
        .clock = "wall",
        .figures = {{"all_rows_s", took * static_cast<double>(s.rows) / static_cast<double>(s.graph)}}};
    if (sampled > 0)
      row.figures.emplace_back("recall@10", graph_recall(neighbors.on_host(), truth, sampled, kNeighbors));
    report.row(row);
  }
}

void build(bench::Report& report, const Settings& s, const Resources& resources) {
  const mixture::OnDevice data(s.cols);
  const int64_t room = std::max({s.train, s.batch, s.queries, s.graph});
  const DeviceBytes memory(static_cast<size_t>(room * s.cols) * sizeof(float));
  float* const rows = memory.as<float>();
  const auto start = Clock::now();
  data.fill(kBaseSeed, 0, s.train, rows);
  double making = since(start);

  Index index(s.factory, {.metric = Metric::sqeuclidean});
  Stages of_training;
  auto at = Clock::now();
  index.train(on_device(memory, s.train, s.cols), resources.with_progress(of_training.sink()));
  const double training = since(at);
  double adding = 0;
  double longest = 0;
  int64_t most_in_use = 0;
  for (int64_t first = 0; first < s.rows; first += s.batch) {
    const int64_t count = std::min(s.batch, s.rows - first);
    at = Clock::now();
    data.fill(kBaseSeed, first, count, rows);
    making += since(at);
    at = Clock::now();
    index.add(on_device(memory, count, s.cols), Ownership::copy, resources);
    const double took = since(at);
    adding += took;
    longest = std::max(longest, took);
    most_in_use = std::max(most_in_use, device_in_use());
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const IndexInfo info = index.info();
  const std::string shape = shape_of(s);
  bench::Row trained{.name = s.factory + ", train on " + std::to_string(s.train),
                     .shape = shape,
                     .ms = 1e3 * training,
                     .clock = "wall"};
  of_training.add_to(trained);
  report.row(trained);
  report.row({.name = s.factory + ", add in batches of " + std::to_string(s.batch),
              .shape = shape,
              .ms = 1e3 * adding,
              .clock = "wall",
              .figures = {{"longest_add_s", longest},
                          {"with_training_s", training + adding},
                          {"making_rows_s", making},
                          {"imbalance", info.imbalance},
                          {"longest_list", static_cast<double>(info.longest)},
                          {"index_device_gb", gigabytes(info.bytes.device)},
                          {"index_host_gb", gigabytes(info.bytes.host)},
                          {"most_device_gb", gigabytes(most_in_use)},
                          {"rows_gb", gigabytes(room * s.cols * 4)},
                          {"process_gb", static_cast<double>(usage.ru_maxrss) * 1e-6}}});

  const DeviceBytes query_memory(static_cast<size_t>(s.queries * s.cols) * sizeof(float));
  data.fill(kQuerySeed, 0, s.queries, query_memory.as<float>());
  const MatrixView queries = on_device(query_memory, s.queries, s.cols);
  const Found found(s.queries, s.k);
  double best = 1e9;
  double first_search = 0;
  for (int run = 0; run < 4; ++run) {
    at = Clock::now();
    index.search(queries, found.view, {.k = s.k, .probes = s.probes}, resources);
    const double took = since(at);
    if (run == 0) first_search = took;
    best = std::min(best, took);
  }
  report.row({.name = s.factory + ", search of " + std::to_string(s.queries) + ", " + std::to_string(s.probes) +
                      " probes, k = " + std::to_string(s.k),
              .shape = shape,
              .ms = 1e3 * best,
              .runs = 4,
              .clock = "wall",
              .figures = {{"us_a_query", 1e6 * best / static_cast<double>(s.queries)},
                          {"first_s", first_search},
                          {"index_device_gb", gigabytes(index.bytes().device)}}});
  if (s.graph > 0) graph_by_index(report, index, data, s, rows, resources);
  if (s.truth > 0) {
    at = Clock::now();
    const std::vector<int64_t> truth = exact_answers(data, s, queries.slice(0, s.truth), rows, resources);
    report.row({.name = "exact search of " + std::to_string(s.truth) + " queries, with the making of rows",
                .shape = shape,
                .ms = 1e3 * since(at),
                .clock = "wall"});
    add_recall(report, s.factory, found.on_host(), truth, s.truth, s.k);
  }
}

void run(const bench::Options& options, bench::Report& report) {
  const Settings settings = parse(options);
  report.note(cuda_devices().front().name);
  const Resources resources;
  check(cudaSetDevice(0));
  check(cudaFree(nullptr));  // the context is there before anything is timed
  if (settings.apart) {
    const mixture::OnDevice data(settings.cols);
    for (const int64_t lists : {4096, 65536, 262144}) {
      CodeRecipe code;
      code.code = kProductCode;
      code.parts = settings.cols % 20 == 0 ? 20 : 8;
      code.bits = 8;
      take_apart(report, data, std::min<int64_t>(settings.rows, 1 << 20), settings.cols, lists, code, resources);
    }
    return;
  }
  if (settings.starts > 0) {
    compare_starts(report, settings, resources);
    return;
  }
  if (!settings.factory.empty()) {
    build(report, settings, resources);
    return;
  }
  for (const char* const factory : {"IVF4096,PQ8", "IVF4096,PQ8", "IVF4096,PQ32"}) {  // the first warms up
    Settings one = settings;
    one.factory = factory;
    build(report, one, resources);
  }
}

const kith::bench::Registered known(
    {.name = "build_cuda",
     .about = "building and searching compressed indexes on a GPU, up to a billion rows",
     .options = {"--factory", "--rows", "--cols", "--train", "--batch", "--queries", "--probes", "--k", "--truth",
                 "--graph", "--graph-probes", "--apart", "--starts"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
