// How near codes of so many bytes come to the vectors, and how often the true nearest neighbour is among the first N
// (R@N, in percent): Table 1 of "Solving multi-codebook quantization in the GPU", with residual codes and norms beside.
//
//   kith_bench lsq_accuracy --learn FILE --base FILE --query FILE [--bytes 8] [--learn-first N] [--train N] [--rows N]
//                           [--queries N] [--beam 5] [--unit 1] [--codes pq,opq,rq,lsq,norm]
//                           [--rounds 25] [--search-rounds 8] [--start opq|residual|random] [--anneal 0.35]
//                           [--lambda 10] [--perturbed 0] [--encode 16,32] [--curves 1]
//
// Lists, as in --lambda 10,30 --start opq,residual, train LSQ once for each combination.
// --unit 1 makes vectors of length 1 before everything else, and neighbours are those by cosine of decoded vectors.
// Seconds and microseconds are those of the clock. "LSQm + norm" has one codebook less, and a byte for the norm from
// 256 trained levels. "Error, trained" is that of the training vectors: where it is far below that of the base, more of
// them would help. --encode: the rounds of the search for codes. --curves 1 adds R@N for twelve N up to 100, which
// lsq_curves.py draws.
#include <kith/kith.hpp>

#include "driver/benchmark.hpp"
#include "driver/timing.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/distance/canonical.hpp"
#include "quantize/additive/code_norms.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kFound = 100;  // neighbours of a query

MatrixBuffer read_rows(const std::string& path, int64_t first, int64_t count, bool unit) {
  const VectorFile file(path);
  const int64_t rows = std::min(count, file.rows() - first);
  MatrixBuffer out(DType::f32, rows, file.cols(), "rows", Resources());
  file.read(first, out.mutable_view());
  for (int64_t i = 0; unit && i < rows; ++i) {
    auto* const row = reinterpret_cast<float*>(out.mutable_view().row(i));
    const double inverse = canonical_inverse_norm(canonical_squared_norm(row, file.cols()));
    for (int64_t c = 0; c < file.cols(); ++c) row[c] = static_cast<float>(row[c] * inverse);
  }
  return out;
}

std::vector<std::string> words_in(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream text(list);
  for (std::string one; std::getline(text, one, ',');) words.push_back(one);
  return words;
}

std::vector<int64_t> numbers_in(const std::string& list) {
  std::vector<int64_t> numbers;
  for (const std::string& one : words_in(list)) numbers.push_back(std::stoll(one));
  return numbers;
}

// Mean squared distances of rows and what their codes stand for.
double error_of(const MatrixView& rows, const MatrixView& decoded) {
  double error = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const auto* const x = reinterpret_cast<const float*>(rows.row(i));
    const auto* const y = reinterpret_cast<const float*>(decoded.row(i));
    for (int64_t c = 0; c < rows.cols(); ++c)
      error += static_cast<double>(x[c] - y[c]) * static_cast<double>(x[c] - y[c]);
  }
  return error / static_cast<double>(rows.rows());
}

struct Measured {
  double training = 0;  // seconds
  double encoding = 0;
  double trained_error = 0;   // of the training vectors; 0: not measured
  MatrixBuffer decoded;       // of the base
  std::vector<float> norms;   // that codes hold; none: those of the decoded
};

class Accuracy {
 public:
  Accuracy(const bench::Options& options, bench::Report& report)
      : report_(report),
        bytes_(options.number("--bytes", 8)),
        beam_(options.number("--beam", 5)),
        codes_(options.text("--codes", "pq,opq,rq,lsq,norm")),
        encode_rounds_(numbers_in(options.text("--encode", "16,32"))),
        unit_(options.number("--unit", 0) != 0),
        curves_(options.number("--curves", 0) != 0),
        learn_(read_rows(options.text("--learn"), options.number("--learn-first", 0),
                         options.number("--train", 100'000), unit_)),
        base_(read_rows(options.text("--base"), 0, options.number("--rows", 1'000'000), unit_)),
        query_(read_rows(options.text("--query"), 0, options.number("--queries", 10'000), unit_)),
        truth_(knn(query_.view(), base_.view(), {.k = 1, .metric = Metric::sqeuclidean}, Resources())),
        ranks_(bytes_ <= 8 ? std::vector<int64_t>{1, 10, 100} : std::vector<int64_t>{1, 2, 5}) {
    vary(options, "--start", "opq",
         [](auto& params, const auto& one) { params.train_start = parse_additive_start(one); });
    vary(options, "--rounds", "25", [](auto& params, const auto& one) { params.rounds = std::stoll(one); });
    vary(options, "--search-rounds", "8",
         [](auto& params, const auto& one) { params.train_search_rounds = std::stoll(one); });
    vary(options, "--lambda", "10", [](auto& params, const auto& one) { params.regularization = std::stod(one); });
    vary(options, "--anneal", "0.35", [](auto& params, const auto& one) { params.anneal = std::stod(one); });
    vary(options, "--perturbed", "0", [](auto& params, const auto& one) { params.perturbed = std::stoll(one); });
    report_.note(std::to_string(learn_.rows()) + " training vectors, " + std::to_string(base_.rows()) +
                 " base vectors, " + std::to_string(query_.rows()) + " queries of " + std::to_string(base_.cols()) +
                 " columns; " + std::to_string(bytes_) + " bytes a vector; a beam of " + std::to_string(beam_) +
                 "; LSQ's training:" + constant_);
  }

  void run() {
    // Columns that do not divide are filled up with zeros.
    const int64_t filled = (base_.cols() + bytes_ - 1) / bytes_ * bytes_;
    const std::string padding = filled == base_.cols() ? "" : "Pad" + std::to_string(filled);
    if (wants("pq"))
      report_recall("PQ", padding.empty() ? product(learn_.view(), base_.view()) : behind(padding, filled));
    if (wants("opq"))
      report_recall("OPQ", behind((padding.empty() ? "" : padding + ",") + "OPQ" + std::to_string(bytes_), filled));
    if (wants("rq")) {
      ResidualQuantizer quantizer({bytes_, 8, beam_, 0, true});
      Measured measured;
      measured.training = timed([&] { quantizer.train(learn_.view()); });
      coded(quantizer, measured, [&](const MutableMatrixView& codes) { quantizer.encode(base_.view(), codes); });
      report_recall("RQ", std::move(measured));
    }
    for (const auto& [params, name] : trainings_) {
      if (wants("lsq")) local(params, bytes_, false, name);
      if (wants("norm") && !unit_) local(params, bytes_ - 1, true, name);  // cosine needs none
    }
  }

 private:
  // Every training so far with each of the option's values. What varies is named in the table, the others above it.
  template <typename Set>
  void vary(const bench::Options& options, const std::string& name, const std::string& usual, const Set& set) {
    const std::vector<std::string> values = words_in(options.text(name, usual));
    if (values.size() == 1) constant_ += " " + name + " " + values[0];
    std::vector<std::pair<LocalSearchParams, std::string>> all;
    for (const auto& [params, text] : trainings_) {
      for (const std::string& value : values) {
        all.emplace_back(params, values.size() == 1 ? text : text + " " + name + " " + value);
        set(all.back().first, value);
      }
    }
    trainings_ = std::move(all);
  }

  bool wants(const std::string& name) const { return ("," + codes_ + ",").find("," + name + ",") != std::string::npos; }

  static double timed(const std::function<void()>& work) { return bench::seconds_of(work).wall; }

  template <typename Made, typename Encode>
  void coded(const Made& quantizer, Measured& measured, const Encode& encode) const {
    MatrixBuffer codes(DType::u8, base_.rows(), quantizer.code_bytes(), "codes", Resources());
    measured.encoding = timed([&] { encode(codes.mutable_view()); });
    measured.decoded = MatrixBuffer(DType::f32, base_.rows(), quantizer.dimension(), "decoded", Resources());
    quantizer.decode(codes.view(), measured.decoded.mutable_view());
  }

  Measured product(const MatrixView& learn, const MatrixView& base) const {
    ProductQuantizer quantizer({bytes_});
    Measured measured;
    measured.training = timed([&] { quantizer.train(learn); });
    coded(quantizer, measured, [&](const MutableMatrixView& codes) { quantizer.encode(base, codes); });
    return measured;
  }

  // Product codes behind a transform.
  Measured behind(const std::string& steps, int64_t cols) const {
    VectorTransform rotation({.steps = steps});
    const double training = timed([&] { rotation.train(learn_.view()); });
    MatrixBuffer learn(DType::f32, learn_.rows(), cols, "rotated", Resources());
    MatrixBuffer base(DType::f32, base_.rows(), cols, "rotated", Resources());
    MatrixBuffer back(DType::f32, base_.rows(), base_.cols(), "rotated", Resources());
    rotation.apply(learn_.view(), learn.mutable_view());
    const double applied = timed([&] { rotation.apply(base_.view(), base.mutable_view()); });
    Measured measured = product(learn.view(), base.view());
    measured.training += training;
    measured.encoding += applied;
    rotation.reverse(measured.decoded.view(), back.mutable_view());
    measured.decoded = std::move(back);
    return measured;
  }

  void local(LocalSearchParams params, int64_t books, bool norms, const std::string& named) {
    params.codebooks = books;
    LocalSearchQuantizer quantizer(params);
    const double training = timed([&] { quantizer.train(learn_.view()); });
    MatrixBuffer learnt(DType::u8, learn_.rows(), quantizer.code_bytes(), "codes", Resources());
    MatrixBuffer decoded(DType::f32, learn_.rows(), learn_.cols(), "decoded", Resources());
    quantizer.encode(learn_.view(), learnt.mutable_view());
    quantizer.decode(learnt.view(), decoded.mutable_view());
    const double trained_error = error_of(learn_.view(), decoded.view());
    std::vector<float> levels;
    CodecView codec;
    codec.format.kind = CodeKind::additive;
    codec.format.norm = CodeNorm::cqint8;
    if (norms) {
      levels = train_norm_values(CodeNorm::cqint8, norms_of(decoded.view()));
      codec.levels = levels.data();
    }
    for (const int64_t rounds : encode_rounds_) {
      Measured measured;
      measured.training = training;
      measured.trained_error = trained_error;
      LocalSearchEncoding encoding;
      encoding.rounds = rounds;
      coded(quantizer, measured,
            [&](const MutableMatrixView& codes) { quantizer.encode(base_.view(), codes, encoding); });
      if (norms) {
        measured.norms = norms_of(measured.decoded.view());
        for (float& norm : measured.norms) norm = levels[norm_code(codec, norm)];
      }
      report_recall(
          "LSQ" + std::to_string(books) + (norms ? " + norm, " : ", ") + std::to_string(rounds) + " rounds" + named,
          std::move(measured));
    }
  }

  static std::vector<float> norms_of(const MatrixView& rows) {
    std::vector<float> norms;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      norms.push_back(
          static_cast<float>(canonical_squared_norm(reinterpret_cast<const float*>(rows.row(i)), rows.cols())));
    }
    return norms;
  }

  // One more column: the largest of q x - norm / 2 is the nearest.
  static MatrixBuffer widened(const MatrixView& rows, const std::function<float(int64_t)>& value) {
    MatrixBuffer wide(DType::f32, rows.rows(), rows.cols() + 1, "rows", Resources());
    for (int64_t i = 0; i < rows.rows(); ++i) {
      auto* const to = reinterpret_cast<float*>(wide.mutable_view().row(i));
      widen_row(rows, i, to);
      to[rows.cols()] = value(i);
    }
    return wide;
  }

  Neighbors found_by(const Measured& measured) const {
    const int64_t k = kFound;
    if (measured.norms.empty()) {
      const Metric metric = unit_ ? Metric::cosine : Metric::sqeuclidean;
      return knn(query_.view(), measured.decoded.view(), {.k = k, .metric = metric}, Resources());
    }
    const MatrixBuffer base =
        widened(measured.decoded.view(), [&](int64_t i) { return -measured.norms[static_cast<size_t>(i)] / 2; });
    const MatrixBuffer query = widened(query_.view(), [](int64_t) { return 1.0f; });
    return knn(query.view(), base.view(), {.k = k, .metric = Metric::inner_product}, Resources());
  }

  void report_recall(const std::string& name, const Measured& measured) {
    const Neighbors found = found_by(measured);
    std::vector<int64_t> hits(kFound + 1);  // at most so far down
    for (int64_t q = 0; q < found.queries(); ++q) {
      const auto* const ids = found.ids(q);
      const auto at = std::find(ids, ids + kFound, truth_.ids(q)[0]) - ids;
      if (at < kFound) ++hits[static_cast<size_t>(at + 1)];
    }
    std::partial_sum(hits.begin(), hits.end(), hits.begin());
    const auto recall = [&](int64_t rank) {
      return 100.0 * static_cast<double>(hits[static_cast<size_t>(rank)]) / static_cast<double>(found.queries());
    };
    const double error = error_of(base_.view(), measured.decoded.view());
    bench::Row row{.name = name,
                   .figures = {{"training s", measured.training},
                               {"encoding us", 1e6 * measured.encoding / static_cast<double>(base_.rows())},
                               {"error", error}}};
    if (measured.trained_error > 0) row.figures.emplace_back("error, trained", measured.trained_error);
    for (const int64_t rank : ranks_) row.figures.emplace_back("R@" + std::to_string(rank), recall(rank));
    if (name == "OPQ") rotated_recall_ = recall(1);
    if (rotated_recall_ > 0) row.figures.emplace_back("R@1 / OPQ's", recall(1) / rotated_recall_);
    if (curves_) {
      for (const int64_t rank : {1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100}) {
        row.figures.emplace_back("curve@" + std::to_string(rank), recall(rank));
      }
      row.labels = {{"bytes", std::to_string(bytes_)}, {"code", name}};
    }
    report_.row(row);
  }

  bench::Report& report_;
  const int64_t bytes_;
  const int64_t beam_;
  const std::string codes_;
  const std::vector<int64_t> encode_rounds_;
  const bool unit_;
  const bool curves_;
  std::vector<std::pair<LocalSearchParams, std::string>> trainings_{{{}, ""}};
  std::string constant_;
  const MatrixBuffer learn_;
  const MatrixBuffer base_;
  const MatrixBuffer query_;
  const Neighbors truth_;
  const std::vector<int64_t> ranks_;
  double rotated_recall_ = 0;
};

const bench::Registered known({
    .name = "lsq_accuracy",
    .about = "error and recall of codes of equal bytes (the LSQ paper's Table 1 and curves)",
    .options = {"--learn", "--base", "--query", "--bytes", "--learn-first", "--train", "--rows", "--queries",
                "--rounds", "--search-rounds", "--start", "--anneal", "--lambda", "--perturbed", "--beam", "--unit",
                "--codes", "--encode", "--curves"},
    .run = [](const bench::Options& options, bench::Report& report) { Accuracy(options, report).run(); },
});

}  // namespace
