// Quantizers: scalar, product, residual and local-search codes; trained, encoded, decoded, looked up, saved.
//
// The training of LSQ is the one thing whose bytes depend on the device. It has entry points of its own, lsq_train and
// index_lsq_train; everywhere else such codebooks are drawn, or trained on the CPU.
#include "case.hpp"

namespace hashes {
namespace {

using namespace kith;

template <typename Quantizer>
std::vector<uint8_t> codes_of(const Quantizer& quantizer, const MatrixView& rows, const Resources& resources) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows.rows() * quantizer.code_bytes()));
  quantizer.encode(rows, MutableMatrixView(codes.data(), rows.rows(), quantizer.code_bytes()), resources);
  return codes;
}

template <typename Quantizer>
void hash_decoded(Hash& hash, const Quantizer& quantizer, const std::vector<uint8_t>& codes, int64_t rows,
                  const Resources& resources) {
  std::vector<float> out(static_cast<size_t>(rows * quantizer.dimension()));
  quantizer.decode(MatrixView(codes.data(), rows, quantizer.code_bytes()),
                   MutableMatrixView(out.data(), rows, quantizer.dimension()), resources);
  hash.add(out);
}

// What every quantizer does once it is trained. `words`: columns of a lookup table.
template <typename Quantizer>
void trained_calls(Case& c, const Quantizer& quantizer, const Rows& x, Metric table_metric, int64_t words) {
  std::vector<uint8_t> codes;
  c.call("encode", [&](Hash& hash) {
    codes = codes_of(quantizer, x.view(), c.resources);
    hash.bytes(codes.data(), static_cast<int64_t>(codes.size()));
  });
  if (codes.empty()) return;
  c.call("decode", [&](Hash& hash) { hash_decoded(hash, quantizer, codes, x.rows(), c.resources); });
  if (words > 0 && c.draws.chance(60)) {
    c.call("lookup_table", [&](Hash& hash) {
      const MatrixView queries = x.host().slice(0, std::min<int64_t>(5, x.rows()));
      std::vector<float> out(static_cast<size_t>(queries.rows() * words));
      quantizer.lookup_table(queries, table_metric, MutableMatrixView(out.data(), queries.rows(), words), c.resources);
      hash.add(out);
    });
  }
  if (c.draws.chance(40)) {
    c.call("save", [&](Hash& hash) {
      const std::string path = c.path("quantizer.kith");
      save_quantizer(quantizer, path, c.resources);
      hash.file(path);
      const kith::Quantizer loaded = load_quantizer(path, c.resources);
      hash.text(name_of(loaded));
      std::visit(
          [&](const auto& same) {
            const std::vector<uint8_t> again = codes_of(same, x.host(), c.resources);
            hash.bytes(again.data(), static_cast<int64_t>(again.size()));
          },
          loaded);
    });
  }
}

template <typename Quantizer>
void train(Case& c, Quantizer& quantizer, const Rows& x, const Resources& resources) {
  const int64_t form = c.draws.between(0, 9);
  c.call("train", [&](Hash& hash) {
    if (form == 0) {
      const std::string path = c.path("quantizer.npy");
      write_vectors(path, x.host(), x.dtype() == DType::bf16 ? DType::f32 : x.dtype());
      quantizer.train(VectorFile(path), resources);
    } else if (form == 1) {
      c.under_least_memory(
          [&](const Resources& limited) { quantizer.train(x.view(), limited.with_device(resources.device())); });
    } else {
      quantizer.train(x.view(), resources);
    }
    hash.add(quantizer.values());
    hash.number(quantizer.dimension());
    hash.number(quantizer.code_bytes());
  });
}

Rows draw_vectors(Case& c, int64_t rows, int64_t cols) {
  const Source source = c.draws.chance(70) ? draw_plain_source(c.draws) : draw_source(c.draws, Metric::l2);
  const DType dtype = draw_dtype(c.draws, Metric::l2);
  Rows x(source, dtype, 0, rows, cols, c.draws.chance(15) ? 2 : 0);
  if (c.draws.chance(40)) x.move_to_device();
  c.note(x);
  return x;
}

Metric draw_table_metric(Draws& draws) { return draws.of({Metric::sqeuclidean, Metric::inner_product}); }

void scalar_case(Case& c) {
  const int bits = c.draws.of({4, 6, 8, 16});
  const int64_t rows = draw_rows(c.draws);
  const int64_t cols = draw_cols(c.draws);
  const Rows x = draw_vectors(c, rows, cols);
  ScalarQuantizer quantizer({.bits = bits});
  c.note("bits", bits);
  train(c, quantizer, x, c.resources);
  const Metric metric = draw_table_metric(c.draws);
  if (quantizer.trained()) trained_calls(c, quantizer, x, metric, bits == 16 ? 0 : cols << bits);
}

void product_case(Case& c) {
  const int bits = c.draws.of({4, 4, 5, 6, 7, 8});
  const int64_t parts = c.draws.between(1, 8);
  const int64_t each = c.draws.between(1, 6);
  const int64_t rows = c.draws.between(int64_t{1} << bits, 500);
  const Rows x = draw_vectors(c, rows, parts * each);
  ProductQuantizer quantizer({.parts = parts, .bits = bits, .seed = c.draws.bits()});
  c.note("parts", parts);
  c.note("bits", bits);
  train(c, quantizer, x, c.resources);
  const Metric metric = draw_table_metric(c.draws);
  if (quantizer.trained()) trained_calls(c, quantizer, x, metric, parts << bits);
}

void residual_case(Case& c) {
  const int bits = c.draws.between(0, 9) == 0 ? 8 : static_cast<int>(c.draws.between(1, 6));
  const int64_t books = c.draws.between(1, 5);
  const int64_t rows = c.draws.between(int64_t{1} << bits, 350);
  const int64_t cols = c.draws.between(1, 33);
  const Rows x = draw_vectors(c, rows, cols);
  ResidualQuantizerParams params{.codebooks = books, .bits = bits};
  params.beam = c.draws.of<int64_t>({1, 2, 5, 16});
  params.seed = c.draws.bits();
  ResidualQuantizer quantizer(params);
  c.note("books", books);
  c.note("bits", bits);
  train(c, quantizer, x, c.resources);
  if (quantizer.trained()) trained_calls(c, quantizer, x, Metric::inner_product, books << bits);
}

LocalSearchParams draw_local_search(Case& c) {
  LocalSearchParams params;
  params.codebooks = c.draws.between(1, 6);
  params.bits = static_cast<int>(c.draws.between(2, 5));
  params.rounds = c.draws.between(1, 4);
  params.train_search_rounds = c.draws.between(1, 3);
  params.train_start = c.draws.of({AdditiveStart::opq, AdditiveStart::residual, AdditiveStart::random});
  params.anneal = c.draws.of({0.0, 0.35});
  params.sweeps = c.draws.between(1, 4);
  params.order = c.draws.of({SweepOrder::fixed, SweepOrder::random});
  params.seed = c.draws.bits();
  c.note(name_of(params.train_start));
  c.note("books", params.codebooks);
  c.note("bits", params.bits);
  return params;
}

// Encoding with codebooks that were drawn, in every way.
void local_search_case(Case& c) {
  const LocalSearchParams params = draw_local_search(c);
  const int64_t rows = c.draws.between(1, 300);
  const int64_t cols = c.draws.between(1, 40);
  const Rows x = draw_vectors(c, rows, cols);
  const Rows words({.pattern = Pattern::bell, .key = c.draws.bits()}, DType::f32, 0, params.codebooks << params.bits,
                   cols);
  LocalSearchQuantizer quantizer(params);
  quantizer.set_values({static_cast<const float*>(words.host().data()), words.rows() * cols, {}});
  LocalSearchEncoding encoding;
  encoding.rounds = c.draws.between(0, 8);
  encoding.first_row = c.draws.of<int64_t>({0, 7, 1000});
  encoding.start = c.draws.of({CodeStart::greedy, CodeStart::random});
  encoding.seed = c.draws.bits();
  std::vector<uint8_t> codes(static_cast<size_t>(rows * quantizer.code_bytes()));
  const MutableMatrixView out(codes.data(), rows, quantizer.code_bytes());
  c.call("start", [&](Hash& hash) {
    quantizer.encode(x.view(), out, encoding, c.resources);
    hash.add(out);
  });
  c.call("continue", [&](Hash& hash) {
    encoding.from_round = encoding.rounds;
    encoding.rounds = 2;
    encoding.start = CodeStart::given;
    quantizer.encode(x.view(), out, encoding, c.resources);
    hash.add(out);
  });
  trained_calls(c, quantizer, x, Metric::inner_product, params.codebooks << params.bits);
}

void local_search_training_case(Case& c) {
  const LocalSearchParams params = draw_local_search(c);
  const int64_t cols = params.codebooks * c.draws.between(1, 6);
  const Rows x = draw_vectors(c, c.draws.between(150, 400), cols);
  LocalSearchQuantizer quantizer(params);
  train(c, quantizer, x, c.resources);
  if (!quantizer.trained()) return;
  c.call("history", [&](Hash& hash) { hash.add(quantizer.history()); });
  trained_calls(c, quantizer, x, Metric::inner_product, params.codebooks << params.bits);
}

}  // namespace

std::vector<EntryPoint> quantize_cases() {
  return {{"scalar", 90, scalar_case},
          {"product", 90, product_case},
          {"residual", 70, residual_case},
          {"local_search", 70, local_search_case},
          {"lsq_train", 40, local_search_training_case}};
}

}  // namespace hashes
