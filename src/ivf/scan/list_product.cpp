#include "ivf/scan/list_product.hpp"

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "kernels/lists/code_screen.hpp"
#include "kernels/lists/code_tables.hpp"
#include "kernels/lists/list_tiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

const CodeWords::Forms* words_of(const IvfModel& model, const CodeWords::Wanted& wanted, const Resources& resources) {
  if (!wanted.columns && !wanted.rounded) return nullptr;
  static const CodeWords::Forms unmade;  // for products that are only counted
  if (resources.host_memory()->counts_only()) return &unmade;
  return &model.words->get(*model.codec, wanted, resources);
}

// Queries of a list up to which tables take less time than decoding it.
int64_t most_for_tables(const IvfModel& model, const CpuExtensions& cpu) {
  const CodeFormat& format = model.codec->format();
  if (has_sum_tables(format, key_kind(model.metric))) {
    // Many codewords are added up to decode a vector: lookups pay for more queries than those of product codes.
    return !has_code_screen(sum_table_format(format), cpu) ? 8 : cpu.amx ? 16 : cpu.vbmi ? 64 : 128;
  }
  if (!format.copies_codewords() || model.metric == Metric::cosine) return 0;
  if (!has_code_screen(format, cpu)) return 4;
  // Shuffles of 4 bits take less time than products, but for AMX's.
  if (format.bits == 4) return cpu.amx ? 32 : std::numeric_limits<int64_t>::max();
  return cpu.vbmi ? 8 : 6;
}

}  // namespace

ListProductShape ListProductShape::choose(const IvfModel& model, int64_t queries, const CpuExtensions& cpu) {
  constexpr int64_t kQueryBytes = 1 << 18;
  constexpr int64_t kPieceBytes = 1 << 19;
  constexpr int64_t kFewestRows = 64;
  const int64_t bytes = array_bytes<float>(model.cols());
  ListProductShape shape;
  shape.engine = has_list_tiles(cpu) ? ListEngine::tiles : ListEngine::panels;
  const int64_t most = most_for_tables(model, cpu);
  shape.query_group = std::min(queries, kHitQueries);
  shape.query_block =
      std::clamp<int64_t>(round_up(std::min(kQueryBytes / bytes, queries), kHitQueries), kHitQueries, 512);
  shape.few_queries = std::min({most, queries, shape.query_block});
  if (most >= shape.query_block) shape.engine = ListEngine::tables;
  // Those of one query's lists are filled together too.
  if (shape.few_queries > 0) shape.table_queries = std::max(shape.few_queries, kTablesTogether);
  shape.piece_rows = std::clamp<int64_t>(round_up(kPieceBytes / bytes, kFewestRows), kFewestRows, 1024);
  return shape;
}

ListTables::ListTables(const IvfModel& model, std::vector<float> origin, const CodeWords::Wanted& wanted,
                       const Resources& resources)
    : model_(model),
      kind_(key_kind(model.metric)),
      origin_(std::move(origin)),
      words_(words_of(model, wanted, resources)) {
  origin_.resize(static_cast<size_t>(model.cols()), 0.0f);
}

CodeWords::Wanted ListProductShape::wanted_words(const IvfModel& model, int64_t queries) const {
  const bool rounded = engine == ListEngine::tiles && queries > few_queries && ListTables::rounds_words(model);
  return {few_queries > 0, rounded};
}

bool ListTables::rounds_words(const IvfModel& model) {
  const KeyKind kind = key_kind(model.metric);
  return model.codec->format().copies_codewords() && kind != KeyKind::cosine &&
         (model.residual || kind == KeyKind::inner_product);
}

std::unique_ptr<ListProduct> make_list_product(ListEngine engine, const ListTables& tables,
                                               const ListProductShape& shape, const Resources& resources) {
  switch (engine) {
    case ListEngine::tiles: return make_tile_list_product(tables, shape, resources);
    case ListEngine::tables:
      return tables.model().codec->format().adds_codewords() ? make_sum_list_product(tables, shape, resources)
                                                             : make_table_list_product(tables, shape, resources);
    default: return make_panel_list_product(tables, shape, resources);
  }
}

}  // namespace kith
