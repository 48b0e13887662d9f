// Writes an index with the vectors of files added, under any memory limit: vectors are encoded piece by piece, and
// whenever they take a share of the limit, they are spilled to the disk as a run (index_runs.hpp). If nothing had to be
// spilled, the index is saved from memory. With a work folder runs are its steps, and rows that steps have
// are not encoded again.
#include <kith/index.hpp>
#include <kith/refused_row.hpp>

#include "core/within_limits.hpp"
#include "index/factory.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_file.hpp"
#include "index/index_impl.hpp"
#include "index/index_runs.hpp"
#include "index/rows_in_place.hpp"
#include "index/whole_host_limit.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kStateShare = 4;  // of the free memory; rows that take more are spilled
constexpr int64_t kPieceShare = 4;  // of a piece as add() would read it
constexpr int64_t kMostStepBytes = int64_t{1} << 30;  // of a step's rows, where no limit says less

// What of the rows is not there yet, behind `before` rows of the index; in order, with the steps between.
struct AddedRange {
  int64_t first = 0;
  int64_t end = 0;
  bool is_step = false;
};
std::vector<AddedRange> ranges_of(const std::vector<StepRows>& steps, int64_t first, int64_t end) {
  std::vector<AddedRange> ranges;
  int64_t at = first;
  for (const StepRows& step : steps) {
    if (step.first > at) ranges.push_back({at, step.first, false});
    ranges.push_back({step.first, step.end, true});
    at = step.end;
  }
  if (at < end) ranges.push_back({at, end, false});
  return ranges;
}

int64_t host_bytes(const SharedState& state) { return state == nullptr ? 0 : state->bytes().host; }

}  // namespace

void Index::save_added(const VectorFile& file, VectorView<const int64_t> new_ids, const std::string& path,
                       const Resources& given) const {
  IndexAccess::save_added(*this, file, new_ids, path, nullptr, 0, given);
}

void IndexAccess::save_added(const Index& index, const VectorFile& file, VectorView<const int64_t> new_ids,
                             const std::string& path, WorkFolder* folder, int64_t step_rows, const Resources& given) {
  const std::shared_ptr<Index::Impl>& impl_ = index.impl_;
  const Resources resources = impl_->on_device(given);
  const IndexKind& kind = *impl_->kind;
  const bool on_disk = !impl_->files.empty();
  const bool limited = resources.host_memory()->limit() != kNoLimit;
  if (folder == nullptr && !on_disk && (!limited || parse_factory(impl_->factory).degree > 0)) {
    Index whole = index.clone(resources);
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
  const auto parts = [&](const SharedState& state) {
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
    IndexRuns runs(path, [&] { return parts(empty); }, folder);
    for (const std::string& on : impl_->files) runs.add_file(on, resources);
    if (on_disk) runs.expect_rows(version.ids.live().stored());

    const int64_t available = resources.host_memory()->available();
    const int64_t share = folder == nullptr ? available / kStateShare : std::min(available / kStateShare, kMostStepBytes);
    const bool spills = limited || folder != nullptr;
    const ReadMemory memory = file.reserve_memory(resources);
    SharedState state = on_disk ? empty : std::exchange(version.state, nullptr);
    const auto rows_in = [](const SharedState& of) { return of == nullptr ? 0 : of->content().rows; };
    const auto spill = [&](int64_t to_come) {
      if (rows_in(state) == 0) return;
      if (empty == nullptr) empty = kith::without_rows(kind, state, resources);
      runs.spill(parts(state), to_come, resources);
      state = empty;
    };
    {
      FileSource source(file);
      const int64_t usual = std::max<int64_t>(rows_of_a_piece(info, resources) / (spills ? kPieceShare : 1), 1);
      const int64_t piece = step_rows > 0 ? std::min(usual, step_rows) : usual;
      source.open(piece, resources);
      const int64_t had = on_disk ? runs.rows() : rows_in(state);
      const int64_t all = had + file.rows();
      std::vector<StepRows> steps;
      if (folder != nullptr) {
        steps = IndexRuns::find_steps(*folder);
        if (empty == nullptr && had == 0 && !steps.empty()) {
          IndexParts training = IndexRuns::training_in(*folder, steps.front(), resources);
          empty = kind.restored(training, resources);
          state = empty;
        }
        const bool has_first = had == 0 || on_disk || (!steps.empty() && steps.front().first == 0);
        // The rows that the index has are a step too.
        if (!has_first) {
          empty = kith::without_rows(kind, state, resources);
          spill(file.rows());
        } else if (!on_disk && had > 0) {
          empty = kith::without_rows(kind, state, resources);
          state = empty;
          runs.add_step(steps.front(), resources);
        }
        std::erase_if(steps, [&](const StepRows& step) { return step.first < runs.rows(); });
      }
      for (const AddedRange& range : ranges_of(steps, folder == nullptr ? had : runs.rows(), all)) {
        if (range.is_step) {
          runs.add_step({range.first, range.end}, resources);
          continue;
        }
        for (int64_t at = range.first; at < range.end; at += piece) {
          const int64_t first = at - had;
          const MatrixView rows = source.fetch(first, std::min(piece, range.end - at));
          naming_files({{"added", file}}, [&] { check_added_values(rows, first, impl_->params, false, resources); });
          const RowsInPlace added(rows, place_for(state.get(), rows.space(), resources.device()), resources);
          state = kind.added(state.get(), added.view(), Ownership::copy, resources);
          const int64_t to_come = file.rows() - first - rows.rows();
          const bool is_full = host_bytes(state) - host_bytes(empty) > share;
          const bool ends = folder != nullptr && (at + rows.rows() == range.end || rows_in(state) == step_rows);
          if (ends || (spills && to_come > 0 && is_full)) spill(to_come);
        }
      }
    }
    if (runs.empty() && ids.plain()) {
      IndexParts whole = parts(state);
      whole.next_id = ids.next_id();
      return save_parts(whole, path, resources);
    }
    spill(0);
    runs.write(ids, parts(empty), resources);
  });
}

}  // namespace kith
