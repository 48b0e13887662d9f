// An Index from inside the library: made of a kind that is not the factory's, taken apart for files and put together.
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "index/index_parts.hpp"
#include "rows/narrowed_rows.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {

class IdTable;
struct IndexVersion;

class IndexAccess {
 public:
  // `factory` is only its name.
  static Index make(std::shared_ptr<const IndexKind> kind, std::string_view factory, IndexParams params = {});

  // Whether ids are row numbers, by nobody's or the caller's choice.
  static bool ids_are_rows(const Index& index);

  // One version, whole. InvalidState for an index that must be trained and is not.
  static IndexParts parts(const Index& index, const Resources& resources);
  // Parts of a version without dead rows, but for its ids.
  static IndexParts parts_of(const Index::Impl& impl, const IndexVersion& version, const Resources& resources);
  // Parts that were checked. The factory string is theirs.
  static Index from_parts(IndexParts parts, const Resources& resources);
  // The same with ids that are not in the parts.
  static Index from_parts(IndexParts parts, const IdTable& ids, const Resources& resources);

  // A new index with the same training, for the rows of an add. InvalidState for one that lies on disk.
  static Index without_rows(const Index& index, const Resources& resources);

  // InvalidArgument for ids that the index has, or cannot have, as add() would find.
  static void check_new_ids(const Index& index, VectorView<const int64_t> ids, const Resources& resources);

  // The current version as an index of its own, which takes vectors and queries as they are, and what they must have
  // lost before.
  static std::pair<Index, Offset> without_offset(const Index& index, const Resources& resources);
};

}  // namespace kith
