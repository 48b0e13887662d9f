// "IVF4096,PQ32", "IVF100,Flat", "SQ8", ...: an index of codes in lists. Without IVF there is one list without a
// centre.
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "quantize/codec.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

struct ListsSpec {
  bool has_lists = false;
  int64_t lists = 0;             // 0: as many as the root of the rows
  std::optional<CodeRecipe> code;  // none: the vectors as they are, in their dtype
};

// Unsupported for a metric that lists cannot be searched by.
std::shared_ptr<const IndexKind> make_lists_kind(const ListsSpec& spec, const IndexParams& params);

}  // namespace kith
