// How long a GPU searches additive codes, with and without norms, all of them and in inverted lists.
//
//   additive_search_cuda_bench [--rows N] [--list-rows N] [--queries N] [--runs N] [--kinds one,all,lists] [--out FILE]
//
// Codes are drawn: the codewords of book k are gaussian, 0.6^k as long as the first book's, so that vectors lie in
// clusters within clusters; queries are such sums with noise. Queries and results lie on the device, k = 100. Times are
// medians of CUDA events around whole calls of Index::search, the ranking of lists included. The floor of a search is
// one read of the vectors' halves or the products of queries and vectors, whichever takes longer.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "index/index_access.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/additive/code_norms.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kCols = 128;
constexpr int64_t kNeighbors = 100;
constexpr float kShorter = 0.6f;

std::vector<float> gaussians(int64_t count, float scale, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> codebooks(int64_t books) {
  std::vector<float> values;
  float scale = 1;
  for (int64_t k = 0; k < books; ++k, scale *= kShorter) {
    const std::vector<float> book = gaussians(256 * kCols, scale, static_cast<uint32_t>(k + 1));
    values.insert(values.end(), book.begin(), book.end());
  }
  return values;
}

template <typename Use>
void on_all_threads(int64_t count, const Use& use) {
  const auto threads = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> workers;
  for (int64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] { use(count * t / threads, count * (t + 1) / threads); });
  }
  for (std::thread& worker : workers) worker.join();
}

// An index of drawn codes, and queries for it.
struct Drawn {
  IndexParts parts;
  std::vector<float> queries;
};

// Lists of nearly equal length; 1: none.
Drawn draw(int64_t books, CodeNorm norm, int64_t rows, int64_t lists, int64_t queries, Metric metric) {
  CodeFormat format;
  format.kind = CodeKind::additive;
  format.cols = kCols;
  format.parts = books;
  format.norm = norm;
  std::vector<float> values = codebooks(books);
  const std::vector<float> centres = lists > 1 ? gaussians(lists * kCols, 1.0f, 99) : std::vector<float>();
  const int64_t bytes = format.bytes();
  const Resources resources;
  HostArray<uint8_t> codes(rows * bytes, "codes", resources);
  HostArray<uint32_t> numbers(rows, "rows", resources);
  HostArray<int64_t> offsets(lists + 1, "offsets", resources);
  for (int64_t list = 0; list <= lists; ++list) offsets[list] = rows * list / lists;
  std::iota(numbers.begin(), numbers.end(), 0u);
  on_all_threads(rows, [&](int64_t first, int64_t end) {
    std::mt19937_64 random(static_cast<uint64_t>(first) + 7);
    for (int64_t i = first * bytes; i < end * bytes; ++i) codes[i] = static_cast<uint8_t>(random() >> 20);
  });
  // The norms of some vectors give the levels of all.
  const auto view = [&](const std::vector<float>& levels) {
    return CodecView{format, nullptr, nullptr, values.data(), levels.data()};
  };
  const auto norms_of_list = [&](int64_t list) { return lists > 1 ? centres.data() + list * kCols : nullptr; };
  if (format.has_norm()) {
    std::vector<float> norms(static_cast<size_t>(std::min<int64_t>(rows, 65536)));
    const int64_t apart = rows / static_cast<int64_t>(norms.size());
    for (size_t i = 0; i < norms.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) * apart;
      const int64_t list = std::upper_bound(offsets.begin(), offsets.end(), row) - offsets.begin() - 1;
      decoded_norms(view({}), codes.data() + row * bytes, 1, norms_of_list(list), &norms[i]);
    }
    const std::vector<float> trained = train_norm_values(norm, norms);
    values.insert(values.end(), trained.begin(), trained.end());
    const std::vector<float> levels = norm_levels(format, values);
    on_all_threads(lists > 1 ? lists : rows, [&](int64_t first, int64_t end) {
      if (lists == 1) return write_code_norms(view(levels), codes.data() + first * bytes, end - first, nullptr);
      for (int64_t list = first; list < end; ++list) {
        write_code_norms(view(levels), codes.data() + offsets[list] * bytes, offsets[list + 1] - offsets[list],
                         norms_of_list(list));
      }
    });
  }
  Drawn drawn;
  drawn.queries = gaussians(queries * kCols, 0.1f, 3);
  std::mt19937 random(4);
  for (int64_t q = 0; q < queries; ++q) {
    float* const query = drawn.queries.data() + q * kCols;
    for (int64_t k = 0; k < books; ++k) {
      const float* const word = values.data() + (k * 256 + random() % 256) * kCols;
      for (int64_t c = 0; c < kCols; ++c) query[c] += word[c];
    }
    const float* const centre = lists > 1 ? centres.data() + static_cast<int64_t>(random() % lists) * kCols : nullptr;
    for (int64_t c = 0; centre != nullptr && c < kCols; ++c) query[c] += centre[c];
  }
  IndexParts& parts = drawn.parts;
  parts.metric = metric;
  parts.cols = kCols;
  parts.rows = rows;
  parts.next_id = rows;
  parts.factory = (lists > 1 ? "IVF" + std::to_string(lists) + "," : "") + "LSQ" + std::to_string(books) + "x8" +
                  norm_suffix(norm);
  ListParts& own = parts.lists.emplace();
  own.lists = lists;
  own.residual = lists > 1;
  if (lists > 1) {
    MatrixBuffer matrix(DType::f32, lists, kCols, "centres", resources);
    std::copy(centres.begin(), centres.end(), static_cast<float*>(matrix.mutable_view().data()));
    own.centres = PartMatrix(std::move(matrix));
  }
  own.codec = {format, std::move(values)};
  own.offsets = std::move(offsets);
  own.codes = std::move(codes);
  own.rows = std::move(numbers);
  return drawn;
}

struct Settings {
  int64_t rows = 1'000'000;
  int64_t list_rows = 10'000'000;
  int64_t queries = 10'000;
  int64_t runs = 5;
  std::string kinds = "one,all,lists";  // one query, one to all of them, and lists
};

class Bench {
 public:
  Bench(const Settings& settings, bench::Report& report) : settings_(settings), report_(report) {
    ResourceOptions options;
    options.device = Device::cuda(0);
    options.stream = timer_.stream();
    resources_ = Resources(options);
    report_.note(cuda_devices().front().name + "; queries and results on the device");
  }

  void run() {
    const auto wants = [&](const char* kind) { return settings_.kinds.find(kind) != std::string::npos; };
    std::vector<int64_t> counts;
    if (wants("one")) counts.push_back(1);
    if (wants("all")) counts.insert(counts.end(), {100, settings_.queries});
    for (const int64_t books : {7, 15}) {
      if (counts.empty()) break;
      for (const CodeNorm norm : {CodeNorm::cqint8, CodeNorm::decoded}) {
        for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
          if (metric == Metric::inner_product && norm != CodeNorm::decoded) continue;
          measure(draw(books, norm, settings_.rows, 1, settings_.queries, metric), {1}, counts);
        }
      }
    }
    for (const CodeNorm norm : {CodeNorm::cqint8, CodeNorm::decoded}) {
      if (!wants("lists")) break;
      measure(draw(15, norm, settings_.list_rows, 4096, settings_.queries, Metric::sqeuclidean), {8, 32, 128},
              {settings_.queries});
    }
  }

 private:
  void measure(Drawn drawn, const std::vector<int64_t>& probes, const std::vector<int64_t>& counts) {
    const std::string factory = drawn.parts.factory;
    const Metric metric = drawn.parts.metric;
    const int64_t rows = drawn.parts.rows;
    const int64_t lists = drawn.parts.lists->lists;
    const Index index = IndexAccess::from_parts(std::move(drawn.parts), resources_);
    const DeviceBytes queries(drawn.queries);
    for (const int64_t count : counts) {
      const DeviceBytes ids(static_cast<size_t>(count * kNeighbors) * 8);
      const DeviceBytes distances(static_cast<size_t>(count * kNeighbors) * 4);
      const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), count, kNeighbors, MemorySpace::cuda(0)};
      const MatrixView q(queries.as<void>(), DType::f32, {count, kCols, kCols}, MemorySpace::cuda(0));
      for (const int64_t some : probes) {
        const double ms =
            timer_
                .of(settings_.runs,
                    [&] { index.search(q, out, {.k = kNeighbors, .probes = lists > 1 ? some : 0}, resources_); })
                .median;
        const double share = static_cast<double>(some) / static_cast<double>(lists);
        const double scanned = static_cast<double>(rows) * std::min(1.0, static_cast<double>(count) * share);
        const double floor = std::max(product_ms(static_cast<double>(count), static_cast<double>(rows) * share, kCols),
                                      scanned * read_ms(2.0 * kCols));
        report_.row(
            {.name = factory + ", " + std::string(name_of(metric)) + ", " + std::to_string(rows) + " vectors, " +
                     std::to_string(count) + " queries, " + std::to_string(some) + " probes",
             .shape = std::to_string(rows) + " x " + std::to_string(kCols) + ", k = " + std::to_string(kNeighbors),
             .median_ms = ms,
             .runs = settings_.runs,
             .clock = "cuda",
             .floor_ms = floor,
             .figures = {{"us_a_query", 1000 * ms / static_cast<double>(count)}}});
      }
    }
  }

  Settings settings_;
  bench::Report& report_;
  StreamTimer timer_;
  Resources resources_;
};

Settings parse(const bench::Options& options) {
  Settings settings;
  settings.rows = options.number("--rows", settings.rows);
  settings.list_rows = options.number("--list-rows", settings.list_rows);
  settings.queries = options.number("--queries", settings.queries);
  settings.runs = std::max<int64_t>(1, options.number("--runs", settings.runs));
  settings.kinds = options.text("--kinds", settings.kinds);
  return settings;
}

const kith::bench::Registered known(
    {.name = "additive_search_cuda",
     .about = "searches of additive codes on a GPU, alone and in lists",
     .options = {"--rows", "--list-rows", "--queries", "--runs", "--kinds"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { Bench(parse(options), report).run(); }});

}  // namespace
