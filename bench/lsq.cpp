// What each part of local search quantization is worth: Table 2 of "Solving multi-codebook quantization in the GPU",
// and ablations: milliseconds of the processor, all threads together, for all vectors, and the mean squared error.
//
//   kith_bench lsq --learn FILE --base FILE [--books 7] [--train 100000] [--rows 20000] [--rounds 25] [--unit 1]
//                  [--starts 0] [--plain N] [--threads 0] [--parts codes,rounds,search,forms,blocks,plain,once]
//                  [--quantizer FILE]
//
// Codebooks are trained where that is faster; vectors are encoded on the CPU. --unit 1: vectors of length 1. --starts 1
// trains from every start. --plain: of so many rows, the search in plain f32, in halves, and as the paper prints it,
// with the difference to exact costs, row by row, and its standard error. --parts: of the tables, to run it in pieces.
// --quantizer: trained codebooks, or where those of the first piece go.
#include <kith/kith.hpp>

#include "core/divide.hpp"
#include "driver/benchmark.hpp"
#include "driver/timing.hpp"
#include "kernels/distance/canonical.hpp"
#include "lsq_plain.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/icm_engine.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace kith;

Resources on_the_cpu(int threads = 0) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = threads;
  return Resources(options);
}

MatrixBuffer read_rows(const std::string& path, int64_t count, bool unit) {
  const VectorFile file(path);
  const int64_t rows = std::min(count, file.rows());
  MatrixBuffer out(DType::f32, rows, file.cols(), "rows", Resources());
  file.read(0, out.mutable_view());
  for (int64_t i = 0; unit && i < rows; ++i) {
    auto* const row = reinterpret_cast<float*>(out.mutable_view().row(i));
    const double inverse = canonical_inverse_norm(canonical_squared_norm(row, file.cols()));
    for (int64_t c = 0; c < file.cols(); ++c) row[c] = static_cast<float>(row[c] * inverse);
  }
  return out;
}

class Ablations {
 public:
  Ablations(const bench::Options& options, bench::Report& report)
      : report_(report),
        unit_(options.number("--unit", 0) != 0),
        learn_(read_rows(options.text("--learn"), options.number("--train", 100'000), unit_)),
        base_(read_rows(options.text("--base"), options.number("--rows", 20'000), unit_)),
        starts_(options.number("--starts", 0) != 0),
        plain_rows_(std::min(options.number("--plain", 0), base_.rows())),
        parts_("," + options.text("--parts", "codes,rounds,search,forms,blocks,plain") + ","),
        file_(options.text("--quantizer")),
        resources_(on_the_cpu(static_cast<int>(options.number("--threads", 0)))) {
    params_.codebooks = options.number("--books", 7);
    params_.rounds = options.number("--rounds", 25);
    const std::string trained = made_before() ? "those of " + file_
                                              : std::to_string(learn_.rows()) + " training vectors, " +
                                                    std::to_string(params_.rounds) + " rounds";
    report_.note(std::to_string(params_.codebooks) + " codebooks, " + trained + "; " + std::to_string(base_.rows()) +
                 " vectors of " + std::to_string(base_.cols()) + " columns encoded");
  }

  void run() {
    if (wants("codes")) product_codes();
    train_or_load();
    if (starts_) all_starts();
    if (wants("rounds")) {
      for (const int64_t rounds : {0, 1, 2, 4, 8, 16, 32}) {
        trial("greedy start, " + std::to_string(rounds) + " rounds", usual_encoding(rounds));
      }
      sequential(16);
    }
    if (wants("search")) ways_to_search();
    if (wants("once")) trial("greedy start, 16 rounds", usual_encoding(16));
    if (wants("forms")) {
      changed("16 rounds, residual form (products in f32)", [](AdditiveEncoding& e) { e.form = SearchForm::products; });
    }
    for (int64_t rows = 64; wants("blocks") && rows <= 8192; rows *= 2) {
      changed("16 rounds, " + std::to_string(rows) + " vectors a block",
              [=](AdditiveEncoding& e) { e.block_rows = rows; });
    }
    if (wants("plain") && plain_rows_ > 0) plain_trials();
  }

 private:
  bool wants(const std::string& part) const { return parts_.find("," + part + ",") != std::string::npos; }

  bool made_before() const { return !file_.empty() && std::filesystem::exists(file_); }

  void train_or_load() {
    if (made_before()) {
      words_ = std::get<LocalSearchQuantizer>(load_quantizer(file_)).values();
      if (static_cast<int64_t>(words_.size()) != params_.codebooks * 256 * base_.cols()) {
        throw InvalidArgument(file_ + " holds other codebooks than --books and --base ask for");
      }
      return;
    }
    const LocalSearchQuantizer quantizer = train(AdditiveStart::opq, "training from OPQ");
    if (!file_.empty()) save_quantizer(quantizer, file_);
  }

  void all_starts() {
    const std::vector<float> usual = words_;
    train(AdditiveStart::residual, "training from residual k-means");
    trial("16 rounds, codebooks from residual k-means", usual_encoding(16));
    train(AdditiveStart::random, "training from random codes");
    trial("16 rounds, codebooks from random codes", usual_encoding(16));
    words_ = usual;
  }

  void ways_to_search() const {
    changed("random start, 16 rounds", [](AdditiveEncoding& e) { e.start = CodeStart::random; });
    changed("random order, 16 rounds", [](AdditiveEncoding& e) { e.search.random_order = true; });
    changed("random start and order, 16 rounds", [](AdditiveEncoding& e) {
      e.start = CodeStart::random;
      e.search.random_order = true;
    });
    changed("no perturbation, 16 rounds", [](AdditiveEncoding& e) { e.search.perturbed = 0; });
    for (const int64_t sweeps : {1, 2, 3, 4}) {
      changed("16 rounds, J = " + std::to_string(sweeps) + " sweeps",
              [=](AdditiveEncoding& e) { e.search.sweeps = sweeps; });
    }
    for (int64_t perturbed = 1; perturbed <= std::min<int64_t>(5, params_.codebooks); ++perturbed) {
      changed("16 rounds, k = " + std::to_string(perturbed) + " perturbed",
              [=](AdditiveEncoding& e) { e.search.perturbed = perturbed; });
    }
  }

  void line(const std::string& name, double seconds, int64_t rows, double error) const {
    report_.row({.name = name,
                 .shape = std::to_string(rows) + " vectors",
                 .ms = 1e3 * seconds,
                 .clock = "processor",
                 .figures = {{"us a vector", 1e6 * seconds / static_cast<double>(rows)}, {"error", error}}});
  }

  static double mean_of(const std::vector<float>& costs) {
    double sum = 0;
    for (const float cost : costs) sum += static_cast<double>(cost);
    return sum / static_cast<double>(costs.size());
  }

  Codebooks books() const { return {words_.data(), params_.codebooks, params_.bits, base_.cols()}; }

  AdditiveEncoding usual_encoding(int64_t rounds) const {
    AdditiveEncoding encoding;
    encoding.search = plan_of(params_, rounds, 0);
    return encoding;
  }

  // PQ and OPQ of as many bytes as the codebooks and a norm.
  void product_codes() {
    const int64_t bytes = params_.codebooks + 1;
    if (base_.cols() % bytes != 0) return;
    product("PQ" + std::to_string(bytes) + ": encoding", bytes, nullptr);
    VectorTransform rotation({.steps = "OPQ" + std::to_string(bytes)});
    rotation.train(learn_.view());
    product("OPQ" + std::to_string(bytes) + ": encoding, rotation included", bytes, &rotation);
  }

  void product(const std::string& name, int64_t bytes, const VectorTransform* rotation) {
    const Resources resources = on_the_cpu();
    ProductQuantizer quantizer({bytes});
    MatrixBuffer learn(DType::f32, learn_.rows(), learn_.cols(), "rotated", resources);
    MatrixBuffer base(DType::f32, base_.rows(), base_.cols(), "rotated", resources);
    if (rotation != nullptr) rotation->apply(learn_.view(), learn.mutable_view(), resources);
    quantizer.train(rotation == nullptr ? learn_.view() : learn.view());
    MatrixBuffer codes(DType::u8, base_.rows(), quantizer.code_bytes(), "codes", resources);
    MatrixBuffer decoded(DType::f32, base_.rows(), base_.cols(), "decoded", resources);
    const MatrixView from = rotation == nullptr ? base_.view() : base.view();
    const double seconds = bench::seconds_of([&] {
      if (rotation != nullptr) rotation->apply(base_.view(), base.mutable_view(), resources);
      quantizer.encode(from, codes.mutable_view(), resources);
    }).processor;
    quantizer.decode(codes.view(), decoded.mutable_view(), resources);
    double error = 0;  // rotations keep distances
    for (int64_t i = 0; i < base_.rows(); ++i) {
      error += static_cast<double>(
          canonical_pair<KeyKind::squared_l2>(reinterpret_cast<const float*>(from.row(i)),
                                              reinterpret_cast<const float*>(decoded.view().row(i)), base_.cols()));
    }
    line(name, seconds, base_.rows(), error / static_cast<double>(base_.rows()));
  }

  LocalSearchQuantizer train(AdditiveStart start, const std::string& name) {
    params_.train_start = start;
    LocalSearchQuantizer quantizer(params_);
    const double seconds = bench::seconds_of([&] { quantizer.train(learn_.view()); }).processor;
    words_ = quantizer.values();
    line(name + ", a training vector", seconds, learn_.rows(),
         quantizer.history().back() / static_cast<double>(learn_.rows()));
    return quantizer;
  }

  std::vector<float> encoded(const AdditiveEncoding& encoding, int64_t rows) const {
    std::vector<uint8_t> codes(static_cast<size_t>(rows * params_.codebooks));
    std::vector<float> costs(static_cast<size_t>(rows));
    encode_additive(books(), encoding, base_.view().slice(0, rows), codes.data(), costs.data(), resources_);
    return costs;
  }

  void trial(const std::string& name, const AdditiveEncoding& encoding) const {
    std::vector<float> costs;
    const double seconds = bench::seconds_of([&] { costs = encoded(encoding, base_.rows()); }).processor;
    line(name, seconds, base_.rows(), mean_of(costs));
  }

  void changed(const std::string& name, const std::function<void(AdditiveEncoding&)>& change) const {
    AdditiveEncoding encoding = usual_encoding(16);
    change(encoding);
    trial(name, encoding);
  }

  // By the same tables, but each row from its start to its last round by itself.
  void sequential(int64_t rounds) const {
    const Resources one = on_the_cpu(1);
    const int64_t rows = std::min<int64_t>(base_.rows(), 2'000);
    const int64_t cols = base_.cols();
    const SearchBooks search(books(), one);
    const PairwiseTables tables(search, one);
    const UnaryTerms terms(search.books(), tables, one);
    TableIcm engine(search, tables, terms, 1, one);
    LocalSearch local(usual_encoding(rounds).search, search.books(), 1, one);
    std::vector<float> row(static_cast<size_t>(cols));
    std::vector<float> moved(row.size());
    std::vector<uint8_t> codes(static_cast<size_t>(params_.codebooks));
    std::vector<float> costs;
    const double seconds = bench::seconds_of([&] {
      for (int64_t i = 0; i < rows; ++i) {
        const auto* const from = reinterpret_cast<const float*>(base_.view().row(i));
        std::copy_n(from, cols, row.begin());
        if (!search.move_row(row.data())) continue;
        for (int64_t c = 0; c < cols; ++c)
          moved[static_cast<size_t>(c)] = row[static_cast<size_t>(c)] - tables.origin()[c];
        const double norm = std::sqrt(canonical_squared_norm(moved.data(), cols));
        uint8_t fits = 1;
        engine.start_block();
        engine.take(moved.data(), &norm, 1, &fits);
        if (fits == 0) continue;
        engine.load(row.data());
        local.start_greedy(engine, 1, codes.data());
        float cost = 0;
        local.run(engine, &i, 1, codes.data(), &cost);
        costs.push_back(cost);
      }
    }).processor;
    line("sequential, 16 rounds, " + std::to_string(costs.size()) + " rows", seconds, rows, mean_of(costs));
  }

  void plain_trials() const {
    report_.note("16 rounds, " + std::to_string(plain_rows_) +
                 " vectors, beside the search by exact costs, row by row");
    const AdditiveEncoding encoding = usual_encoding(16);
    const std::vector<float> exact = encoded(encoding, plain_rows_);
    report_.row({.name = "exact costs", .figures = {{"error", mean_of(exact)}}});
    const auto compare = [&](const char* name, const plain::Ways& ways) {
      std::vector<double> found;
      const double seconds = bench::seconds_of([&] {
                               found = plain::errors(books(), reinterpret_cast<const float*>(base_.view().row(0)),
                                                     plain_rows_, encoding.search, ways);
                             }).processor;
      double sum = 0;
      double squares = 0;
      int64_t lower = 0;
      int64_t higher = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        const double apart = found[i] - static_cast<double>(exact[i]);
        sum += apart;
        squares += apart * apart;
        // Rounding of the cost itself is no difference.
        lower += apart < -1e-6 * found[i] ? 1 : 0;
        higher += apart > 1e-6 * found[i] ? 1 : 0;
      }
      const auto count = static_cast<double>(found.size());
      const double deviation = std::sqrt((squares - sum * sum / count) / (count - 1) / count);
      report_.row({.name = name,
                   .ms = 1e3 * seconds,
                   .clock = "processor",
                   .figures = {{"us a vector", 1e6 * seconds / count},
                               {"error", plain::mean(found)},
                               {"above exact costs %", 100 * sum / count / mean_of(exact)},
                               {"standard error %", 100 * deviation / mean_of(exact)},
                               {"rows lower", lower},
                               {"rows higher", higher}}});
    };
    compare("plain f32", {});
    compare("halves, nothing decided after", {.halves = true});
    compare("line 10 as printed: from codes not kept", {.printed_start = true});
    compare("line 19 as printed: no factor 2", {.printed_objective = true});
    compare("lines 10 and 19 as printed", {.printed_objective = true, .printed_start = true});
  }

  bench::Report& report_;
  const bool unit_;
  const MatrixBuffer learn_;
  const MatrixBuffer base_;
  const bool starts_;
  const int64_t plain_rows_;
  const std::string parts_;
  const std::string file_;
  const Resources resources_;
  LocalSearchParams params_;
  std::vector<float> words_;
};

const bench::Registered known({
    .name = "lsq",
    .about = "what each part of local search quantization is worth, on the CPU (the LSQ paper's Table 2)",
    .options = {"--learn", "--base", "--books", "--train", "--rows", "--rounds", "--unit", "--starts", "--plain",
                "--threads", "--parts", "--quantizer"},
    .run = [](const bench::Options& options, bench::Report& report) { Ablations(options, report).run(); },
});

}  // namespace
