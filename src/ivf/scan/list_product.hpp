// Products of queries with a piece of a list: which vectors of it may be near a query, as values within a bound.
//
//   key(query, vector), or its square for l2, = value + offset(query), within error(query)
//
// A piece is decoded once for all queries that were loaded. One thread's; each has its own.
//
//   panels  f32 (kernels/panels), on every processor
//   tiles   bf16 on matrix units (kernels/lists/list_tiles.hpp)
//   tables  product codes for few queries, of 4 bits for any number: nothing is decoded
//           (kernels/lists/code_tables.hpp); additive codes that hold norms, or by inner product, too; own codes
//   terms   product codes of residuals for few queries: tables of a query that serve all lists (list_screen.hpp);
//           additive codes by cosine, or without a stored norm
//   bytes   stored floats and scalar codes for few queries, by one byte a column: nothing is decoded (list_screen.hpp)
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
  ListEngine engine = ListEngine::panels;  // for many queries of a list; tables: for any number
  ListEngine few_engine = ListEngine::tables;  // for few queries
  int64_t few_queries = 0;                     // up to so many
  int64_t table_queries = 0;                   // tables that are held
  int64_t weight_queries = 0;                  // queries whose weights are held, for bytes
  int64_t loaded_queries = 0;                  // queries loaded together, of one list or several, for tables
  int64_t query_block = 0;                 // queries loaded at a time
  int64_t query_group = 0;                 // and scanned at a time, up to kHitQueries
  int64_t piece_rows = 0;                  // vectors loaded at a time

  // For up to so many queries. `screened`: every segment has its ListScreen.
  static ListProductShape choose(const IvfModel& model, int64_t queries, const CpuExtensions& cpu, bool screened);

  // How many queries to search at a time, that their tables stay for all lists while these have few of them.
  static int64_t batch_for_tables(const IvfModel& model, int64_t queries, int64_t probes, const CpuExtensions& cpu,
                                  bool screened);

  // What a search of up to so many queries wants of the codewords.
  CodeWords::Wanted wanted_words(const IvfModel& model, int64_t queries) const;

  bool uses_tables() const { return few_engine == ListEngine::tables || few_engine == ListEngine::terms; }
  ListEngine engine_for(int64_t query_count) const { return query_count <= few_queries ? few_engine : engine; }
};

// What all threads share: the model, and its codewords in the forms that engines want.
class ListTables {
 public:
  // `origin`: a vector near those of a list without a centre; zeros will do.
  ListTables(const IvfModel& model, ReusedVector<float> origin, const CodeWords::Wanted& wanted,
             const Resources& resources);

  const IvfModel& model() const { return model_; }
  KeyKind kind() const { return kind_; }
  // What is taken off the vectors of a list where the key is made of differences.
  const float* origin(int64_t list) const { return model_.has_centres() ? model_.centre(list) : origin_.data(); }

  // What tables of product codes are made for queries less of: the screens' origin, zeros where there is none.
  const ReusedVector<float>& mean() const { return origin_; }

  // For product codes, in the forms that were wanted; else null.
  const CodeWords::Forms* words() const { return words_; }
  // Whether tiles put vectors together from rounded codewords: nothing but their own centre is taken off them.
  static bool rounds_words(const IvfModel& model);

 private:
  const IvfModel& model_;
  const KeyKind kind_;
  ReusedVector<float> origin_;
  const CodeWords::Forms* const words_;
};

// Queries of a batch that probe one list.
struct ListQueries {
  const uint32_t* numbers = nullptr;
  int64_t count = 0;
  int64_t list = 0;

  bool operator==(const ListQueries&) const = default;
};

// Vectors of a list in a segment.
struct ListRows {
  const uint8_t* codes = nullptr;
  int64_t count = 0;
  int64_t first = 0;                   // place in the segment
  const ListScreen* screen = nullptr;  // the segment's, or null
  // Where not null: only these, less `base` places of the segment. Engines `bytes`, `tables` and `terms` take them;
  // `codes` and `first` are those of the segment.
  const uint32_t* places = nullptr;
  int64_t base = 0;

  int64_t place(int64_t i) const { return places == nullptr ? first + i : places[i] - base; }
};

class ListProduct : public InReusedMemory {
 public:
  virtual ~ListProduct() = default;

  // The queries of a list; tables take those of several lists together, as many as ListProductShape::loaded_queries.
  virtual void load_queries(const float* queries, const double* inverse_norms, const ListQueries* lists,
                            int64_t count) = 0;
  // The list whose queries are meant from now on, of those that were given.
  virtual void use_list(int64_t) {}
  // Vectors of the same list.
  virtual void load_rows(const ListRows& rows) = 0;
  virtual float offset(int64_t query) const = 0;
  // For the vectors loaded, or those of them that passed the last scan; infinite where nothing is certain.
  virtual float error(int64_t query) const = 0;
  // Values up to limits[i] + error(first + i) of up to kHitQueries queries from `first`, a multiple of it, on.
  virtual void scan(int64_t first, int64_t count, const float* limits, ListHits& hits) = 0;
};

std::unique_ptr<ListProduct> make_list_product(ListEngine engine, const ListTables& tables,
                                               const ListProductShape& shape, const Resources& resources);

// The parts of make_list_product.
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

// Codes of their own (kernels/codes/own_code.hpp) by lookup tables: whether they are searched so for such a key, and
// their bytes, as tables see them.
std::unique_ptr<ListProduct> make_own_list_product(const ListTables& tables, const ListProductShape& shape,
                                                   const Resources& resources);
bool has_own_tables(const CodeFormat& format, KeyKind kind);
CodeFormat own_table_format(const CodeFormat& format);

// Whether additive codes are searched by tables for such a key, or by tables and a number of each vector that a screen
// keeps (list_screen.hpp); and their parts, as tables see them.
bool has_sum_tables(const CodeFormat& format, KeyKind kind);
bool has_sum_terms(const CodeFormat& format, KeyKind kind);
CodeFormat sum_table_format(const CodeFormat& format);

}  // namespace kith
