// Local search quantization on a GPU: encoding of rows that lie on the device, by codebooks and rounds, beside the
// floor of the matrix units, and the mean squared error.
//
//   lsq_cuda_bench [--rows N] [--cols N] [--learn N] [--rounds N] [--runs N] [--books 7,15]
//                  [--search-rounds 0,16,32] [--start opq|residual] [--parts encode,forms,stages]
//                  [--plain N] [--many N] [--many-15 N] [--out FILE]
//
// --plain: of so many rows the error of a search in plain f32, on the CPU, and that of the GPU's codes. --many: so many
// rows of the mixture, made in batches on the device, are encoded once with 7 codebooks and 16 rounds; --many-15: with
// 15 and 32. --parts: what is measured beside training: encoding, the other forms of the search, where the time goes.
// `race` alone trains nothing: codewords are rows, and the search runs twice, the second time with
// barriers that racecheck can follow.
//
// Codebooks are trained on the device too, on --learn rows in --rounds rounds; of that time, what finds the first
// codebooks is said beside it.
// Errors are of the first fiftieth of the rows, which every form encodes. Rows are the mixture of mixture.hpp. The
// floor is 2 x 256 x cols operations a row and step at 645 TFLOP/s, the rate of the landed products.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "lsq_plain.hpp"
#include "lsq_stages_cuda.hpp"
#include "mixture_rows_cuda.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/additive_training.hpp"
#include "quantize/additive/local_search_steps.hpp"

#include <chrono>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr double kFlops = 645e12;

double seconds_of(const auto& work) {
  check(cudaDeviceSynchronize());
  const auto begin = std::chrono::steady_clock::now();
  work();
  check(cudaDeviceSynchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Bench {
  bench::Report& report;
  int64_t rows;
  int64_t cols;
  int runs;
  const float* data;
  Resources resources;

  static AdditiveEncoding encoding_of(int64_t m, int64_t rounds) {
    LocalSearchParams params;
    params.codebooks = m;
    AdditiveEncoding encoding;
    encoding.search = plan_of(params, rounds, 0);
    return encoding;
  }

  // The mean error of so many rows, in plain f32 and by exact costs.
  void compare_plain(const std::vector<float>& words, int64_t m, int64_t rounds, int64_t count) const {
    std::vector<float> host(static_cast<size_t>(count * cols));
    check(cudaMemcpy(host.data(), data, host.size() * 4, cudaMemcpyDeviceToHost));
    const Codebooks books{words.data(), m, 8, cols};
    const AdditiveEncoding encoding = encoding_of(m, rounds);
    std::vector<uint8_t> codes(static_cast<size_t>(count * m));
    std::vector<float> costs(static_cast<size_t>(count));
    encode_additive_cuda(books, encoding, MatrixView(host.data(), count, cols), codes.data(), costs.data(), 0,
                         resources);
    const std::vector<double> others = plain::errors(books, host.data(), count, encoding.search);
    double error = 0;
    double squares = 0;  // of the differences, row by row
    for (size_t i = 0; i < costs.size(); ++i) {
      error += static_cast<double>(costs[i]) / static_cast<double>(count);
      const double apart = static_cast<double>(costs[i]) - others[i];
      squares += apart * apart / static_cast<double>(count);
    }
    const double above = error / plain::mean(others) - 1;
    report.row(
        {.name = "error of " + std::to_string(count) + " rows" + case_of(m, rounds),
         .figures = {{"error", error},
                     {"plain_error", plain::mean(others)},
                     {"above_percent", 100 * above},
                     {"standard_error_percent", 100 * std::sqrt(squares / static_cast<double>(count)) / error}}});
  }

  // Rows of the mixture in batches; the time of encoding alone, and of all.
  void encode_many(const mixture::OnDevice& source, const std::vector<float>& words, int64_t m, int64_t rounds,
                   int64_t count) const {
    const int64_t batch = std::min<int64_t>(count, 10'000'000);
    const DeviceBytes made(static_cast<size_t>(batch * cols) * 4);
    const DeviceBytes codes(static_cast<size_t>(batch * m));
    const Codebooks books{words.data(), m, 8, cols};
    AdditiveEncoding encoding = encoding_of(m, rounds);
    double encoding_seconds = 0;
    const double all = seconds_of([&] {
      for (int64_t first = 0; first < count; first += batch) {
        const int64_t some = std::min(batch, count - first);
        source.fill(2, first, some, made.as<float>());
        encoding.first_row = first;
        encoding_seconds += seconds_of([&] {
          encode_additive_cuda(books, encoding,
                               {made.as<float>(), DType::f32, {some, cols, cols}, MemorySpace::cuda(0)},
                               codes.as<uint8_t>(), nullptr, 0, resources);
        });
      }
    });
    report.row({.name = "encode " + std::to_string(count) + " rows in batches" + case_of(m, rounds),
                .ms = 1e3 * encoding_seconds,
                .clock = "wall",
                .figures = {{"with_making_rows_ms", 1e3 * all},
                            {"us_a_row", 1e6 * encoding_seconds / static_cast<double>(count)}}});
  }

  void encode(const std::vector<float>& words, int64_t m, int64_t rounds, SearchForm form, int64_t count) const {
    AdditiveEncoding encoding = encoding_of(m, rounds);
    encoding.form = form;
    const Codebooks books{words.data(), m, 8, cols};
    const MatrixView view(data, DType::f32, {count, cols, cols}, MemorySpace::cuda(0));
    const DeviceBytes codes(static_cast<size_t>(count * m));
    const DeviceBytes costs(static_cast<size_t>(count) * 4);
    double best = 1e30;
    for (int run = 0; run <= runs; ++run) {
      const double took = seconds_of([&] {
        encode_additive_cuda(books, encoding, view, codes.as<uint8_t>(), costs.as<float>(), 0, resources);
      });
      if (run > 0 || runs == 0) best = std::min(best, took);
    }
    const int64_t compared = std::max<int64_t>(1, rows / 50);  // the same rows in every line
    std::vector<float> host(static_cast<size_t>(compared));
    check(cudaMemcpy(host.data(), costs.as<float>(), host.size() * 4, cudaMemcpyDeviceToHost));
    double error = 0;
    for (const float cost : host) error += static_cast<double>(cost);
    const double steps = static_cast<double>(m * (rounds * encoding.search.sweeps + 1));
    const double floor = steps * 2 * 256 * static_cast<double>(cols) / kFlops;
    const double each = best / static_cast<double>(count);
    const std::string by = form == SearchForm::direct ? "direct" : form == SearchForm::tables ? "tables" : "automatic";
    report.row({.name = "encode " + std::to_string(count) + " rows" + case_of(m, rounds) + ", " + by,
                .shape = std::to_string(count) + " x " + std::to_string(cols),
                .ms = 1e3 * best,
                .runs = runs,
                .clock = "wall",
                .floor_ms = 1e3 * floor * static_cast<double>(count),
                .figures = {{"us_a_row", 1e6 * each}, {"error", error / static_cast<double>(compared)}}});
  }

  static std::string case_of(int64_t m, int64_t rounds) {
    return ", m = " + std::to_string(m) + ", " + std::to_string(rounds) + " rounds";
  }
};

// What the steps of a round of training take.
void training_steps(bench::Report& report, const std::vector<float>& words, int64_t m, const MatrixView& learnt,
                    const Resources& resources) {
  const auto steps = make_local_search_steps_cuda({learnt, m, 8}, 0, resources);
  const Codebooks books{words.data(), m, 8, learnt.cols()};
  steps->encode(books, Bench::encoding_of(m, 0));
  AdditiveEncoding encoding = Bench::encoding_of(m, 8);
  encoding.start = CodeStart::given;
  const double search = seconds_of([&] { steps->encode(books, encoding); });
  std::vector<float> updated(words.size());
  steps->update(1e-4, updated.data());
  const double update = seconds_of([&] { steps->update(1e-4, updated.data()); });
  report.row({.name = "a round of training, m = " + std::to_string(m),
              .ms = 1e3 * (search + update),
              .clock = "wall",
              .figures = {{"search_ms", 1e3 * search}, {"codebooks_ms", 1e3 * update}}});
}

void run(const bench::Options& options, bench::Report& report) {
  const int64_t rows = options.number("--rows", 1'000'000);
  const int64_t cols = options.number("--cols", 128);
  const int64_t learn = options.number("--learn", 100'000);
  ResourceOptions given;
  given.device = Device::cuda(0);
  const Resources resources(given);
  const mixture::OnDevice made(cols);
  const DeviceBytes data(static_cast<size_t>(rows * cols) * 4);
  made.fill(1, 0, rows, data.as<float>());
  std::vector<float> sample(static_cast<size_t>(learn * cols));
  check(cudaMemcpy(sample.data(), data.as<float>(), sample.size() * 4, cudaMemcpyDeviceToHost));
  report.note(cuda_devices().front().name);
  const Bench bench{report, rows, cols, static_cast<int>(options.number("--runs", 2)), data.as<float>(), resources};
  const int64_t plain_rows = options.number("--plain", 0);
  const std::string parts = options.text("--parts", "encode,forms,stages");
  const auto wants = [&](const char* part) { return parts.find(part) != std::string::npos; };
  std::istringstream book_counts(options.text("--books", "7,15"));
  for (std::string count; std::getline(book_counts, count, ',');) {
    const int64_t m = std::stoll(count);
    if (wants("race")) {  // alone, with books made of rows
      if (learn < 256 * m) throw InvalidArgument("--parts race takes a --learn of 256 rows for each book, or more");
      std::vector<float> words(sample.begin(), sample.begin() + m * 256 * cols);
      for (float& value : words) value /= static_cast<float>(m);
      const bool same = lsq_same_with_block_barriers({words.data(), m, 8, cols}, data.as<float>(), rows, 2);
      report.row({.name = "codes with barriers of the block, m = " + std::to_string(m),
                  .labels = {{"codes", same ? "the same" : "OTHERS"}}});
      continue;
    }
    const MatrixView learnt(data.as<float>(), DType::f32, {learn, cols, cols}, MemorySpace::cuda(0));
    LocalSearchParams params;
    params.codebooks = m;
    if (options.text("--start", "opq") == "residual") params.train_start = AdditiveStart::residual;
    const double first = seconds_of([&] {
      (void)first_codebooks(params.train_start, MatrixView(sample.data(), learn, cols), m, 8, 0, resources);
    });
    params.rounds = options.number("--rounds", 25);
    LocalSearchQuantizer quantizer(params);
    const double all = seconds_of([&] { quantizer.train(learnt, resources); });
    report.row({.name = "training" + Bench::case_of(m, params.rounds),
                .shape = std::to_string(learn) + " x " + std::to_string(cols),
                .ms = 1e3 * all,
                .clock = "wall",
                .figures = {{"first_codebooks_ms", 1e3 * first},
                            {"error", quantizer.history().back() / static_cast<double>(learn)}}});
    const std::vector<float> words = quantizer.values();
    if (wants("encode")) {
      std::istringstream round_counts(options.text("--search-rounds", "0,16,32"));
      for (std::string rounds; std::getline(round_counts, rounds, ',');) {
        bench.encode(words, m, std::stoll(rounds), SearchForm::automatic, rows);
      }
    }
    if (wants("forms")) {
      bench.encode(words, m, 16, SearchForm::tables, rows / 5);
      bench.encode(words, m, 16, SearchForm::direct, rows / 50);
    }
    if (wants("stages")) {
      // With every length of the ring.
      for (int stages = 2; stages <= kProductMostStages; ++stages) {
        ProductLayout layout = product_layout(cols);
        layout.stages = stages;
        layout.shared_chunks = std::min(layout.chunks, kProductPlaces - stages);
        report.row({.name = "cycles of a warp and step, m = " + std::to_string(m) + ", ring of " +
                            std::to_string(layout.stages),
                    .figures = lsq_stages({words.data(), m, 8, cols}, data.as<float>(), rows / 4, 4, layout)});
      }
    }
    training_steps(report, words, m, MatrixView(sample.data(), learn, cols), resources);
    if (plain_rows > 0) {
      for (const int64_t rounds : {16, 32}) bench.compare_plain(words, m, rounds, plain_rows);
    }
    const int64_t many = options.number(m == 7 ? "--many" : "--many-15", 0);
    if (many > 0) bench.encode_many(made, words, m, m == 7 ? 16 : 32, many);
  }
}

const kith::bench::Registered known({.name = "lsq_cuda",
                                     .about = "training and encoding of local search quantizers on a GPU",
                                     .options = {"--rows", "--cols", "--learn", "--rounds", "--runs", "--books",
                                                 "--parts", "--plain", "--search-rounds", "--start", "--many",
                                                 "--many-15"},
                                     .needs_gpu = true,
                                     .run = &run});

}  // namespace
