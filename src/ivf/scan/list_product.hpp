// Approximate products of queries with a piece of a list, with error bounds: they select the vectors that may be near.
//
//   key(query, vector), or its square for l2, = value + offset(query), within error(query)
//
// A piece is decoded once for all loaded queries. Each thread has an instance of its own.
//
//   panels  f32 (kernels/panels), on every processor
//   tiles   bf16 on matrix units (kernels/lists/list_tiles.hpp)
//   tables  lookup tables, without decoding (kernels/lists/code_tables.hpp): product codes for few queries, with 4 bits
//           for any number; also additive codes with norms or by inner product, and codes of their own
//   terms   product codes of residuals for few queries, by tables that serve all lists (list_screen.hpp); also additive
//           codes by cosine, or without a stored norm
//   bytes   stored floats and scalar codes for few queries, by one byte per column, without decoding (list_screen.hpp)
#pragma once

#include <kith/resources.hpp>

#include "core/cpu_extensions.hpp"
#include "core/host_array.hpp"
#include "core/reused_memory.hpp"
#include "ivf/model/code_words.hpp"
#include "ivf/model/ivf_model.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/lists/list_hits.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class ListScreen;

enum class ListEngine : uint8_t { panels, tiles, tables, bytes, terms };

struct ListProductShape {
  ListEngine engine = ListEngine::panels;  // for many queries per list; `tables` serves any number
  ListEngine few_engine = ListEngine::tables;  // for up to few_queries per list
  int64_t few_queries = 0;                     // up to so many
  int64_t table_queries = 0;                   // tables kept at a time
  int64_t weight_queries = 0;                  // queries whose weights are kept, for `bytes`
  int64_t loaded_queries = 0;                  // queries loaded together, from one list or several, for `tables`
  int64_t query_block = 0;                 // queries loaded at a time
  int64_t query_group = 0;                 // queries scanned at a time, up to kHitQueries
  int64_t piece_rows = 0;                  // vectors loaded at a time

  // Chooses for up to this many queries. `screened`: every segment has its ListScreen.
  static ListProductShape choose(const IvfModel& model, int64_t queries, const CpuExtensions& cpu, bool screened);

  // How many queries to search at a time so that their tables can be kept for all lists, each of which few of them
  // probe.
  static int64_t batch_for_tables(const IvfModel& model, int64_t queries, int64_t probes, const CpuExtensions& cpu,
                                  bool screened);

  // The forms of codewords that a search of up to this many queries needs.
  CodeWords::Wanted wanted_words(const IvfModel& model, int64_t queries) const;

  bool uses_tables() const { return few_engine == ListEngine::tables || few_engine == ListEngine::terms; }
  ListEngine engine_for(int64_t query_count) const { return query_count <= few_queries ? few_engine : engine; }
};

// Shared by all threads: the model, and its codewords in the forms that the engines need.
class ListTables {
 public:
  // `origin`: a vector near those of a list without a centre; may be zeros.
  ListTables(const IvfModel& model, ReusedVector<float> origin, const CodeWords::Wanted& wanted,
             const Resources& resources);

  const IvfModel& model() const { return model_; }
  KeyKind kind() const { return kind_; }
  // The vector subtracted from a list's vectors if the key is computed from differences.
  const float* origin(int64_t list) const { return model_.has_centres() ? model_.centre(list) : origin_.data(); }

  // The vector subtracted from queries for tables of product codes: the screens' origin, or zeros.
  const ReusedVector<float>& mean() const { return origin_; }

  // The requested forms of a product code's codewords; else null.
  const CodeWords::Forms* words() const { return words_; }
  // Whether tiles decode from rounded codewords, which requires that only a vector's own centre is subtracted.
  static bool rounds_words(const IvfModel& model);

 private:
  const IvfModel& model_;
  const KeyKind kind_;
  ReusedVector<float> origin_;
  const CodeWords::Forms* const words_;
};

// The queries of a batch that probe one list.
struct ListQueries {
  const uint32_t* numbers = nullptr;
  int64_t count = 0;
  int64_t list = 0;

  bool operator==(const ListQueries&) const = default;
};

// A range of a list's vectors in a segment.
struct ListRows {
  const uint8_t* codes = nullptr;
  int64_t count = 0;
  int64_t first = 0;                   // its place in the segment
  const ListScreen* screen = nullptr;  // the segment's, or null
  // Unless null: only these places, minus `base`, within the segment; `codes` and `first` are then the segment's.
  // Supported by the engines `bytes`, `tables` and `terms`.
  const uint32_t* places = nullptr;
  int64_t base = 0;

  int64_t place(int64_t i) const { return places == nullptr ? first + i : places[i] - base; }
};

class ListProduct : public InReusedMemory {
 public:
  virtual ~ListProduct() = default;

  // Loads the queries of a list; for `tables` those of several lists, up to ListProductShape::loaded_queries.
  virtual void load_queries(const float* queries, const double* inverse_norms, const ListQueries* lists,
                            int64_t count) = 0;
  // Selects one of the loaded lists for the following calls.
  virtual void use_list(int64_t) {}
  // Loads vectors of the same list.
  virtual void load_rows(const ListRows& rows) = 0;
  virtual float offset(int64_t query) const = 0;
  // The error bound for the loaded vectors, or for those that passed the last scan; infinite if there is none.
  virtual float error(int64_t query) const = 0;
  // Finds values up to limits[i] + error(first + i), for up to kHitQueries queries from `first` on, a multiple of it.
  virtual void scan(int64_t first, int64_t count, const float* limits, ListHits& hits) = 0;
};

std::unique_ptr<ListProduct> make_list_product(ListEngine engine, const ListTables& tables,
                                               const ListProductShape& shape, const Resources& resources);

// The engines of make_list_product.
std::unique_ptr<ListProduct> make_tile_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources);
std::unique_ptr<ListProduct> make_table_list_product(const ListTables& tables, const ListProductShape& shape,
                                                     const Resources& resources);
std::unique_ptr<ListProduct> make_byte_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources);
std::unique_ptr<ListProduct> make_term_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources);
std::unique_ptr<ListProduct> make_sum_list_product(const ListTables& tables, const ListProductShape& shape,
                                                   const Resources& resources);

// Codes of their own (kernels/codes/own_code.hpp) by lookup tables; whether they have tables for such a key, and their
// bytes as a format of parts.
std::unique_ptr<ListProduct> make_own_list_product(const ListTables& tables, const ListProductShape& shape,
                                                   const Resources& resources);
bool has_own_tables(const CodeFormat& format, KeyKind kind);
CodeFormat own_table_format(const CodeFormat& format);

// Whether additive codes are searched by tables for such a key, or by tables plus a per-vector term of a screen
// (list_screen.hpp); and their bytes as a format of parts.
bool has_sum_tables(const CodeFormat& format, KeyKind kind);
bool has_sum_terms(const CodeFormat& format, KeyKind kind);
CodeFormat sum_table_format(const CodeFormat& format);

}  // namespace kith
