#include "ivf/list_product.hpp"

#include "core/divide.hpp"
#include "core/half.hpp"
#include "kernels/panels/panel_packing.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// To nearest, ties to even.
uint16_t bf16_of(float value) {
  const uint32_t bits = bits_of_float(value);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// Queries of a list up to which tables take less time than decoding it.
int64_t most_for_tables(const IvfModel& model, const CpuExtensions& cpu) {
  if (model.codec->format().kind != CodeKind::product || model.metric == Metric::cosine) return 0;
  return cpu.vbmi && model.codec->format().bits == 8 ? 8 : 4;
}

}  // namespace

ListProductShape ListProductShape::choose(const IvfModel& model, int64_t queries, const CpuExtensions& cpu) {
  constexpr int64_t kQueryBytes = 1 << 18;
  constexpr int64_t kPieceBytes = 1 << 19;
  constexpr int64_t kFewestRows = 64;
  const int64_t bytes = array_bytes<float>(model.cols());
  ListProductShape shape;
  shape.engine = cpu.amx ? ListEngine::tiles : ListEngine::panels;
  shape.few_queries = most_for_tables(model, cpu);
  shape.query_block =
      std::clamp<int64_t>(round_up(std::min(kQueryBytes / bytes, queries), kHitQueries), kHitQueries, 512);
  shape.piece_rows = std::clamp<int64_t>(round_up(kPieceBytes / bytes, kFewestRows), kFewestRows, 1024);
  return shape;
}

ListTables::ListTables(const IvfModel& model, std::vector<float> origin, const Resources& resources)
    : model_(model), kind_(key_kind(model.metric)), resources_(resources), origin_(std::move(origin)) {
  origin_.resize(static_cast<size_t>(model.cols()), 0.0f);
}

bool ListTables::has_rounded_words() const {
  return model_.codec->format().kind == CodeKind::product && kind_ != KeyKind::cosine &&
         (model_.residual || kind_ == KeyKind::inner_product);
}

const ListTables::Words& ListTables::words_for(ListEngine engine) const {
  const std::lock_guard hold(making_);
  if (words_.squares.size() == 0) make_squares();
  if (engine == ListEngine::tiles && words_.rounded.size() == 0) make_rounded();
  if (engine == ListEngine::tables && words_.columns.size() == 0) make_columns();
  return words_;
}

void ListTables::make_squares() const {
  const CodeFormat& format = model_.codec->format();
  const float* const values = model_.codec->view().codewords;
  const int64_t width = format.part_cols();
  HostArray<float> squares(format.parts * format.codewords(), "the codewords' squares", resources_);
  double total = 0;
  for (int64_t p = 0; p < format.parts; ++p) {
    float largest = 0;
    for (int64_t w = p * format.codewords(); w < (p + 1) * format.codewords(); ++w) {
      double sum = 0;
      for (int64_t i = w * width; i < (w + 1) * width; ++i) sum += static_cast<double>(values[i]) * values[i];
      squares[w] = static_cast<float>(sum);
      largest = std::max(largest, squares[w]);
    }
    total += largest;
  }
  words_.largest = static_cast<float>(std::sqrt(total) * 1.001);
  words_.squares = std::move(squares);
}

void ListTables::make_rounded() const {
  const CodeFormat& format = model_.codec->format();
  const float* const values = model_.codec->view().codewords;
  const int64_t width = format.part_cols();
  HostArray<uint16_t> rounded(format.parts * format.codewords() * width, "rounded codewords", resources_);
  double total = 0;
  for (int64_t p = 0; p < format.parts; ++p) {
    double largest = 0;
    for (int64_t w = p * format.codewords(); w < (p + 1) * format.codewords(); ++w) {
      double errors = 0;
      for (int64_t i = w * width; i < (w + 1) * width; ++i) {
        rounded[i] = bf16_of(values[i]);
        const float near = float_of_bits(static_cast<uint32_t>(rounded[i]) << 16);
        const double moved = static_cast<double>(values[i]) - static_cast<double>(near);
        errors += moved * moved;
      }
      largest = std::max(largest, errors);
    }
    total += largest;
  }
  words_.moved_by = static_cast<float>(std::sqrt(total) * 1.001);
  words_.rounded = std::move(rounded);
}

void ListTables::make_columns() const {
  const CodeFormat& format = model_.codec->format();
  const int64_t width = format.part_cols();
  const int64_t count = format.codewords();
  HostArray<float> columns(format.parts * count * width, "the codewords' columns", resources_);
  const float* const values = model_.codec->view().codewords;
  for (int64_t p = 0; p < format.parts; ++p) {
    const int64_t first = p * count * width;
    pack_units(reinterpret_cast<const uint32_t*>(values + first), width, count, width, count,
               reinterpret_cast<uint32_t*>(columns.data() + first));
  }
  words_.columns = std::move(columns);
}

int64_t ListTables::bytes_for(const IvfModel& model) {
  const CodeFormat& format = model.codec->format();
  if (format.kind != CodeKind::product) return 0;
  return format.codewords() * (array_bytes<uint16_t>(format.cols) + array_bytes<float>(format.cols + format.parts));
}

std::unique_ptr<ListProduct> make_list_product(ListEngine engine, const ListTables& tables,
                                               const ListProductShape& shape, const Resources& resources) {
  switch (engine) {
    case ListEngine::tiles: return make_tile_list_product(tables, shape, resources);
    case ListEngine::tables: return make_table_list_product(tables, shape, resources);
    default: return make_panel_list_product(tables, shape, resources);
  }
}

int64_t list_product_bytes(const ListProductShape& shape, const CodeFormat& format) {
  const int64_t many = shape.engine == ListEngine::tiles ? tile_list_product_bytes(shape, format.cols)
                                                         : panel_list_product_bytes(shape, format.cols);
  return many + (shape.few_queries > 0 ? table_list_product_bytes(shape, format) : 0);
}

}  // namespace kith
