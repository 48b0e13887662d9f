// Factory strings, in FAISS's grammar: parts divided by commas, in this order.
//
//   IDMap                      nothing: every index takes ids
//   OPQm OPQm_n PCAn PCARn RR RRn L2norm Padn Centre    transforms, any number of them
//   IVFn IVF                   lists; without a number the root of the rows ("_HNSW32" behind it is read over)
//   Graphn Graphnx4            or a graph with n neighbours of each vector, walked by codes of 8 or 4 bits, in front of
//                              Flat, which may be left out, SQ8 or SQfp16
//   Flat SQ8 SQ6 SQ4 SQfp16 SQbf16 PQm PQmxb            what is kept of a vector ("fs", "fsr" and "np" behind PQ are
//   read over) RFlat Refine(code)         what candidates are compared with again
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
  int64_t lists = 0;             // 0: as many as the root of the rows
  int64_t degree = 0;            // of a graph; 0: there is none
  bool four_bits = false;        // its walks go by codes of four bits
  std::optional<CodeRecipe> code;  // none: the vectors as they are, in their dtype
  bool refines = false;
  std::optional<CodeRecipe> refine;  // none: the vectors as they are
};

// As all below take it: people write "IVF256, PQ16".
std::string without_spaces(std::string_view factory);

// Throws InvalidArgument that names the part and what is known, or what comes nearest to it.
FactorySpec parse_factory(std::string_view factory);

// Throws InvalidArgument for parameters that such an index cannot have.
std::shared_ptr<const IndexKind> make_kind(const FactorySpec& spec, const IndexParams& params);

// The kinds that it is made of. Lists are Unsupported for a metric that they cannot be searched by; `code` is what is kept
// of a vector for a second look.
std::shared_ptr<const IndexKind> make_flat(const IndexParams& params);
std::shared_ptr<const IndexKind> make_graph_kind(const FactorySpec& spec, const IndexParams& params);
std::shared_ptr<const IndexKind> make_lists_kind(const FactorySpec& spec, const IndexParams& params);
std::shared_ptr<const IndexKind> make_transformed_kind(std::vector<TransformSpec> transforms,
                                                       std::shared_ptr<const IndexKind> inner,
                                                       const IndexParams& params);
std::shared_ptr<const IndexKind> make_refined_kind(const std::optional<CodeRecipe>& code,
                                                   std::shared_ptr<const IndexKind> inner, const IndexParams& params);

}  // namespace kith
