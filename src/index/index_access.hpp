// Internal access to Index: making one of any kind, taking it apart for files, and putting it together.
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "index/index_parts.hpp"
#include "rows/narrowed_rows.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kith {

class IdTable;
class WorkFolder;
struct IndexVersion;

class IndexAccess {
 public:
  // `factory` is only a name here.
  static Index make(std::shared_ptr<const IndexKind> kind, std::string_view factory, IndexParams params = {});

  // Whether every id equals its row number, assigned or given.
  static bool ids_are_rows(const Index& index);

  // The current version. InvalidState for an untrained index.
  static IndexParts parts(const Index& index, const Resources& resources);
  // Parts of a version without dead rows, except its ids.
  static IndexParts parts_of(const Index::Impl& impl, const IndexVersion& version, const Resources& resources);
  // From parts that were checked, with their factory string.
  static Index from_parts(IndexParts parts, const Resources& resources);
  // The same with ids that are kept separately.
  static Index from_parts(IndexParts parts, const IdTable& ids, const Resources& resources);

  // A new empty index with the same training, for the rows of an add. InvalidState for an index on disk.
  static Index without_rows(const Index& index, const Resources& resources);

  // Index::save_added(), in steps where there is a folder; of `step_rows` rows at most.
  static void save_added(const Index& index, const VectorFile& file, VectorView<const int64_t> ids,
                         const std::string& path, WorkFolder* folder, int64_t step_rows, const Resources& given);
  // The hashes of an index: of its files, or of what save() would write. It is trained, or needs no training.
  static std::string fingerprint(const Index& index, const Resources& resources);

  // InvalidArgument for existing or invalid ids, as in add().
  static void check_new_ids(const Index& index, VectorView<const int64_t> ids, const Resources& resources);

  // The current version as an index that does not subtract an offset, and the offset that its vectors and queries
  // need.
  static std::pair<Index, Offset> without_offset(const Index& index, const Resources& resources);
};

}  // namespace kith
