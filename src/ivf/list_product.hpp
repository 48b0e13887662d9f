// Products of queries with a piece of a list: which vectors of it may be near a query, as values within a bound.
//
//   key(query, vector), or its square for l2, = value + offset(query), within error(query)
//
// A piece is decoded once for all queries that were loaded. One thread's; each has its own.
//
//   panels  f32 (kernels/panels), on every processor
//   tiles   bf16 on AMX (kernels/lists/list_tiles_amx.hpp)
#pragma once

#include <kith/resources.hpp>

#include "core/cpu_extensions.hpp"
#include "core/host_array.hpp"
#include "ivf/ivf_model.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/lists/list_hits.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

enum class ListEngine : uint8_t { panels, tiles };

struct ListProductShape {
  ListEngine engine = ListEngine::panels;
  int64_t query_block = 0;  // queries loaded at a time
  int64_t piece_rows = 0;   // vectors loaded at a time

  // For up to so many queries.
  static ListProductShape choose(int64_t cols, int64_t queries, const CpuExtensions& cpu);
};

// What all threads share: the model, and its codewords rounded ahead for tiles.
class ListTables {
 public:
  // `origin`: a vector near those of a list without a centre; zeros will do.
  ListTables(const IvfModel& model, ListEngine engine, std::vector<float> origin, const Resources& resources);
  static int64_t bytes_for(const IvfModel& model, ListEngine engine);

  const IvfModel& model() const { return model_; }
  KeyKind kind() const { return kind_; }
  // What is taken off the vectors of a list where the key is made of differences.
  const float* origin(int64_t list) const { return model_.has_centres() ? model_.centre(list) : origin_.data(); }

  bool has_words() const { return words_.size() > 0; }
  const uint16_t* words() const { return words_.data(); }
  const float* word_squares() const { return squares_.data(); }
  float word_error() const { return word_error_; }  // the most that rounding moves a vector of codewords

 private:
  const IvfModel& model_;
  KeyKind kind_;
  std::vector<float> origin_;
  HostArray<uint16_t> words_;
  HostArray<float> squares_;
  float word_error_ = 0;
};

class ListProduct {
 public:
  virtual ~ListProduct() = default;

  // The queries with these numbers, for one list.
  virtual void load_queries(const float* queries, const double* inverse_norms, const uint32_t* numbers, int64_t count,
                            int64_t list) = 0;
  // Vectors of the same list.
  virtual void load_rows(const uint8_t* codes, int64_t count) = 0;
  virtual float offset(int64_t query) const = 0;
  // For the vectors loaded; infinite where nothing is certain.
  virtual float error(int64_t query) const = 0;
  // Values up to limits[i] + error(first + i) of up to kHitQueries queries from `first`, a multiple of it, on.
  virtual void scan(int64_t first, int64_t count, const float* limits, ListHits& hits) = 0;
};

std::unique_ptr<ListProduct> make_list_product(const ListTables& tables, const ListProductShape& shape,
                                               const Resources& resources);
int64_t list_product_bytes(const ListProductShape& shape, int64_t cols);

// The parts of make_list_product.
std::unique_ptr<ListProduct> make_panel_list_product(const ListTables& tables, const ListProductShape& shape,
                                                     const Resources& resources);
std::unique_ptr<ListProduct> make_tile_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources);
int64_t panel_list_product_bytes(const ListProductShape& shape, int64_t cols);
int64_t tile_list_product_bytes(const ListProductShape& shape, int64_t cols);

}  // namespace kith
