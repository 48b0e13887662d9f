// How fast a GPU searches inverted lists: 10M x 128 vectors of a mixture with mixture.hpp's distribution, made on the
// device, in 4,096 lists; squared L2; lists, queries and results on the device; beside the floor of the hardware and
// what other libraries take.
//
//   ivf_cuda_bench [--rows N] [--lists N] [--queries N] [--k N] [--only PQ8|PQ32|f32|f16|PQ64] [--runs N] [--probes N]
//                  [--far N] [--sample N] [--lookups 0|1] [--term 0|1|2] [--halves 0|1] [--engine mma] [--stages 1]
//                  [--tables 1] [--out FILE]
//
// Times are CUDA events, medians of the runs: the coarse step, then the stages of launch_ivf_search. The floor is the
// larger of the products at an H200's rate and one read of the codes. Values are whole numbers from 0 to 255; with
// --far, which puts the mixture's centres so many times farther apart, they are not. --stages prints what each stage
// uses of the hardware (stage_table.hpp), --tables the scans by lookup tables (table_ablation_cuda.hpp) beside those of
// PQ8 and PQ32. --lookups 1 has the library look codes up, with nothing kept beside the lists, a table for each or four
// bytes a vector (--term 0, 1, 2; scan_cut.hpp).
#include <kith/kith.hpp>

#include "coarse_step_cuda.hpp"
#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "mixture_cuda.hpp"
#include "peers.hpp"
#include "stage_table.hpp"
#include "table_ablation_cuda.hpp"

#include "ivf/scan/prepare_lists_cuda.hpp"
#include "ivf/search/ivf_search_cuda.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace kith;

__global__ void residual_kernel(const float* rows, const float* centres, const int32_t* labels, int cols, float* out) {
  const int64_t i = blockIdx.x;
  for (int c = static_cast<int>(threadIdx.x); c < cols; c += static_cast<int>(blockDim.x)) {
    out[i * cols + c] = rows[i * cols + c] - centres[static_cast<int64_t>(labels[i]) * cols + c];
  }
}

// Codes in the order of lists: the nearest codeword of a part in plain f32, a thread for each vector. Good enough to
// time a search.
template <int kCols>
__global__ void encode_kernel(const float* rows, const float* centres, const int32_t* labels, const uint32_t* order,
                              int64_t count, int cols, const float* codewords, int parts, uint8_t* codes) {
  __shared__ float words[256 * kCols];
  const int part = static_cast<int>(blockIdx.y);
  for (int i = static_cast<int>(threadIdx.x); i < 256 * kCols; i += static_cast<int>(blockDim.x)) {
    words[i] = codewords[part * 256 * kCols + i];
  }
  __syncthreads();
  const int64_t position = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (position >= count) return;
  const int64_t row = order[position];
  const float* const centre = centres + static_cast<int64_t>(labels[row]) * cols + part * kCols;
  float x[kCols];
  for (int c = 0; c < kCols; ++c) x[c] = rows[row * cols + part * kCols + c] - centre[c];
  float least = HUGE_VALF;
  int best = 0;
  for (int word = 0; word < 256; ++word) {
    float sum = 0;
    for (int c = 0; c < kCols; ++c) sum += (x[c] - words[word * kCols + c]) * (x[c] - words[word * kCols + c]);
    if (sum < least) {
      least = sum;
      best = word;
    }
  }
  codes[position * parts + part] = static_cast<uint8_t>(best);
}

template <typename T>
__global__ void store_kernel(const float* rows, const uint32_t* order, int cols, T* out) {
  const int64_t position = blockIdx.x;
  for (int c = static_cast<int>(threadIdx.x); c < cols; c += static_cast<int>(blockDim.x)) {
    out[position * cols + c] = static_cast<T>(rows[static_cast<int64_t>(order[position]) * cols + c]);
  }
}

struct Settings {
  int64_t rows = 10'000'000;
  int64_t lists = 4096;
  int64_t queries = 0;
  int64_t k = 100;
  int64_t runs = 7;
  int64_t probes = 0;
  int64_t far = 1;
  int64_t sample = 0;
  int64_t lookups = -1;
  ScanTerm term = ScanTerm::of_vector;
  ProductEngine engine = ProductEngine::automatic;
  bool stages = false;
  bool halves = true;
  bool tables = false;
  std::string only;
};

Settings parse(const bench::Options& options) {
  Settings settings;
  settings.rows = options.number("--rows", settings.rows);
  settings.lists = options.number("--lists", settings.lists);
  settings.queries = options.number("--queries", settings.queries);
  settings.k = options.number("--k", settings.k);
  settings.runs = std::max<int64_t>(1, options.number("--runs", settings.runs));
  settings.probes = options.number("--probes", settings.probes);
  settings.far = options.number("--far", settings.far);
  settings.sample = options.number("--sample", settings.sample);
  settings.engine = options.text("--engine") == "mma" ? ProductEngine::mma : ProductEngine::automatic;
  settings.lookups = options.number("--lookups", settings.lookups);
  settings.term = static_cast<ScanTerm>(options.number("--term", static_cast<int64_t>(settings.term)));
  settings.stages = options.number("--stages", 0) != 0;
  settings.halves = options.number("--halves", 1) != 0;
  settings.tables = options.number("--tables", 0) != 0;
  settings.only = options.text("--only");
  return settings;
}

class Bench {
 public:
  Bench(const Settings& settings, bench::Report& report)
      : settings_(settings),
        report_(report),
        peers_("ivf"),
        rows_(bytes_of(settings.rows * kCols, 4)),
        queries_(bytes_of(kMostQueries * kCols, 4)) {
    ResourceOptions options;
    options.device = Device::cuda(0);
    options.stream = timer_.stream();
    resources_ = Resources(options);
    report_.note(cuda_devices().front().name);
    make_lists();
    coarse_ = std::make_unique<Coarse>(centres_->as<float>(), settings.lists, kCols, kMostQueries, timer_.stream());
  }

  void run() {
    if (wanted("PQ8")) codes<16>("PQ8");
    if (wanted("PQ32")) codes<4>("PQ32");
    if (settings_.only == "PQ64") codes<2>("PQ64");
    if (wanted("f32")) stored<float>("f32", DType::f32);
    if (wanted("f16")) stored<__half>("f16", DType::f16);
  }

 private:
  static constexpr int64_t kCols = 128;
  static constexpr int64_t kMostQueries = 10000;

  bool wanted(const std::string& name) const { return settings_.only.empty() || settings_.only == name; }

  MatrixView view(const void* data, int64_t rows, int64_t cols, int64_t stride) const {
    return {data, DType::f32, {rows, cols, stride}, MemorySpace::cuda(0)};
  }

  void make_lists() {
    const DeviceBytes parts(bytes_of(2000 * kCols, 4));
    const DeviceBytes factors(bytes_of(16 * kCols, 4));
    const cudaStream_t stream = timer_.stream();
    const bool bytes = settings_.far == 1;  // farther apart, most would be cut off
    mixture_parts_kernel<<<1000, 256, 0, stream>>>(parts.as<float>(), factors.as<float>(), kCols,
                                                   static_cast<float>(settings_.far));
    mixture_kernel<<<static_cast<unsigned>(settings_.rows), 128, 0, stream>>>(parts.as<float>(), factors.as<float>(), 0,
                                                                              kCols, bytes, rows_.as<float>());
    mixture_kernel<<<kMostQueries, 128, 0, stream>>>(parts.as<float>(), factors.as<float>(), uint64_t{1} << 40, kCols,
                                                     bytes, queries_.as<float>());
    KMeansParams params;
    params.clusters = settings_.lists;
    params.iterations = 8;
    params.init = KMeansInit::random;
    params.compute_labels = false;
    params.check_finite = false;
    KMeans means(params);
    sample_ = std::min<int64_t>(settings_.rows, 262144);
    means.fit(view(rows_.as<void>(), sample_, kCols, kCols), {}, resources_);
    std::vector<int32_t> labels(bytes_of(settings_.rows));
    means.predict(view(rows_.as<void>(), settings_.rows, kCols, kCols), labels.data(), nullptr, resources_);
    const KMeansSnapshot fitted = means.snapshot();
    const auto* const centres = static_cast<const float*>(fitted.centres.data());
    centres_ = std::make_unique<DeviceBytes>(std::vector<float>(centres, centres + settings_.lists * kCols));
    labels_ = std::make_unique<DeviceBytes>(labels);
    std::vector<int64_t> offsets(bytes_of(settings_.lists + 1));
    for (const int32_t label : labels) ++offsets[static_cast<size_t>(label) + 1];
    longest_ = *std::max_element(offsets.begin(), offsets.end());
    for (size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
    std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
    std::vector<uint32_t> order(bytes_of(settings_.rows));
    for (int64_t row = 0; row < settings_.rows; ++row) {
      order[static_cast<size_t>(next[static_cast<size_t>(labels[static_cast<size_t>(row)])]++)] =
          static_cast<uint32_t>(row);
    }
    double squares = 0;
    for (size_t i = 1; i < offsets.size(); ++i) {
      const auto length = static_cast<double>(offsets[i] - offsets[i - 1]);
      squares += length * length;
    }
    const auto rows = static_cast<double>(settings_.rows);
    imbalance_ = squares * static_cast<double>(settings_.lists) / rows / rows;
    offsets_ = std::make_unique<DeviceBytes>(offsets);
    order_ = std::make_unique<DeviceBytes>(order);
    report_.row({.name = "lists",
                 .shape = shape(),
                 .figures = {{"longest", static_cast<double>(longest_)}, {"imbalance", imbalance_}}});
  }

  template <int kPartCols>
  void codes(const std::string& name) {
    constexpr int64_t kParts = kCols / kPartCols;
    const cudaStream_t stream = timer_.stream();
    const int64_t sample = std::min<int64_t>(sample_, 65536);
    const DeviceBytes residuals(bytes_of(sample * kCols, 4));
    residual_kernel<<<static_cast<unsigned>(sample), 128, 0, stream>>>(
        rows_.as<float>(), centres_->as<float>(), labels_->as<int32_t>(), kCols, residuals.as<float>());
    std::vector<float> codewords;
    for (int64_t part = 0; part < kParts; ++part) {
      KMeansParams params;
      params.clusters = 256;
      params.iterations = 6;
      params.init = KMeansInit::random;
      params.compute_labels = false;
      KMeans means(params);
      means.fit(view(residuals.as<float>() + part * kPartCols, sample, kPartCols, kCols), {}, resources_);
      const KMeansSnapshot fitted = means.snapshot();
      const auto* const words = static_cast<const float*>(fitted.centres.data());
      codewords.insert(codewords.end(), words, words + 256 * kPartCols);
    }
    const DeviceBytes words(codewords);
    const DeviceBytes codes(bytes_of(settings_.rows * kParts));
    const dim3 grid(static_cast<unsigned>((settings_.rows + 255) / 256), static_cast<unsigned>(kParts));
    encode_kernel<kPartCols><<<grid, 256, 0, stream>>>(rows_.as<float>(), centres_->as<float>(), labels_->as<int32_t>(),
                                                       order_->as<uint32_t>(), settings_.rows, kCols, words.as<float>(),
                                                       kParts, codes.as<uint8_t>());
    DeviceListsView lists;
    lists.codec.format = {CodeKind::product, kCols, DType::f32, 8, kParts};
    lists.codec.codewords = words.as<float>();
    lists.residual = true;
    search(name, lists, codes.as<uint8_t>());
  }

  template <typename T>
  void stored(const std::string& name, DType dtype) {
    const DeviceBytes codes(bytes_of(settings_.rows * kCols, sizeof(T)));
    store_kernel<<<static_cast<unsigned>(settings_.rows), 128, 0, timer_.stream()>>>(
        rows_.as<float>(), order_->as<uint32_t>(), kCols, codes.as<T>());
    DeviceListsView lists;
    lists.codec.format = {CodeKind::stored, kCols, dtype, 8, 0};
    search(name, lists, codes.as<uint8_t>());
  }

  void search(const std::string& name, DeviceListsView lists, const uint8_t* codes) {
    lists.kind = KeyKind::squared_l2;
    lists.lists = settings_.lists;
    lists.centres = centres_->as<float>();
    lists.offsets = offsets_->as<int64_t>();
    lists.codes = codes;
    lists.rows = order_->as<uint32_t>();
    lists.count = settings_.rows;
    const PreparedListsLayout layout(lists, settings_.halves);
    const DeviceBytes prepared(bytes_of(layout.bytes));
    IvfSearchTask task;
    task.lists = lists;
    task.prepared = layout.in(prepared.as<std::byte>(), lists);
    const double preparing = timer_.of(1, [&] { launch_prepare_lists(lists, task.prepared, timer_.stream()); }).median;
    const DeviceBytes most(sizeof(uint32_t));
    check(cudaMemset(most.as<void>(), 0, sizeof(uint32_t)));
    const double counting =
        timer_.of(1, [&] { launch_count_repeats(lists, most.as<uint32_t>(), timer_.stream()); }).median;
    uint32_t repeats = 0;
    check(cudaMemcpy(&repeats, most.as<void>(), sizeof repeats, cudaMemcpyDeviceToHost));
    const DeviceBytes ranks(repeats < kLeastRepeats ? 1 : bytes_of(settings_.rows, sizeof(uint16_t)));
    double ranking = 0;
    if (repeats >= kLeastRepeats) {
      ranking = timer_.of(1, [&] { launch_rank_repeats(lists, ranks.as<uint16_t>(), timer_.stream()); }).median;
      task.repeats = ranks.as<uint16_t>();
    }
    report_.row(
        {.name = name + ", prepare",
         .shape = shape(),
         .ms = preparing,
         .clock = "cuda",
         .figures = {
             {"repeats", static_cast<double>(repeats)}, {"count_repeats_ms", counting}, {"rank_repeats_ms", ranking}}});
    const std::vector<int64_t> counts =
        settings_.queries > 0 ? std::vector<int64_t>{settings_.queries} : std::vector<int64_t>{10000, 100, 1};
    for (const int64_t count : counts) {
      const std::vector<int64_t> probes = settings_.probes > 0 ? std::vector<int64_t>{settings_.probes}
                                          : count == 10000     ? std::vector<int64_t>{1, 8, 32, 128}
                                                               : std::vector<int64_t>{32};
      for (const int64_t number : probes) one(name, task, count, number);
    }
  }

  void one(const std::string& name, IvfSearchTask task, int64_t count, int64_t probes) {
    const DeviceInfo device = cuda_devices().front();
    IvfSearchShape shape;
    shape.format = task.lists.codec.format;
    shape.queries = count;
    shape.slots = probes;
    shape.k = settings_.k;
    shape.lists = settings_.lists;
    shape.vectors = settings_.rows;
    shape.multiprocessors = device.multiprocessors;
    shape.sample_every = static_cast<int>(settings_.sample);
    shape.tables = static_cast<int>(settings_.lookups);
    shape.term = settings_.term;
    task.engine = settings_.engine;
    const IvfSearchPlan plan = plan_ivf_search(shape, int64_t{8} << 30);
    const ScanTermsLayout kept(task.lists, plan.term);
    const DeviceBytes terms(bytes_of(kept.bytes));
    task.terms = kept.in(terms.as<std::byte>());
    launch_scan_terms(task.lists, task.prepared, task.terms, timer_.stream());
    const DeviceBytes memory(bytes_of(plan.bytes));
    const DeviceBytes packed(bytes_of(count * probes, 8));
    const DeviceBytes out(bytes_of(count * settings_.k, 8));
    task.queries = queries_.as<float>();
    task.query_stride = kCols;
    task.probes = packed.as<uint64_t>();
    task.neighbors = out.as<uint64_t>();
    const cudaStream_t stream = timer_.stream();
    const auto whole = [&] {
      coarse_->run(queries_.as<float>(), count, probes, packed.as<uint64_t>());
      launch_ivf_search(task, shape, plan, memory.as<std::byte>(), stream);
    };
    const double total = timer_.of(settings_.runs, whole).median;
    // Stage by stage, the medians of each.
    cudaEvent_t events[kIvfStages + 2];
    for (cudaEvent_t& event : events) check(cudaEventCreate(&event));
    std::vector<double> stages[kIvfStages + 1];
    for (int64_t i = 0; i < settings_.runs; ++i) {
      check(cudaEventRecord(events[0], stream));
      coarse_->run(queries_.as<float>(), count, probes, packed.as<uint64_t>());
      launch_ivf_search(task, shape, plan, memory.as<std::byte>(), stream, events + 1);
      check(cudaStreamSynchronize(stream));
      for (int s = 0; s <= kIvfStages; ++s) {
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, events[s], events[s + 1]));
        stages[s].push_back(milliseconds);
      }
    }
    for (cudaEvent_t& event : events) check(cudaEventDestroy(event));
    static constexpr const char* kStageNames[] = {"coarse", "sort", "first", "select", "later", "rerank", "direct"};
    const std::string title = name + ", " + std::to_string(count) + " queries, " + std::to_string(probes) + " probes";
    bench::Row row{.name = title, .shape = this->shape(), .median_ms = total, .runs = settings_.runs, .clock = "cuda"};
    std::vector<double> medians;
    for (std::vector<double>& times : stages) {
      std::sort(times.begin(), times.end());
      medians.push_back(times[times.size() / 2]);
      row.figures.emplace_back(std::string(kStageNames[medians.size() - 1]) + "_ms", medians.back());
    }
    const double pairs = static_cast<double>(count * probes) * imbalance_ * static_cast<double>(settings_.rows) /
                         static_cast<double>(settings_.lists);
    const double visited = std::min(1.0, static_cast<double>(count * probes) / static_cast<double>(settings_.lists));
    const double floor = std::max(product_ms(pairs, 1, kCols), read_ms(visited * static_cast<double>(settings_.rows) *
                                                                       static_cast<double>(shape.format.bytes() + 4)));
    const double each = 1e3 / static_cast<double>(count);
    row.floor_ms = floor;
    peers_.of(name + " " + std::to_string(count) + " x " + std::to_string(probes)).add_to(row);
    uint32_t directly = 0;
    check(cudaMemcpy(&directly, directly_searched(memory.as<std::byte>()), 4, cudaMemcpyDeviceToHost));
    const double candidates = mean_candidates(memory, shape, plan);
    const std::vector<std::pair<std::string, double>> more = {
        {"us_a_query", total * each},
        {"candidates", candidates},
        {"searched_directly", static_cast<double>(directly)},
        {"failed_coarse", static_cast<double>(coarse_->failed())},
        {"first_values", static_cast<double>(plan.values)},
        {"sample_every", static_cast<double>(plan.cut.sample_every)},
        {"plan_mb", static_cast<double>(plan.bytes) / 1e6}};
    row.figures.insert(row.figures.end(), more.begin(), more.end());
    if (plan.tables) row.labels.emplace_back("by", "lookups");
    report_.row(row);
    // Fewer queries share lists in a way that the formulas do not know.
    if (settings_.stages && count >= 1000) stage_work(title, medians, shape, plan, pairs, visited, candidates);
    if (settings_.tables) {
      if (name == "PQ8") lookups<8>(title, task, count, probes);
      if (name == "PQ32") lookups<32>(title, task, count, probes);
    }
  }

  // What each stage multiplies, reads and writes.
  void stage_work(const std::string& title, const std::vector<double>& times, const IvfSearchShape& shape,
                  const IvfSearchPlan& plan, double pairs, double visited, double candidates) const {
    const auto queries = static_cast<double>(shape.queries);
    const auto lists = static_cast<double>(shape.lists);
    const auto slots = static_cast<double>(shape.slots);
    const double rows = visited * static_cast<double>(shape.vectors);
    const auto code_bytes = static_cast<double>(shape.format.bytes());
    const bool halves = settings_.halves && PreparedLists::wants_halves(shape.format);
    const double code = (halves ? 2.0 * kCols : code_bytes) + 4;  // that a scan reads, and its term
    const bool table = shape.format.kind == CodeKind::product;
    const double sampled = rows / plan.cut.sample_every;
    const double first_pairs = std::min(pairs / plan.cut.sample_every, queries * static_cast<double>(plan.values));
    const double later_pairs = plan.cut.samples() ? pairs : pairs - first_pairs;
    const double groups = std::max(1.0, queries * slots * visited / lists / plan.cut.group_queries);
    // A vector is decoded from shared memory once for each group of queries, and each query read for every 64 vectors.
    const auto shared = [&](double decoded, double some) { return (table ? 256 * decoded : 0) + 256 * some / 64; };
    const double reranked = queries * std::min(candidates, 1.1 * static_cast<double>(shape.k));
    add_stages(report_, title,
               {{"coarse", times[0], 256 * queries * lists, 256 * lists + 512 * queries, 0},
                {"sort", times[1], 0, 40 * queries * slots, 0},
                {"first", times[2], 256 * first_pairs, sampled * code + 4 * first_pairs, shared(sampled, first_pairs)},
                {"select", times[3], 0, 4 * first_pairs, 0},
                {"later", times[4], 256 * later_pairs, later_pairs > 0 ? rows * code * groups : 0,
                 later_pairs > 0 ? shared(rows * groups, later_pairs) : 0},
                {"rerank", times[5], 0, 12 * queries * candidates + reranked * (code_bytes + 516), 0},
                {"direct", times[6], 0, 0, 0}});
  }

  template <int kParts>
  void lookups(const std::string& title, const IvfSearchTask& task, int64_t count, int64_t probes) const {
    const TableLists lists{task.lists.offsets, task.lists.codes, task.lists.centres, task.lists.codec.codewords,
                           task.lists.rows,    settings_.lists,  settings_.rows,     longest_};
    TableAblation<kParts> ablation(lists, settings_.k, cuda_devices().front().multiprocessors, timer_, report_, title);
    ablation.run(task.queries, count, task.probes, probes, task.neighbors);
  }

  std::string shape() const {
    return std::to_string(settings_.rows) + " x 128 in " + std::to_string(settings_.lists) + " lists, k = " +
           std::to_string(settings_.k);
  }

  static double mean_candidates(const DeviceBytes& memory, const IvfSearchShape& shape, const IvfSearchPlan& plan) {
    const int64_t count = std::min(shape.queries, plan.batch);
    std::vector<uint32_t> counts(bytes_of(count));
    check(cudaMemcpy(counts.data(), candidate_counts(memory.as<std::byte>(), shape, plan), counts.size() * 4,
                     cudaMemcpyDeviceToHost));
    double sum = 0;
    for (const uint32_t one : counts) sum += one;
    return sum / static_cast<double>(count);
  }

  Settings settings_;
  bench::Report& report_;
  Peers peers_;
  StreamTimer timer_;
  Resources resources_;
  DeviceBytes rows_;
  DeviceBytes queries_;
  std::unique_ptr<DeviceBytes> centres_;
  std::unique_ptr<DeviceBytes> labels_;
  std::unique_ptr<DeviceBytes> offsets_;
  std::unique_ptr<DeviceBytes> order_;
  std::unique_ptr<Coarse> coarse_;
  int64_t sample_ = 0;
  int64_t longest_ = 0;
  double imbalance_ = 1;
};

const kith::bench::Registered known(
    {.name = "ivf_cuda",
     .about = "searches of inverted lists on a GPU, stage by stage",
     .options = {"--rows", "--lists", "--queries", "--k", "--runs", "--probes", "--far", "--sample", "--engine",
                 "--stages", "--tables", "--halves", "--lookups", "--term", "--only"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { Bench(parse(options), report).run(); }});

}  // namespace
