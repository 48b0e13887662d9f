// How fast a GPU searches inverted lists: 10M x 128 vectors of a mixture with mixture.hpp's distribution, made on the
// device, in 4,096 lists; squared L2; lists, queries and results on the device; beside the floor of the hardware and
// what other libraries take.
//
//   ivf_cuda_bench [--rows N] [--lists N] [--queries N] [--k N] [--only PQ8|PQ32|f32|f16|PQ64] [--runs N] [--probes N]
//                  [--far N] [--sample N] [--engine mma] [--out FILE]
//
// Times are CUDA events, medians of the runs: the coarse step, then the stages of launch_ivf_search. The floor is the
// larger of the products at an H200's rate and one read of the codes. Values are whole numbers from 0 to 255; with
// --far, which puts the mixture's centres so many times farther apart, they are not.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "floor.hpp"
#include "options.hpp"
#include "peers.hpp"
#include "table.hpp"

#include "ivf/ivf_search_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/rerank/coarse_knn_cuda.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace kith;

__device__ uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u + 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
__device__ float gaussian(uint64_t seed, uint64_t index) {
  const uint64_t bits = mixed(seed, index);
  const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xFFFFFF) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}

// The fixed parts: 2,000 centres and 16 factors.
__global__ void mixture_parts_kernel(float* centres, float* factors, int cols, float far) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < int64_t{2000} * cols) centres[i] = far * 40 * fabsf(gaussian(3, static_cast<uint64_t>(i)));
  if (i < int64_t{16} * cols) factors[i] = 6 * gaussian(5, static_cast<uint64_t>(i));
}

// A block for each row.
__global__ void mixture_kernel(const float* centres, const float* factors, uint64_t first, int cols, bool bytes,
                               float* rows) {
  const uint64_t row = first + blockIdx.x;
  const uint64_t centre = mixed(1, row) % 2000;
  __shared__ float z[16];
  if (threadIdx.x < 16) z[threadIdx.x] = gaussian(2, row * 16 + threadIdx.x);
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < cols; c += static_cast<int>(blockDim.x)) {
    float value = centres[centre * static_cast<uint64_t>(cols) + static_cast<uint64_t>(c)] +
                  3 * gaussian(4, row * 4096 + static_cast<uint64_t>(c));
    for (int f = 0; f < 16; ++f) value += z[f] * factors[f * cols + c];
    if (bytes) value = fminf(fmaxf(rintf(value), 0.0f), 255.0f);
    rows[static_cast<int64_t>(blockIdx.x) * cols + c] = value;
  }
}

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
  ProductEngine engine = ProductEngine::automatic;
  std::string only;
  std::string out;
};

Settings parse(int argc, char** argv) {
  const Options options(argc, argv,
                        {"--rows", "--lists", "--queries", "--k", "--runs", "--probes", "--far", "--sample", "--engine",
                         "--only", "--out"});
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
  settings.only = options.text("--only");
  settings.out = options.text("--out");
  return settings;
}

size_t bytes_of(int64_t count, size_t each = 1) { return static_cast<size_t>(count) * each; }

// The landed coarse step, from queries to packed neighbours.
class Coarse {
 public:
  Coarse(const float* centres, int64_t lists, int64_t cols, int64_t most_queries, cudaStream_t stream)
      : lists_(lists),
        cols_(cols),
        chunks_(operand_chunks(cols, 2)),
        device_(cuda_devices().front()),
        base_{centres, DType::f32, cols, lists},
        base_operands_(bytes_of(operand_bytes(lists, chunks_))),
        terms_(bytes_of(operand_tiles(lists) * kOperandTile, 4)),
        centre_(bytes_of(cols, 4)),
        base_facts_(sizeof(BaseFacts)),
        query_operands_(bytes_of(operand_bytes(most_queries, chunks_))),
        query_facts_(bytes_of(most_queries, sizeof(QueryFacts))),
        thresholds_(bytes_of(most_queries, 4)),
        key_limits_(bytes_of(most_queries, 4)),
        failed_(bytes_of(most_queries + 1, 4)),
        memory_(bytes_of(coarse_bytes(most_queries, lists, 2, 4096))),
        stream_(stream) {
    check(cudaMemset(base_facts_.as<void>(), 0, sizeof(BaseFacts)));
    launch_sample(task(base_, base_operands_), stream_);
    launch_base_operands(task(base_, base_operands_), {terms_.as<void>(), nullptr}, stream_);
  }

  void run(const float* queries, int64_t count, int64_t probes, uint64_t* out) const {
    const DeviceRowsView rows{queries, DType::f32, cols_, count};
    check(cudaMemsetAsync(failed_.as<void>(), 0, 4, stream_));
    launch_query_operands(task(rows, query_operands_), {query_facts_.as<QueryFacts>(), nullptr, 0}, stream_);
    CoarseKnnTask coarse;
    coarse.engine = product_engine(device_.compute_capability);
    coarse.multiprocessors = device_.multiprocessors;
    coarse.operands = {OperandType::half,
                       query_operands_.as<std::byte>(),
                       base_operands_.as<std::byte>(),
                       terms_.as<void>(),
                       count,
                       lists_,
                       chunks_};
    coarse.query_facts = query_facts_.as<QueryFacts>();
    coarse.base_facts = base_facts_.as<BaseFacts>();
    coarse.rows_per_minimum = plan_coarse(probes, lists_).rows_per_minimum;
    coarse.thresholds = thresholds_.as<float>();
    coarse.key_limits = key_limits_.as<uint32_t>();
    coarse.rerank.kind = KeyKind::squared_l2;
    coarse.rerank.queries = rows;
    coarse.rerank.base = base_;
    coarse.rerank.cols = cols_;
    coarse.rerank.k = probes;
    const int64_t shared = most_shared_bytes(device_.compute_capability);
    coarse.rerank.room = coarse_room(probes, lists_, rerank_room(cols_, shared));
    coarse.rerank.neighbors = out;
    const CoarseRerank shape{
        count, lists_, cols_, probes, DType::f32, DType::f32, coarse.rerank.room, shared, device_.multiprocessors};
    coarse.row_tile_bytes = suits_row_tiles(shape) ? shared : 0;
    launch_coarse_knn(coarse, {failed_.as<uint32_t>(), failed_.as<uint32_t>() + 1}, memory_.as<std::byte>(), stream_);
  }

  uint32_t failed() const {
    uint32_t count = 0;
    check(cudaMemcpy(&count, failed_.as<void>(), 4, cudaMemcpyDeviceToHost));
    return count;
  }

 private:
  OperandTask task(const DeviceRowsView& rows, const DeviceArray& operands) const {
    return {rows,
            cols_,
            KeyKind::squared_l2,
            OperandType::half,
            centre_.as<float>(),
            base_facts_.as<BaseFacts>(),
            operands.as<std::byte>()};
  }

  int64_t lists_;
  int64_t cols_;
  int64_t chunks_;
  DeviceInfo device_;
  DeviceRowsView base_;
  DeviceArray base_operands_;
  DeviceArray terms_;
  DeviceArray centre_;
  DeviceArray base_facts_;
  DeviceArray query_operands_;
  DeviceArray query_facts_;
  DeviceArray thresholds_;
  DeviceArray key_limits_;
  DeviceArray failed_;
  DeviceArray memory_;
  cudaStream_t stream_;
};

class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        table_(settings.out),
        peers_("ivf"),
        rows_(bytes_of(settings.rows * kCols, 4)),
        queries_(bytes_of(kMostQueries * kCols, 4)) {
    ResourceOptions options;
    options.device = Device::cuda(0);
    options.stream = timer_.stream();
    resources_ = Resources(options);
    table_.line(cuda_devices().front().name + ": k = " + std::to_string(settings.k) + " of " +
                std::to_string(settings.rows) + " x 128 in " + std::to_string(settings.lists) +
                " lists by sqeuclidean; milliseconds, and microseconds a query");
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
    const DeviceArray parts(bytes_of(2000 * kCols, 4));
    const DeviceArray factors(bytes_of(16 * kCols, 4));
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
    const auto* const centres = static_cast<const float*>(means.centres().data());
    centres_ = std::make_unique<DeviceArray>(std::vector<float>(centres, centres + settings_.lists * kCols));
    labels_ = std::make_unique<DeviceArray>(labels);
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
    offsets_ = std::make_unique<DeviceArray>(offsets);
    order_ = std::make_unique<DeviceArray>(order);
    char text[100];
    std::snprintf(text, sizeof text, "longest list %lld, imbalance %.2f", static_cast<long long>(longest_), imbalance_);
    table_.line(text);
  }

  template <int kPartCols>
  void codes(const std::string& name) {
    constexpr int64_t kParts = kCols / kPartCols;
    const cudaStream_t stream = timer_.stream();
    const int64_t sample = std::min<int64_t>(sample_, 65536);
    const DeviceArray residuals(bytes_of(sample * kCols, 4));
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
      const auto* const words = static_cast<const float*>(means.centres().data());
      codewords.insert(codewords.end(), words, words + 256 * kPartCols);
    }
    const DeviceArray words(codewords);
    const DeviceArray codes(bytes_of(settings_.rows * kParts));
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
    const DeviceArray codes(bytes_of(settings_.rows * kCols, sizeof(T)));
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
    const PreparedListsLayout layout(lists);
    const DeviceArray prepared(bytes_of(layout.bytes));
    IvfSearchTask task;
    task.lists = lists;
    task.prepared = layout.in(prepared.as<std::byte>(), lists);
    const double preparing = timer_.of(1, [&] { launch_prepare_lists(lists, task.prepared, timer_.stream()); }).median;
    char text[200];
    std::snprintf(text, sizeof text, "%s: prepared in %.2f ms", name.c_str(), preparing);
    table_.line(text);
    table_.line(
        "queries probes |  coarse    sort   first  select   later  rerank  direct |   total  us/query     goal    FAISS"
        "     cuVS    floor | candidates, direct, failed coarse");
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
    task.engine = settings_.engine;
    const IvfSearchPlan plan = plan_ivf_search(shape, int64_t{8} << 30);
    const DeviceArray memory(bytes_of(plan.bytes));
    const DeviceArray packed(bytes_of(count * probes, 8));
    const DeviceArray out(bytes_of(count * settings_.k, 8));
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
    std::string line = column(static_cast<double>(count), 7, 0) + column(static_cast<double>(probes), 7, 0) + " |";
    for (std::vector<double>& times : stages) {
      std::sort(times.begin(), times.end());
      line += column(times[times.size() / 2], 8, 4);
    }
    const double pairs = static_cast<double>(count * probes) * imbalance_ * static_cast<double>(settings_.rows) /
                         static_cast<double>(settings_.lists);
    const double visited = std::min(1.0, static_cast<double>(count * probes) / static_cast<double>(settings_.lists));
    const double floor = std::max(product_ms(pairs, 1, kCols), read_ms(visited * static_cast<double>(settings_.rows) *
                                                                       static_cast<double>(shape.format.bytes() + 4)));
    const double each = 1e3 / static_cast<double>(count);
    const PeerTimes peers = peers_.of(name + " " + std::to_string(count) + " x " + std::to_string(probes));
    const auto scaled = [&](const std::optional<double>& time) {
      return time ? std::optional<double>(*time * each) : std::nullopt;
    };
    line += " |" + column(total, 8, 4) + column(total * each, 10, 4) + column(scaled(peers.goal), 9, 4) +
            column(scaled(peers.faiss), 9, 4) + column(scaled(peers.cuvs), 9, 4) + column(floor * each, 9, 4);
    uint32_t directly = 0;
    check(cudaMemcpy(&directly, directly_searched(memory.as<std::byte>()), 4, cudaMemcpyDeviceToHost));
    const double candidates = mean_candidates(memory, shape, plan);
    char text[100];
    std::snprintf(text, sizeof text, " | %.0f, %u, %u; %lld first values, 1 in %d, %.0f MB", candidates, directly,
                  coarse_->failed(), static_cast<long long>(plan.values), plan.cut.sample_every,
                  static_cast<double>(plan.bytes) / 1e6);
    table_.line(line + text);
  }

  static double mean_candidates(const DeviceArray& memory, const IvfSearchShape& shape, const IvfSearchPlan& plan) {
    const int64_t count = std::min(shape.queries, plan.batch);
    std::vector<uint32_t> counts(bytes_of(count));
    check(cudaMemcpy(counts.data(), candidate_counts(memory.as<std::byte>(), shape, plan), counts.size() * 4,
                     cudaMemcpyDeviceToHost));
    double sum = 0;
    for (const uint32_t one : counts) sum += one;
    return sum / static_cast<double>(count);
  }

  Settings settings_;
  Table table_;
  Peers peers_;
  StreamTimer timer_;
  Resources resources_;
  DeviceArray rows_;
  DeviceArray queries_;
  std::unique_ptr<DeviceArray> centres_;
  std::unique_ptr<DeviceArray> labels_;
  std::unique_ptr<DeviceArray> offsets_;
  std::unique_ptr<DeviceArray> order_;
  std::unique_ptr<Coarse> coarse_;
  int64_t sample_ = 0;
  int64_t longest_ = 0;
  double imbalance_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = parse(argc, argv);
    if (cuda_devices().empty()) {
      std::fprintf(stderr, "ivf_cuda_bench: no CUDA device here, or a build without CUDA\n");
      return 1;
    }
    Bench(settings).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ivf_cuda_bench: %s\n", error.what());
    return 1;
  }
}
