// An Index from inside the library: made of a kind that is not the factory's, taken apart for files and put together.
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "index/index_parts.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

class KITH_EXPORT IndexAccess {
 public:
  // `factory` is only its name.
  static Index make(std::shared_ptr<const IndexKind> kind, std::string_view factory, IndexParams params = {});

  // Whether ids are row numbers, by nobody's or the caller's choice.
  static bool ids_are_rows(const Index& index);

  // One version, whole. InvalidState for an index that must be trained and is not.
  static IndexParts parts(const Index& index, const Resources& resources);
  // Parts that were checked. The factory string is theirs.
  static Index from_parts(IndexParts parts, const Resources& resources);

  // Index::save and load, with what the caller has subtracted from all vectors before they came here; none: nothing.
  static void save(const Index& index, const std::string& path, std::vector<double> subtracted,
                   const Resources& resources);
  static Index load(const std::string& path, std::vector<double>& subtracted, const Resources& resources);

};

}  // namespace kith
