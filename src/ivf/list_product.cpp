#include "ivf/list_product.hpp"

#include "core/divide.hpp"
#include "core/half.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// To nearest, ties to even.
uint16_t bf16_of(float value) {
  const uint32_t bits = bits_of_float(value);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// Whether vectors can be put together from rounded codewords: nothing is taken off them, or only their own centre.
bool uses_words(const IvfModel& model) {
  const KeyKind kind = key_kind(model.metric);
  return model.codec->format().kind == CodeKind::product && kind != KeyKind::cosine &&
         (model.residual || kind == KeyKind::inner_product);
}

}  // namespace

ListProductShape ListProductShape::choose(int64_t cols, int64_t queries, const CpuExtensions& cpu) {
  constexpr int64_t kQueryBytes = 1 << 18;
  constexpr int64_t kPieceBytes = 1 << 19;
  constexpr int64_t kFewestRows = 64;
  const int64_t bytes = array_bytes<float>(cols);
  ListProductShape shape;
  shape.engine = cpu.amx ? ListEngine::tiles : ListEngine::panels;
  shape.query_block =
      std::clamp<int64_t>(round_up(std::min(kQueryBytes / bytes, queries), kHitQueries), kHitQueries, 512);
  shape.piece_rows = std::clamp<int64_t>(round_up(kPieceBytes / bytes, kFewestRows), kFewestRows, 1024);
  return shape;
}

ListTables::ListTables(const IvfModel& model, ListEngine engine, std::vector<float> origin, const Resources& resources)
    : model_(model), kind_(key_kind(model.metric)), origin_(std::move(origin)) {
  origin_.resize(static_cast<size_t>(model.cols()), 0.0f);
  if (engine != ListEngine::tiles || !uses_words(model)) return;
  const CodeFormat& format = model.codec->format();
  const float* const values = model.codec->view().codewords;
  const int64_t width = format.part_cols();
  words_ = HostArray<uint16_t>(format.parts * format.codewords() * width, "rounded codewords", resources);
  squares_ = HostArray<float>(format.parts * format.codewords(), "rounded codewords", resources);
  double error = 0;
  for (int64_t p = 0; p < format.parts; ++p) {
    double largest = 0;
    for (int64_t w = p * format.codewords(); w < (p + 1) * format.codewords(); ++w) {
      double squares = 0;
      double errors = 0;
      for (int64_t i = w * width; i < (w + 1) * width; ++i) {
        words_[i] = bf16_of(values[i]);
        const double moved =
            static_cast<double>(values[i]) - static_cast<double>(float_of_bits(static_cast<uint32_t>(words_[i]) << 16));
        squares += static_cast<double>(values[i]) * values[i];
        errors += moved * moved;
      }
      squares_[w] = static_cast<float>(squares);
      largest = std::max(largest, errors);
    }
    error += largest;
  }
  word_error_ = static_cast<float>(std::sqrt(error));
}

int64_t ListTables::bytes_for(const IvfModel& model, ListEngine engine) {
  if (engine != ListEngine::tiles || !uses_words(model)) return 0;
  const CodeFormat& format = model.codec->format();
  return format.codewords() * (array_bytes<uint16_t>(format.cols) + array_bytes<float>(format.parts));
}

std::unique_ptr<ListProduct> make_list_product(const ListTables& tables, const ListProductShape& shape,
                                               const Resources& resources) {
  return shape.engine == ListEngine::tiles ? make_tile_list_product(tables, shape, resources)
                                           : make_panel_list_product(tables, shape, resources);
}

int64_t list_product_bytes(const ListProductShape& shape, int64_t cols) {
  return shape.engine == ListEngine::tiles ? tile_list_product_bytes(shape, cols)
                                           : panel_list_product_bytes(shape, cols);
}

}  // namespace kith
