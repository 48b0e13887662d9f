// Adds vectors to an index on several ranks: each codes its share, and the codes go to all, so every rank ends with the
// index that one process would have. Indexes that keep vectors unchanged (Flat), or are built from all at once
// (graphs), have nothing to divide: there each rank adds all vectors.
#include <kith/distributed.hpp>

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "exact/knn_on_parts.hpp"
#include "index/factory.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "io/container/xxh3.hpp"
#include "io/row_slice.hpp"
#include "ranks/agreement.hpp"
#include "rows/rows_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace kith {
namespace {

using Ids = VectorView<const int64_t>;

std::string describe(const Index& index, const RowsInfo& rows, const Ids& ids) {
  const uint64_t hash = xxh3(std::as_bytes(std::span(ids.data, static_cast<size_t>(ids.size))));
  return fmt::format("{} {} rows of {} values, {} ids (hash {:016x}), added to an index {} of {} vectors, metric {}, seed {}",
                     rows.rows, name_of(rows.dtype), rows.cols, ids.size, hash, index.factory(), index.size(),
                     name_of(index.params().metric), index.params().seed);
}

bool shares_codes(const Index& index) {
  const FactorySpec spec = parse_factory(index.factory());
  return spec.degree == 0 && (spec.has_lists || spec.code.has_value());
}

MatrixView slice_of(const MatrixView& rows, int64_t first, int64_t count) { return rows.slice(first, count); }
Ids slice_of(const Ids& ids, const RankPart& share) {
  return ids.size == 0 ? Ids() : Ids{ids.data + share.first, share.count, ids.space};
}

void add_to(Index& index, const MatrixView& rows, const Ids& ids, const Resources& resources) {
  index.add(rows, ids, Ownership::copy, resources);
}
void add_to(Index& index, const VectorFile& rows, const Ids& ids, const Resources& resources) {
  index.add(rows, ids, resources);
}

// The codes that a rank has made of its vectors; all ranks have the training.
struct CodedRows {
  HostArray<int64_t> offsets;
  HostArray<uint8_t> codes;
  HostArray<uint32_t> rows;
  HostArray<uint8_t> refine;

  CodedRows(const IndexParts& trained, int64_t count, const Resources& resources)
      : offsets(trained.lists->lists + 1, "a rank's lists", resources),
        codes(count * trained.lists->codec.format.bytes(), "a rank's codes", resources),
        rows(count, "a rank's lists", resources),
        refine(trained.refine ? count * trained.refine->codec.format.bytes() : 0, "a rank's codes", resources) {}

  // As an index with the training of `trained`.
  Index with_training(IndexParts trained, const Ids& ids, const Resources& resources) && {
    trained.rows = rows.size();
    trained.next_id = rows.size();
    if (ids.size > 0) {
      trained.ids = PartArray<int64_t>({ids.data, static_cast<size_t>(ids.size)}, nullptr);
      trained.next_id = *std::max_element(ids.data, ids.data + ids.size) + 1;
    }
    trained.lists->offsets = std::move(offsets);
    trained.lists->codes = std::move(codes);
    trained.lists->rows = std::move(rows);
    if (trained.refine) trained.refine->codes = std::move(refine);
    return IndexAccess::from_parts(std::move(trained), resources);
  }
};

template <typename T>
void broadcast(Communicator& ranks, int root, const PartArray<T>& from) {
  ranks.broadcast(root, const_cast<T*>(from.data()), array_bytes<T>(from.size()));  // which the root only reads
}
template <typename T>
void broadcast(Communicator& ranks, int root, HostArray<T>& to) {
  ranks.broadcast(root, to.data(), array_bytes<T>(to.size()));
}

// Broadcasts the arrays of the root.
template <typename Lists, typename Refine>
void exchange(Communicator& ranks, int root, Lists& lists, Refine& refine) {
  broadcast(ranks, root, lists.offsets);
  broadcast(ranks, root, lists.codes);
  broadcast(ranks, root, lists.rows);
  broadcast(ranks, root, refine);
}

template <typename Rows>
void add_shares(Index& index, Communicator& ranks, const Rows& rows, const Ids& ids, const Resources& resources) {
  const DefaultFloatMode mode;
  const bool shares = together(ranks, [&] {
    const RowsInfo info(rows);
    if (!info.space.host_readable()) throw Unsupported("ranks add vectors in host memory");
    check_ids(ids, info.rows);
    IndexAccess::check_new_ids(index, ids, resources);
    return shares_codes(index);
  });
  check_same_request(ranks, describe(index, RowsInfo(rows), ids));
  if (!shares || ranks.size() == 1) return together(ranks, [&] { add_to(index, rows, ids, resources); });

  const auto share_of = [&](int rank) { return part_of(rows.rows(), 1, rank, ranks.size()); };
  const Index empty = together(ranks, [&] { return IndexAccess::without_rows(index, resources); });
  Index own = empty.clone(resources);
  Index whole = empty.clone(resources);
  together(ranks, [&] {
    const RankPart share = share_of(ranks.rank());
    const auto some = slice_of(rows, share.first, share.count);
    if (share.count == 0 && ranks.rank() > 0) return;  // what cannot be added is refused by the first
    with_rows_from(0, share.first, [&] { add_to(own, some, slice_of(ids, share), resources); });
  });
  const MergeParams numbered{.shift_ids = ids.size == 0};
  for (int root = 0; root < ranks.size(); ++root) {
    const RankPart share = share_of(root);
    if (share.count == 0) continue;
    if (root == ranks.rank()) {
      IndexParts made = together(ranks, [&] { return IndexAccess::parts(own, resources); });
      PartArray<uint8_t> none;
      exchange(ranks, root, *made.lists, made.refine ? made.refine->codes : none);
      together(ranks, [&] { whole.merge(own, numbered, resources); });
      continue;
    }
    auto [trained, made] = together(ranks, [&] {
      IndexParts parts = IndexAccess::parts(empty, resources);
      CodedRows room(parts, share.count, resources);
      return std::pair(std::move(parts), std::move(room));
    });
    exchange(ranks, root, made, made.refine);
    together(ranks, [&] {
      whole.merge(std::move(made).with_training(std::move(trained), slice_of(ids, share), resources), numbered, resources);
    });
  }
  together(ranks, [&] { index.merge(whole, numbered, resources); });
}

}  // namespace

void add(Index& index, Communicator& ranks, const MatrixView& rows, VectorView<const int64_t> ids,
         const Resources& resources) {
  add_shares(index, ranks, rows, ids, resources);
}

void add(Index& index, Communicator& ranks, const VectorFile& rows, VectorView<const int64_t> ids,
         const Resources& resources) {
  add_shares(index, ranks, rows, ids, resources);
}

}  // namespace kith
