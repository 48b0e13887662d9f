#include "ivf/scan/list_product.hpp"

#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "core/memory_budget.hpp"
#include "ivf/model/norm_terms.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/codes/own_code.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/code_screen.hpp"
#include "kernels/lists/code_tables.hpp"
#include "kernels/lists/list_tiles.hpp"
#include "kernels/lists/weighted_bytes.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/screen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kMostTables = 256;  // of queries, that serve all lists and are kept,
constexpr int64_t kTableBytes = 1 << 22;
constexpr int64_t kWeightBytes = 1 << 22;  // of queries whose weights serve all lists

// as many as stay near.
int64_t tables_kept(const CodeFormat& format) {
  const int64_t table_bytes = std::max<int64_t>(format.parts * format.codewords() * 5, 1);
  return std::min(kMostTables, kTableBytes / table_bytes);
}

const CodeWords::Forms* words_of(const IvfModel& model, const CodeWords::Wanted& wanted, const Resources& resources) {
  if (!wanted.columns && !wanted.rounded) return nullptr;
  static const CodeWords::Forms unmade;  // for products that are only counted
  if (resources.host_memory()->counts_only()) return &unmade;
  return &model.words->get(*model.codec, wanted, resources);
}

// Queries of a list up to which lookups of sums take less time than decoding it: many codewords are added up to decode
// a vector, so that they pay for more queries than those of product codes.
int64_t most_for_sums(const CodeFormat& format, const CpuExtensions& cpu) {
  return !has_code_screen(sum_table_format(format), cpu) ? 8 : cpu.amx ? 16 : cpu.vbmi ? 64 : 128;
}

constexpr int64_t kOwnTableBytes = 1 << 22;  // of all queries whose tables are kept

// The same of tables.
int64_t most_for_tables(const IvfModel& model, const CpuExtensions& cpu) {
  const CodeFormat& format = model.codec->format();
  if (has_sum_tables(format, key_kind(model.metric))) return most_for_sums(format, cpu);
  if (has_own_tables(format, key_kind(model.metric))) {
    if (!has_code_screen(own_table_format(format), cpu)) return 0;
    return cpu.amx ? 32 : kOwnTableBytes / (own_table_format(format).parts * 16 * 5);
  }
  if (!format.copies_codewords() || model.metric == Metric::cosine) return 0;
  if (!has_code_screen(format, cpu)) return model.has_centres() ? 4 : 12;
  // Shuffles of 4 bits take less time than products, but for AMX's.
  if (format.bits == 4) return cpu.amx ? 32 : std::numeric_limits<int64_t>::max();
  if (!model.has_centres()) return cpu.amx ? 72 : cpu.vbmi ? 64 : 60;  // tables are filled once, for all vectors
  return cpu.vbmi ? 8 : 6;
}

// Queries of a list up to which comparing bytes takes less time than decoding it.
int64_t most_for_bytes(const CpuExtensions& cpu) {
  if (cpu.vnni) return cpu.amx ? 72 : 512;
  if (cpu.avx2) return ScreenedProduct::pays() ? 192 : 56;  // AVX-512 multiplies f32 as fast as AVX2 bytes
  return cpu.dotprod ? 88 : 12;
}

// The same of looking them up in tables that were filled once. Parts of few columns are many lookups for what decoding
// brings in one product.
int64_t most_for_terms(const CodeFormat& format, const CpuExtensions& cpu) {
  if (format.adds_codewords()) return most_for_sums(format, cpu);
  if (cpu.amx) return cpu.vbmi ? 12 : 4;
  return cpu.avx2 ? std::clamp<int64_t>(6 * format.part_cols(), 12, 48) : cpu.dotprod ? 12 : 8;
}

// A piece of a list as panels of f32 (kernels/panels): the vectors that the index holds, minus the list's centre where
// the key is made of differences, so that the bounds of kernels/distance/error_bound.hpp are bounds for their distance.
constexpr PanelFormat kFormat = PanelFormat::f32;

class PanelListProduct final : public ListProduct, private PanelHits {
 public:
  PanelListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : tables_(tables),
        norms_of_codes_(tables.model()),
        cols_(tables.model().cols()),
        shape_(panel_shape(kFormat)),
        group_(round_up(kHitQueries, shape_.queries_per_panel)),
        queries_(tables.kind(), kFormat, shape.query_block / kHitQueries * group_, cols_, resources),
        gathered_(std::max(kMostQueriesPerPanel, kMostRowsPerPanel) * cols_, "gathered vectors", resources),
        packing_(PanelScratch::bytes_for(kFormat, cols_, kMostRowsPerPanel), "packing", resources),
        limits_(kHitQueries + kMostQueriesPerPanel, "the queries' limits", resources),
        origin_(static_cast<size_t>(cols_), 0.0f) {
    const int64_t rows = round_up(shape.piece_rows, shape_.rows_per_panel);
    panels_ = HostBuffer(rows * packed_bytes(kFormat, cols_), "decoded vectors", resources);
    terms_ = HostArray<float>(rows, "decoded vectors", resources);
    norms_ = HostArray<float>(rows / shape_.rows_per_panel, "decoded vectors", resources);
  }

  void load_queries(const float* queries, const double*, const ListQueries* lists, int64_t) override {
    const auto [numbers, count, list] = lists[0];
    list_ = list;
    if (has_differences(tables_.kind())) std::copy_n(tables_.origin(list), cols_, origin_.data());
    norms_of_codes_.start_queries();
    for (int64_t i = 0; i < count; ++i) norms_of_codes_.add_query(queries + numbers[i] * cols_);
    const int64_t width = queries_.panel_width();
    for (int64_t first = 0; first < count; first += kHitQueries) {
      const int64_t end = std::min(first + kHitQueries, count);
      for (int64_t at = first; at < end; at += width) {
        const int64_t here = std::min(width, end - at);
        for (int64_t i = 0; i < here; ++i) {
          std::copy_n(queries + numbers[at + i] * cols_, cols_, gathered_.data() + i * cols_);
        }
        queries_.pack_panel(packed(at) / width, gathered_.data(), here, origin_, packing_.data());
      }
    }
    bounds_ = queries_.panels(0, packed(count), limits_.data());
  }

  void load_rows(const ListRows& rows) override {
    const uint8_t* const codes = rows.codes;
    const int64_t count = rows.count;
    const CodecView codec = tables_.model().codec->view();
    const int64_t width = shape_.rows_per_panel;
    const int64_t bytes = packed_bytes(kFormat, cols_);
    const PanelScratch scratch(packing_.data(), cols_);
    rows_ = count;
    largest_ = 0;
    norms_of_codes_.start_rows();
    for (int64_t first = 0; first < count; first += width) {
      const int64_t here = std::min(width, count - first);
      decode_rows_cpu(codec, codes + first * codec.format.bytes(), here, tables_.model().base_of(list_),
                      gathered_.data());
      float* const terms = terms_.data() + first;
      float largest = 0;
      for (int64_t i = 0; i < here; ++i) {
        const double squared = move_vector(tables_.kind(), origin_, gathered_.data() + i * cols_, scratch.vector);
        const float* const vector = gathered_.data() + i * cols_;
        terms[i] = norms_of_codes_.used()
                       ? norms_of_codes_.term(codes + (first + i) * codec.format.bytes(), vector, nullptr, squared)
                   : has_differences(tables_.kind()) ? static_cast<float>(squared)
                                                     : 0.0f;
        largest = std::max(largest, squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity);
        encode_floats(kFormat, scratch.vector, cols_, 1.0f, scratch.packed + i * bytes / 4);
      }
      std::fill(terms + here, terms + width, kInfinity);
      norms_[first / width] = largest;
      largest_ = std::max(largest_, largest);
      pack_panel(kFormat, cols_, scratch.packed, here, width, panels_.data() + first * bytes);
    }
  }

  float offset(int64_t query) const override { return queries_.offset(packed(query)); }
  float error(int64_t query) const override { return product_error_of(query) + norm_error(query); }

  void scan(int64_t first, int64_t count, const float* limits, ListHits& hits) override {
    first_ = first;
    hits_ = &hits;
    std::fill(limits_.begin(), limits_.end(), -kInfinity);  // of those that only fill up a panel
    for (int64_t i = 0; i < count; ++i) limits_[i] = limits[i] + norm_error(first + i);
    const PanelQueries queries = queries_.panels(packed(first), count, limits_.data());
    const PanelBase base{panels_.data(), terms_.data(), norms_.data(), kFormat, cols_, PanelStep::product};
    scan_panels(queries, base, 0, divide_up(rows_, shape_.rows_per_panel), *this);
  }

 private:
  float product_error_of(int64_t query) const { return bounds_.bound(packed(query)).at(largest_); }
  float norm_error(int64_t query) const { return norms_of_codes_.used() ? norms_of_codes_.error(query) : 0.0f; }

  // Where a query is packed: groups begin with a panel.
  int64_t packed(int64_t query) const { return query / kHitQueries * group_ + query % kHitQueries; }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    const int64_t first = panel * shape_.rows_per_panel;
    const int64_t count = std::min(shape_.rows_per_panel, rows_ - first);
    const float limit = limits_[query] + product_error_of(first_ + query);
    float* const to = hits_->values + query * hits_->stride;
    uint32_t* const rows = hits_->rows + query * hits_->stride;
    int64_t at = hits_->counts[query];
    for (int64_t i = 0; i < count; ++i) {
      to[at] = values[i];
      rows[at] = static_cast<uint32_t>(first + i);
      at += !(values[i] > limit);  // a NaN passes
    }
    hits_->counts[query] = at;
  }

  const ListTables& tables_;
  NormTerms norms_of_codes_;
  const int64_t cols_;
  const PanelShape shape_;
  const int64_t group_;  // kHitQueries in whole panels
  PackedQueries queries_;
  HostArray<float> gathered_;
  HostBuffer packing_;
  HostArray<float> limits_;
  ReusedVector<float> origin_;
  HostBuffer panels_;
  HostArray<float> terms_;
  HostArray<float> norms_;
  PanelQueries bounds_;
  int64_t list_ = 0;
  int64_t rows_ = 0;
  float largest_ = 0;  // norm of the piece
  int64_t first_ = 0;
  ListHits* hits_ = nullptr;
};

}  // namespace

ListProductShape ListProductShape::choose(const IvfModel& model, int64_t queries, const CpuExtensions& cpu,
                                          bool screened) {
  constexpr int64_t kQueryBytes = 1 << 18;
  constexpr int64_t kPieceBytes = 1 << 19;
  constexpr int64_t kFewestRows = 64;
  const int64_t bytes = array_bytes<float>(model.cols());
  ListProductShape shape;
  shape.engine = has_list_tiles(cpu) ? ListEngine::tiles : ListEngine::panels;
  const CodeFormat& format = model.codec->format();
  const bool terms = screened && (format.copies_codewords() || format.adds_codewords());
  if (screened) shape.few_engine = terms ? ListEngine::terms : ListEngine::bytes;
  // For more queries tables are filled again.
  const int64_t kept_tables = terms ? std::min(tables_kept(format), queries) : 0;
  const int64_t most = terms && queries <= kept_tables ? most_for_terms(format, cpu)
                       : terms && format.adds_codewords() ? 0  // filling them takes as long as decoding a list
                       : terms                         ? std::min<int64_t>(most_for_terms(format, cpu), 6)
                       : screened                      ? most_for_bytes(cpu)
                                                       : most_for_tables(model, cpu);
  shape.query_group = std::min(queries, kHitQueries);
  shape.query_block =
      std::clamp<int64_t>(round_up(std::min(kQueryBytes / bytes, queries), kHitQueries), kHitQueries, 512);
  shape.few_queries = std::min({most, queries, shape.query_block});
  if (most >= shape.query_block) shape.engine = shape.few_engine;
  // Those of one query's lists are filled together too.
  if (shape.few_queries > 0 && shape.uses_tables()) shape.loaded_queries = std::max(shape.few_queries, kTablesTogether);
  if (shape.few_engine == ListEngine::bytes) {
    const int64_t query_bytes = weight_bytes(model.cols()) + bytes;
    shape.weight_queries = std::max(shape.few_queries, std::min(queries, kWeightBytes / query_bytes));
  }
  shape.table_queries = terms ? std::max(kept_tables, shape.few_queries) : shape.loaded_queries;
  shape.piece_rows = std::clamp<int64_t>(round_up(kPieceBytes / bytes, kFewestRows), kFewestRows, 1024);
  return shape;
}

int64_t ListProductShape::batch_for_tables(const IvfModel& model, int64_t queries, int64_t probes,
                                           const CpuExtensions& cpu, bool screened) {
  const CodeFormat& format = model.codec->format();
  if (cpu.amx) return queries;
  const bool sums = format.adds_codewords();
  if (sums && !model.has_centres()) {
    // On x86 sums are decoded, even for a thousand queries together, in more time than their lookups take.
    constexpr int64_t kMostSummed = 1024;
    const int64_t together = screened ? most_for_terms(format, cpu) : most_for_tables(model, cpu);
    const bool lookups = cpu.avx2 && !cpu.vbmi && together > 0;
    return lookups && queries > together && queries <= kMostSummed ? together : queries;
  }
  if (!format.copies_codewords() && !(sums && screened)) return queries;
  if (!screened) {
    // AVX-512 without VBMI decodes vectors for some hundred queries in the time of their lookups, which are done for as
    // many together as their tables stay near.
    constexpr int64_t kMostLookedUp = 400;
    const int64_t together = most_for_tables(model, cpu);
    const bool lookups = cpu.vnni && !cpu.vbmi && !model.has_centres() && together > 0;
    return lookups && queries > together && queries <= kMostLookedUp ? together : queries;
  }
  const int64_t kept = tables_kept(format);
  const bool few = queries * probes <= most_for_terms(format, cpu) * model.lists();
  return queries > kept && few && kept > 0 ? kept : queries;
}

ListTables::ListTables(const IvfModel& model, ReusedVector<float> origin, const CodeWords::Wanted& wanted,
                       const Resources& resources)
    : model_(model),
      kind_(key_kind(model.metric)),
      origin_(std::move(origin)),
      words_(words_of(model, wanted, resources)) {
  origin_.resize(static_cast<size_t>(model.cols()), 0.0f);
}

CodeWords::Wanted ListProductShape::wanted_words(const IvfModel& model, int64_t queries) const {
  const bool rounded = engine == ListEngine::tiles && queries > few_queries && ListTables::rounds_words(model);
  return {few_queries > 0 && uses_tables() && !is_own_code(model.codec->format()), rounded};
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
    case ListEngine::terms:
      return tables.model().codec->format().adds_codewords() ? make_sum_list_product(tables, shape, resources)
                                                             : make_term_list_product(tables, shape, resources);
    case ListEngine::bytes: return make_byte_list_product(tables, shape, resources);
    case ListEngine::tables:
      if (is_own_code(tables.model().codec->format())) return make_own_list_product(tables, shape, resources);
      return tables.model().codec->format().adds_codewords() ? make_sum_list_product(tables, shape, resources)
                                                             : make_table_list_product(tables, shape, resources);
    default: return std::make_unique<PanelListProduct>(tables, shape, resources);
  }
}

}  // namespace kith
