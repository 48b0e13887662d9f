// Writes an index with the vectors of files added, under any memory limit: vectors are encoded piece by piece, and
// whenever they take a share of the limit, they are spilled to the disk as a run (index_runs.hpp). If nothing had to be
// spilled, the index is saved from memory.
#include <kith/index.hpp>

#include "core/within_limits.hpp"
#include "index/factory.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_file.hpp"
#include "index/index_impl.hpp"
#include "index/index_runs.hpp"
#include "index/rows_in_place.hpp"
#include "index/whole_host_limit.hpp"
#include "rows/naming_files.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kStateShare = 4;  // of the free memory; rows that take more are spilled
constexpr int64_t kPieceShare = 4;  // of a piece as add() would read it

int64_t host_bytes(const SharedState& state) { return state == nullptr ? 0 : state->bytes().host; }

}  // namespace

void Index::save_added(const VectorFile& file, VectorView<const int64_t> new_ids, const std::string& path,
                       const Resources& given) const {
  const Resources resources = impl_->on_device(given);
  const IndexKind& kind = *impl_->kind;
  const bool on_disk = !impl_->files.empty();
  const bool limited = resources.host_memory()->limit() != kNoLimit;
  if (!on_disk && (!limited || parse_factory(impl_->factory).degree > 0)) {
    Index whole = clone(resources);
    whole.add(file, new_ids, resources);
    return whole.save(path, resources);
  }
  check_ids(new_ids, file.rows());
  const RowsInfo info(file);
  const auto current = impl_->versions.current();
  impl_->refuse_untrained(current.get(), "vectors are added");
  refuse_unshifted_file(offset_of(current.get()), file.path());
  check_added(state_of(current.get()), info, impl_->params.metric);

  IndexVersion version = current == nullptr ? IndexVersion() : compacted(kind, *current, resources);
  SharedState empty;  // once it is known: the training alone
  if (on_disk) {
    IndexParts trained =
        load_parts(first_with_columns(impl_->files, resources), resources, {RowArrays::left_out, RowArrays::left_out});
    empty = kind.restored(trained, resources);
  } else if (version.state != nullptr && version.state->content().rows == 0) {
    empty = version.state;
  }
  const auto parts_of = [&](const SharedState& state) {
    return IndexAccess::parts_of(*impl_, {state, IdTable(), version.offset, version.tuned}, resources);
  };

  const auto needed = [&] {
    constexpr int64_t kLeastRows = 64;  // coded together
    const RowsInfo some(std::min(file.rows(), kLeastRows), info.cols, info.dtype);
    const Footprint each = kind.add_footprint(empty.get(), some, resources).beside({info.row_bytes()});
    return each.times(8)
        .beside({file.memory_bytes() + version.ids.added_bytes(new_ids.size > 0, file.rows())})
        .beside({int64_t{4} << 20})
        .host;
  };
  naming_whole_host_limit(needed, resources, [&] {
    const IdTable ids = version.ids.added(new_ids.data, file.rows(), resources);
    IndexRuns runs(path, [&] { return parts_of(empty); });
    for (const std::string& on : impl_->files) runs.add_file(on, resources);
    if (on_disk) runs.expect_rows(version.ids.live().stored());

    const int64_t share = resources.host_memory()->available() / kStateShare;
    const ReadMemory memory = file.reserve_memory(resources);
    SharedState state = on_disk ? empty : std::exchange(version.state, nullptr);
    const auto spill = [&](int64_t to_come) {
      if (state == nullptr || state->content().rows == 0) return;
      if (empty == nullptr) empty = without_rows(kind, state, resources);
      runs.spill(parts_of(state), to_come, resources);
      state = empty;
    };
    {
      FileSource source(file);
      const int64_t piece = std::max<int64_t>(rows_of_a_piece(info, resources) / (limited ? kPieceShare : 1), 1);
      source.open(piece, resources);
      for (int64_t first = 0; first < file.rows(); first += piece) {
        const MatrixView rows = source.fetch(first, std::min(piece, file.rows() - first));
        naming_files({{"added", file}}, [&] { check_added_values(rows, first, impl_->params, false, resources); });
        const RowsInPlace added(rows, place_for(state.get(), rows.space(), resources.device()), resources);
        state = kind.added(state.get(), added.view(), Ownership::copy, resources);
        const int64_t to_come = file.rows() - first - rows.rows();
        if (limited && to_come > 0 && host_bytes(state) - host_bytes(empty) > share) spill(to_come);
      }
    }
    if (runs.empty() && ids.plain()) {
      IndexParts whole = parts_of(state);
      whole.next_id = ids.next_id();
      return save_parts(whole, path, resources);
    }
    spill(0);
    runs.write(ids, parts_of(empty), resources);
  });
}

}  // namespace kith
