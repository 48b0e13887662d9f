// Local search quantization on one machine: training, encoding, and what each part of the search is worth. Prints
// processor time for each vector and the mean squared error.
//
//   lsq_bench LEARN BASE [codebooks [training rows [encoded rows [training rounds]]]]
#include <kith/local_search_quantizer.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>

#include "core/divide.hpp"
#include "quantize/additive/additive_encoding.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

// Of the processor, all threads together: what else runs on the machine does not count.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

kith::MatrixBuffer read_rows(const std::string& path, int64_t count) {
  const kith::VectorFile file(path);
  const int64_t rows = std::min(count, file.rows());
  kith::MatrixBuffer out(kith::DType::f32, rows, file.cols(), "rows", kith::Resources());
  file.read(0, out.mutable_view());
  return out;
}

struct Trial {
  const char* name;
  kith::AdditiveEncoding encoding;
};

void run_trial(const kith::Codebooks& books, const kith::MatrixView& rows, const Trial& trial) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows.rows() * books.books));
  std::vector<float> costs(static_cast<size_t>(rows.rows()));
  const double start = processor_seconds();
  kith::encode_additive(books, trial.encoding, rows, codes.data(), costs.data(), kith::Resources());
  const double time = processor_seconds() - start;
  double sum = 0;
  for (const float cost : costs) sum += static_cast<double>(cost);
  std::printf("| %-34s | %9.2f | %10.1f |\n", trial.name, 1e6 * time / static_cast<double>(rows.rows()),
              sum / static_cast<double>(rows.rows()));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: lsq_bench LEARN BASE [codebooks [training rows [encoded rows [training rounds]]]]\n");
    return 2;
  }
  const auto number = [&](int at, int64_t otherwise) { return argc > at ? std::atoll(argv[at]) : otherwise; };
  kith::LocalSearchParams params;
  params.codebooks = number(3, 7);
  const kith::MatrixBuffer learn = read_rows(argv[1], number(4, 100000));
  const kith::MatrixBuffer base = read_rows(argv[2], number(5, 20000));
  params.rounds = number(6, 25);
  kith::ResourceOptions options;
  options.log = [](kith::LogLevel, std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  };
  kith::LocalSearchQuantizer quantizer(params);
  const double start = processor_seconds();
  quantizer.train(learn.view(), kith::Resources(options));
  std::printf("training: %lld rows, %lld codebooks, %lld rounds: %.1f s of the processor\n", static_cast<long long>(learn.rows()),
              static_cast<long long>(params.codebooks), static_cast<long long>(params.rounds), processor_seconds() - start);
  const std::vector<float> values = quantizer.values();
  const kith::Codebooks books{values.data(), params.codebooks, params.bits, base.cols()};

  std::printf("\n| encoding of %lld rows                 | us/vector |      error |\n|---|---|---|\n",
              static_cast<long long>(base.rows()));
  const auto usual = [&](int64_t rounds) {
    kith::AdditiveEncoding encoding;
    encoding.search = kith::plan_of(params, rounds, 0);
    return encoding;
  };
  const auto trial = [&](const char* name, const kith::AdditiveEncoding& encoding) {
    run_trial(books, base.view(), {name, encoding});
  };
  for (const int64_t rounds : {0, 1, 4, 8, 16, 32}) {
    trial(("greedy start, " + std::to_string(rounds) + " rounds").c_str(), usual(rounds));
  }
  kith::AdditiveEncoding changed = usual(16);
  changed.start = kith::CodeStart::random;
  trial("random start, 16 rounds", changed);
  changed = usual(16);
  changed.search.random_order = true;
  trial("random order, 16 rounds", changed);
  changed = usual(16);
  changed.search.perturbed = 0;
  trial("no perturbation, 16 rounds", changed);
  for (const int64_t sweeps : {1, 2, 3}) {
    changed = usual(16);
    changed.search.sweeps = sweeps;
    trial(("16 rounds of " + std::to_string(sweeps) + " sweeps").c_str(), changed);
  }
  for (const int64_t perturbed : {1, 2, 3, 4, 5}) {
    changed = usual(16);
    changed.search.perturbed = std::min(perturbed, params.codebooks);
    trial(("16 rounds, " + std::to_string(perturbed) + " perturbed").c_str(), changed);
  }
  if (base.rows() <= 20000) {
    changed = usual(16);
    changed.form = kith::SearchForm::products;
    trial("16 rounds by products (f32)", changed);
  }
  return 0;
}
