// How near codes of so many bytes come to the vectors, and how often the true nearest neighbour is among the first N
// (R@N, in percent): Table 1 of "Solving multi-codebook quantization in the GPU", with residual codes and norms beside.
//
//   lsq_accuracy_bench --learn FILE --base FILE --query FILE [--bytes 8] [--train N] [--rows N] [--queries N]
//                      [--rounds 25] [--beam 5] [--unit 1] [--codes pq,opq,rq,lsq,norm]
//
// --unit 1 makes vectors of length 1 before everything else, for cosine. Seconds and microseconds are processor time of
// all threads. "LSQm + norm" has one codebook less, and a byte for the norm from 256 trained levels.
#include <kith/kith.hpp>

#include "kernels/codes/code_norm.hpp"
#include "kernels/distance/canonical.hpp"
#include "options.hpp"
#include "quantize/additive/norm_levels.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace kith;

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

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

struct Measured {
  double training = 0;  // seconds
  double encoding = 0;
  MatrixBuffer decoded;       // of the base
  std::vector<float> norms;   // that codes hold; none: those of the decoded
};

class Accuracy {
 public:
  Accuracy(const Options& options)
      : bytes_(options.number("--bytes", 8)),
        rounds_(options.number("--rounds", 25)),
        beam_(options.number("--beam", 5)),
        codes_(options.text("--codes", "pq,opq,rq,lsq,norm")),
        learn_(read_rows(options.text("--learn"), options.number("--train", 100'000), options.number("--unit", 0) != 0)),
        base_(read_rows(options.text("--base"), options.number("--rows", 1'000'000), options.number("--unit", 0) != 0)),
        query_(read_rows(options.text("--query"), options.number("--queries", 10'000), options.number("--unit", 0) != 0)),
        truth_(knn(query_.view(), base_.view(), {.k = 1, .metric = Metric::sqeuclidean}, Resources())),
        ranks_(bytes_ <= 8 ? std::vector<int64_t>{1, 10, 100} : std::vector<int64_t>{1, 2, 5}) {
    std::printf("%lld training vectors, %lld base vectors, %lld queries of %lld columns; %lld bytes a vector; %lld rounds "
                "of LSQ's training, a beam of %lld\n\n",
                static_cast<long long>(learn_.rows()), static_cast<long long>(base_.rows()),
                static_cast<long long>(query_.rows()), static_cast<long long>(base_.cols()),
                static_cast<long long>(bytes_), static_cast<long long>(rounds_), static_cast<long long>(beam_));
    std::printf("| code | training, s | encoding, us | mean squared error |");
    for (const int64_t rank : ranks_) std::printf(" R@%lld |", static_cast<long long>(rank));
    std::printf(" R@1 / OPQ's |\n|---|---|---|---|---|---|---|---|\n");
    std::fflush(stdout);
  }

  void run() {
    // Columns that do not divide are filled up with zeros.
    const int64_t filled = (base_.cols() + bytes_ - 1) / bytes_ * bytes_;
    const std::string padding = filled == base_.cols() ? "" : "Pad" + std::to_string(filled);
    if (wants("pq")) report("PQ", padding.empty() ? product(learn_.view(), base_.view()) : behind(padding, filled));
    if (wants("opq")) report("OPQ", behind((padding.empty() ? "" : padding + ",") + "OPQ" + std::to_string(bytes_), filled));
    if (wants("rq")) {
      ResidualQuantizer quantizer({bytes_, 8, beam_, 0, true});
      Measured measured;
      measured.training = timed([&] { quantizer.train(learn_.view()); });
      coded(quantizer, measured, [&](const MutableMatrixView& codes) { quantizer.encode(base_.view(), codes); });
      report("RQ", std::move(measured));
    }
    if (wants("lsq")) local(bytes_, false);
    if (wants("norm")) local(bytes_ - 1, true);
  }

 private:
  bool wants(const std::string& name) const { return ("," + codes_ + ",").find("," + name + ",") != std::string::npos; }

  static double timed(const std::function<void()>& work) {
    const double start = processor_seconds();
    work();
    return processor_seconds() - start;
  }

  template <typename Made, typename Encode>
  void coded(const Made& quantizer, Measured& measured, const Encode& encode) const {
    MatrixBuffer codes(DType::u8, base_.rows(), quantizer.code_bytes(), "codes", Resources());
    measured.encoding = timed([&] { encode(codes.mutable_view()); });
    measured.decoded = MatrixBuffer(DType::f32, base_.rows(), quantizer.cols(), "decoded", Resources());
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

  void local(int64_t books, bool norms) {
    LocalSearchParams params;
    params.codebooks = books;
    params.rounds = rounds_;
    LocalSearchQuantizer quantizer(params);
    const double training = timed([&] { quantizer.train(learn_.view()); });
    std::vector<float> levels;
    CodecView codec;
    codec.format.kind = CodeKind::additive;
    codec.format.norm = CodeNorm::cqint8;
    if (norms) {
      MatrixBuffer codes(DType::u8, learn_.rows(), quantizer.code_bytes(), "codes", Resources());
      MatrixBuffer decoded(DType::f32, learn_.rows(), learn_.cols(), "decoded", Resources());
      quantizer.encode(learn_.view(), codes.mutable_view());
      quantizer.decode(codes.view(), decoded.mutable_view());
      levels = train_norm_values(CodeNorm::cqint8, norms_of(decoded.view()));
      codec.levels = levels.data();
    }
    for (const int64_t rounds : {16, 32}) {
      Measured measured;
      measured.training = training;
      LocalSearchEncoding encoding;
      encoding.rounds = rounds;
      coded(quantizer, measured, [&](const MutableMatrixView& codes) { quantizer.encode(base_.view(), codes, encoding); });
      if (norms) {
        measured.norms = norms_of(measured.decoded.view());
        for (float& norm : measured.norms) norm = levels[norm_code(codec, norm)];
      }
      report("LSQ" + std::to_string(books) + (norms ? " + norm, " : ", ") + std::to_string(rounds) + " rounds",
             std::move(measured));
    }
  }

  static std::vector<float> norms_of(const MatrixView& rows) {
    std::vector<float> norms;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      norms.push_back(static_cast<float>(canonical_squared_norm(reinterpret_cast<const float*>(rows.row(i)), rows.cols())));
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
    const int64_t k = ranks_.back();
    if (measured.norms.empty()) {
      return knn(query_.view(), measured.decoded.view(), {.k = k, .metric = Metric::sqeuclidean}, Resources());
    }
    const MatrixBuffer base =
        widened(measured.decoded.view(), [&](int64_t i) { return -measured.norms[static_cast<size_t>(i)] / 2; });
    const MatrixBuffer query = widened(query_.view(), [](int64_t) { return 1.0f; });
    return knn(query.view(), base.view(), {.k = k, .metric = Metric::inner_product}, Resources());
  }

  void report(const std::string& name, const Measured& measured) {
    double error = 0;
    for (int64_t i = 0; i < base_.rows(); ++i) {
      const auto* const x = reinterpret_cast<const float*>(base_.view().row(i));
      const auto* const y = reinterpret_cast<const float*>(measured.decoded.view().row(i));
      for (int64_t c = 0; c < base_.cols(); ++c) error += static_cast<double>(x[c] - y[c]) * static_cast<double>(x[c] - y[c]);
    }
    const Neighbors found = found_by(measured);
    std::printf("| %s | %.1f | %.2f | %.6g |", name.c_str(), measured.training,
                1e6 * measured.encoding / static_cast<double>(base_.rows()), error / static_cast<double>(base_.rows()));
    for (const int64_t rank : ranks_) {
      int64_t hits = 0;
      for (int64_t q = 0; q < found.queries(); ++q) {
        hits += std::count(found.ids(q), found.ids(q) + rank, truth_.ids(q)[0]);
      }
      const double recall = 100.0 * static_cast<double>(hits) / static_cast<double>(found.queries());
      if (rank == 1 && name == "OPQ") rotated_recall_ = recall;
      if (rank == 1) first_recall_ = recall;
      std::printf(" %.2f |", recall);
    }
    if (rotated_recall_ > 0) {
      std::printf(" %.3f |\n", first_recall_ / rotated_recall_);
    } else {
      std::printf(" - |\n");
    }
    std::fflush(stdout);
  }

  const int64_t bytes_;
  const int64_t rounds_;
  const int64_t beam_;
  const std::string codes_;
  const MatrixBuffer learn_;
  const MatrixBuffer base_;
  const MatrixBuffer query_;
  const Neighbors truth_;
  const std::vector<int64_t> ranks_;
  double first_recall_ = 0;
  double rotated_recall_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options(argc, argv, {"--learn", "--base", "--query", "--bytes", "--train", "--rows", "--queries",
                                       "--rounds", "--beam", "--unit", "--codes"});
    Accuracy(options).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lsq_accuracy_bench: %s\n", error.what());
    return 1;
  }
}
