// Factory strings in FAISS's grammar: parts separated by commas, in this order.
//
//   IDMap                      ignored, since every index takes ids
//   OPQm OPQm_n PCAn PCARn RR RRn L2norm Padn Centre    any number of transforms
//   IVFn IVF                   lists; without a number the root of the rows (a following "_HNSW32" is ignored)
//   Graphn Graphnx4            or a graph with n neighbours of each vector, walked by codes of 8 or 4 bits, followed by
//                              Flat (the default), SQ8 or SQfp16
//   Flat SQ8 SQ6 SQ4 SQfp16 SQbf16 PQm PQmxb            how vectors are stored ("fs", "fsr", "np" after PQ are ignored)
//   RFlat Refine(code)         vectors with which candidates are compared again
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "quantize/codec.hpp"
#include "transform/transform_training.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

struct FactorySpec {
  std::vector<TransformSpec> transforms;
  bool has_lists = false;
  int64_t lists = 0;             // 0: the root of the number of rows
  int64_t degree = 0;            // of the graph; 0: none
  bool four_bits = false;        // walks use codes of four bits
  std::optional<CodeRecipe> code;  // none: the vectors as they are, in their dtype
  bool refines = false;
  std::optional<CodeRecipe> refine;  // none: the vectors as they are
};

// Removes spaces, as in "IVF256, PQ16"; the functions below expect none.
std::string without_spaces(std::string_view factory);

// InvalidArgument that names the part, and the nearest known one or all of them.
FactorySpec parse_factory(std::string_view factory);

// InvalidArgument for parameters that such an index cannot have.
std::shared_ptr<const IndexKind> make_kind(const FactorySpec& spec, const IndexParams& params);

// The kinds that make_kind() combines. Lists are Unsupported for a metric that they cannot be searched by; `code` is
// how the vectors of refinement are stored.
std::shared_ptr<const IndexKind> make_flat(const IndexParams& params);
std::shared_ptr<const IndexKind> make_graph_kind(const FactorySpec& spec, const IndexParams& params);
std::shared_ptr<const IndexKind> make_lists_kind(const FactorySpec& spec, const IndexParams& params);
std::shared_ptr<const IndexKind> make_transformed_kind(std::vector<TransformSpec> transforms,
                                                       std::shared_ptr<const IndexKind> inner,
                                                       const IndexParams& params);
std::shared_ptr<const IndexKind> make_refined_kind(const std::optional<CodeRecipe>& code,
                                                   std::shared_ptr<const IndexKind> inner, const IndexParams& params);

}  // namespace kith
