// "Flat": the vectors themselves in segments, searched exactly, by layouts that are made when they pay off.
//
// An add makes a segment (rows/segments.hpp). All segments are in the memory space of the first rows: the host, or one
// device. Rows on a device are checked when they are prepared.
#include "core/cpu_target.hpp"
#include "core/reused_memory.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "exact/exact_search.hpp"
#include "exact/range_loop.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "index/factory.hpp"
#include "index/shards.hpp"
#include "ranks/parts.hpp"
#include "index/vector_rows.hpp"
#include "rows/stored_row.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace kith {
namespace {

using Vectors = Segments<VectorSegment>;

// How to prepare vectors for queries of a dtype; rows that have been checked are not checked again.
PrepareOptions flat_prepare_options(const IndexParams& params, DType queries) {
  return {params.metric, queries, false, 0};
}

// The layouts of a state's segments, for one search.
class FlatLayouts final : public BaseLayouts {
 public:
  FlatLayouts(const Vectors& vectors, const IndexParams& params, const Resources& resources)
      : vectors_(vectors), params_(params), resources_(resources), ready_(vectors.count()) {}

  // Even a search that throws may have enqueued work that reads the segments.
  ~FlatLayouts() override {
    if (device_.kind != DeviceKind::cuda) return;
    const std::shared_ptr<const StreamMark> mark = mark_stream(device_.index, resources_);
    for (const auto& segment : vectors_) segment->read_until(mark);
  }
  FlatLayouts(const FlatLayouts&) = delete;
  FlatLayouts& operator=(const FlatLayouts&) = delete;

  bool can_prepare() const override { return params_.prepare; }

  bool prepare(const SearchTask& task, Device device, const Resources& given) override {
    device_ = device;
    const Resources resources = SpareDeviceMemory::divided(given, static_cast<int64_t>(vectors_.count()));
    // On the CPU a search with few queries uses only existing layouts: packing pays off after many of them.
    const bool few = device == Device::cpu() && !pays_to_prepare_cpu(task);
    const bool make = params_.prepare && !few;
    const PrepareOptions options = flat_prepare_options(params_, task.shape.query_dtype);
    bool all = true;
    for (size_t i = 0; i < ready_.size(); ++i) {
      const VectorSegment& segment = *vectors_.all()[i];
      ready_[i] = find_layout(segment, device, options.queries);
      const auto pays_now = [&] {
        return few_want_prepared_cpu(task, cpu_extensions()) && segment.made().count_few(task.shape.queries);
      };
      if (ready_[i] == nullptr && params_.prepare && (!few || pays_now())) {
        ready_[i] = get_layout(segment, device, options, resources);
      }
      all &= ready_[i] != nullptr;
    }
    const bool whole = task.request.what == Wanted::nearest && task.filter == FilterPath::none;
    const bool one = whole && task.shape.queries == 1;
    if (make && all && ready_.size() == 1 && one) ready_.front()->expect_one(task.k, resources);
    return all;
  }

  const PreparedBase* of(int64_t row) const override { return ready_[vectors_.number_of(row)].get(); }

 private:
  const Vectors& vectors_;
  const IndexParams& params_;
  const Resources& resources_;
  Device device_;  // of the search; on a GPU it always asks for layouts there
  ReusedVector<Layout> ready_;
};

class FlatState final : public IndexState {
 public:
  // `checked`: the values of all rows have been checked.
  FlatState(const IndexContent& content, const IndexParams& params, Vectors vectors, bool checked)
      : IndexState(content), params_(params), vectors_(std::move(vectors)), checked_(checked) {}

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    if (is_divided(content().space, resources)) {
      return search_shards(
          {ends(), params_.metric, params.filter, queries}, out, resources,
          [&](int number, const MatrixView& asked, const RowFilter& filter, const NeighborsView& found,
              const Resources& part) {
            const auto own = shard(number, resources.parts());
            within_limits("the search of a shard", part, [&](const Resources& used) {
              own->search(asked, found, {.k = found.k, .filter = filter}, used);
            });
          });
    }
    BlockSource base = rows();
    SearchShape shape = check_knn(RowsInfo(queries), base.info(), {params.k, params_.metric});
    shape.base_checked = checked_;
    const SearchRequest request{.k = params.k, .check_finite = params_.check_finite, .result_space = out.space};
    if (counts_only(resources))
      return count_work(search_footprint(shape, request, params.filter, resources), resources);
    ViewSource query_rows(queries);
    FlatLayouts layouts(vectors_, params_, resources);
    search_knn(shape, request, {query_rows, base, params.filter, &layouts}, out, resources);
  }

  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    if (is_divided(content().space, resources)) {
      return range_search_shards(
          {ends(), params_.metric, params.filter, queries}, resources,
          [&](int number, const MatrixView& asked, const RowFilter& filter, const Resources& part) {
            const auto own = shard(number, resources.parts());
            return within_limits("the search of a shard", part, [&](const Resources& used) {
              return own->range_search(asked, {.radius = params.radius, .filter = filter}, used);
            });
          });
    }
    const RangeParams range{params.radius, params_.metric,      params_.check_finite,
                            params.filter, params.result_space, params.allocate};
    BlockSource base = rows();
    SearchShape shape = check_range(RowsInfo(queries), base.info(), range);
    shape.base_checked = checked_;
    ViewSource query_rows(queries);
    FlatLayouts layouts(vectors_, params_, resources);
    return search_range(shape, range, {query_rows, base, params.filter, &layouts}, resources);
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override {
    if (counts_only(resources)) return;
    std::vector<std::byte> row;  // of a device
    for (int64_t i = 0; i < out.rows(); ++i) {
      const size_t segment = vectors_.number_of(rows[i]);
      int64_t at = rows[i] - vectors_.first_row(segment);
      MatrixView view = vectors_.all()[segment]->made().view();
      if (!view.space().host_readable()) {
        row.resize(static_cast<size_t>(view.cols() * size_of(view.dtype())));
        copy_to_host(view.row(at), static_cast<int64_t>(row.size()), view.space().device, row.data());
        view = {row.data(), view.dtype(), {1, view.cols(), view.cols()}};
        at = 0;
      }
      widen_row(view, at, typed_row<float>(out, i));
    }
  }

  void give_parts(IndexParts& parts, const Resources& resources) const override {
    for (const auto& segment : vectors_) {
      const MatrixView& view = segment->made().view();
      if (view.space().host_readable()) {
        parts.flat.emplace_back(view, segment);
        continue;
      }
      MatrixBuffer copy(view.dtype(), view.rows(), view.cols(), "rows to be saved", resources);
      for (int64_t i = 0; i < view.rows() && !counts_only(resources); ++i) {
        copy_to_host(view.row(i), view.cols() * size_of(view.dtype()), view.space().device, copy.mutable_view().row(i));
      }
      parts.flat.emplace_back(std::move(copy));
    }
  }

  void describe(IndexInfo& info, const LiveRows&) const override {
    int64_t layouts = 0;
    for (const auto& segment : vectors_) {
      layouts += segment->prepared().bytes(DeviceKind::cpu) + segment->prepared().bytes(DeviceKind::cuda);
    }
    const IndexBytes held = bytes();
    info.parts.emplace_back("vectors", held.host + held.device - layouts);
    if (layouts > 0) info.parts.emplace_back("copy for searches", layouts);
  }

  IndexBytes bytes() const override { return {vectors_.bytes(DeviceKind::cpu), vectors_.bytes(DeviceKind::cuda)}; }

  const Vectors& vectors() const { return vectors_; }
  bool checked() const { return checked_; }

 private:
  std::vector<int64_t> ends() const {
    std::vector<int64_t> all;
    for (size_t i = 0; i < vectors_.count(); ++i) all.push_back(vectors_.first_row(i + 1));
    return all;
  }
  // A shard of pieces of the segments, in place, each with layouts of its own.
  std::shared_ptr<const FlatState> shard(int number, int count) const {
    const ShardRows rows(ends(), number, count);
    Vectors pieces;
    for (size_t i = 0; i < vectors_.count(); ++i) {
      const RankPart piece = rows.piece(i);
      if (piece.count == 0) continue;
      const MatrixView view = vectors_.all()[i]->made().view().slice(piece.first - vectors_.first_row(i), piece.count);
      pieces.push_back(vectors_.all()[i]->shard(
          count, number, [&] { return std::make_shared<VectorSegment>(std::make_shared<const VectorRows>(view)); }));
    }
    return std::make_shared<FlatState>(content().with_rows(rows.count()), params_, std::move(pieces), checked_);
  }

  BlockSource rows() const {
    ReusedVector<MatrixView> blocks;
    for (const auto& segment : vectors_) blocks.push_back(segment->made().view());
    return BlockSource(std::move(blocks));
  }

  const IndexParams params_;
  const Vectors vectors_;
  const bool checked_;
};

// The device for which rows are prepared when they are added: that of their memory. If it could also be a GPU, it is
// `automatic`, which waits for the first search.
Device device_at_add(Device asked, const MemorySpace& space) {
  if (!space.host_readable()) return Device::cuda(space.device);
  return asked.kind == DeviceKind::automatic && !built_with_cuda() ? Device::cpu() : asked;
}

// Borrowed rows stay where they are.
size_t staying(const Vectors& vectors, int64_t added) {
  return vectors.staying(added, 2, [](const VectorSegment& segment) { return segment.made().owns(); });
}

// A segment of the rows after the first `stay` segments, followed by the new rows.
std::shared_ptr<const VectorSegment> joined(const Vectors& vectors, size_t stay, const MatrixView& rows,
                                            const Resources& resources) {
  std::vector<MatrixView> parts;
  for (size_t i = stay; i < vectors.count(); ++i) parts.push_back(vectors.all()[i]->made().view());
  parts.push_back(rows);
  return std::make_shared<VectorSegment>(VectorRows::join(parts, resources));
}

const FlatState* flat(const IndexState* state) { return static_cast<const FlatState*>(state); }
Vectors vectors_of(const FlatState* state) { return state == nullptr ? Vectors() : state->vectors(); }

// The kept rows of a block, as runs; the block begins at row first_row.
std::vector<MatrixView> kept_runs(const MatrixView& block, int64_t first_row, const uint64_t* bits) {
  std::vector<MatrixView> runs;
  int64_t start = 0;  // of the run that row i would end
  for (int64_t i = 0; i <= block.rows(); ++i) {
    if (i < block.rows() && keeps(bits, first_row + i)) continue;
    if (i > start) runs.push_back(block.slice(start, i - start));
    start = i + 1;
  }
  return runs;
}

class FlatKind final : public IndexKind {
 public:
  explicit FlatKind(const IndexParams& params) : params_(params) {}

  SharedState added(const IndexState* state, const MatrixView& rows, Ownership ownership,
                    const Resources& resources) const override {
    const FlatState* const before = flat(state);
    const Vectors old = vectors_of(before);
    const bool borrow = ownership == Ownership::borrow;
    const size_t stay = borrow ? old.count() : staying(old, rows.rows());
    const auto segment = borrow ? std::make_shared<const VectorSegment>(std::make_shared<const VectorRows>(rows))
                                : joined(old, stay, rows, resources);
    const bool checked = prepare(*segment, old.first_row(stay), resources);
    return std::make_shared<FlatState>(content_after(before, rows), params_, old.with(stay, segment),
                                       checked && (before == nullptr || before->checked()));
  }

  // Without layouts, which are only made if there is room.
  Footprint add_footprint(const IndexState* state, const RowsInfo& rows, const Resources&) const override {
    const Vectors old = vectors_of(flat(state));
    const int64_t joined = old.rows() - old.first_row(staying(old, rows.rows)) + rows.rows;
    return Footprint::in(rows.space, joined * rows.row_bytes());
  }

  SharedState compacted(const IndexState& state, const KeptRows& kept, const Resources& resources) const override {
    const auto& before = static_cast<const FlatState&>(state);
    Vectors left;
    bool checked = before.checked();
    for (size_t i = 0; i < before.vectors().count(); ++i) {
      const auto& segment = before.vectors().all()[i];
      const MatrixView& rows = segment->made().view();
      const std::vector<MatrixView> runs = kept_runs(rows, before.vectors().first_row(i), kept.bits());
      if (runs.empty()) continue;
      const bool whole = runs.size() == 1 && runs[0].rows() == rows.rows();
      const int64_t first_row = left.rows();
      left.push_back(whole ? segment : std::make_shared<VectorSegment>(VectorRows::join(runs, resources)));
      if (!whole) checked = prepare(*left.all().back(), first_row, resources) && checked;
    }
    return std::make_shared<FlatState>(before.content().with_rows(kept.count()), params_, std::move(left), checked);
  }

  bool merges_in_place() const override { return true; }
  // Shares segments with the other index, and merges small ones as an add does.
  SharedState merged(const IndexState* state, const IndexState& other, const Resources& resources) const override {
    const FlatState* const before = flat(state);
    const auto* const more = dynamic_cast<const FlatState*>(&other);
    if (more == nullptr) throw_not_alike("the other index keeps something else than the vectors as they are");
    Vectors vectors = vectors_of(before);
    bool checked = more->checked() && (before == nullptr || before->checked());
    for (const auto& segment : more->vectors()) {
      const VectorRows& rows = segment->made();
      const size_t stay = rows.owns() ? staying(vectors, rows.size()) : vectors.count();
      const bool shared = stay == vectors.count();
      vectors = vectors.with(stay, shared ? segment : joined(vectors, stay, rows.view(), resources));
      if (!shared) checked = prepare(*vectors.all().back(), vectors.first_row(stay), resources) && checked;
    }
    const IndexContent content = before == nullptr ? other.content() : before->content().with_rows(vectors.rows());
    return std::make_shared<FlatState>(content, params_, std::move(vectors), checked);
  }

  SharedState restored(IndexParts& parts, const Resources& resources) const override {
    Vectors vectors;
    IndexParams params = params_;
    bool checked = true;
    for (PartMatrix& rows : parts.flat) {
      if (rows.rows() == 0) continue;
      const int64_t first_row = vectors.rows();
      if (rows.unchecked()) {  // of a mapped file: searches look at its values, and no layout takes memory
        vectors.push_back(std::make_shared<VectorSegment>(mapped_rows(rows)));
        params.prepare = false;
        checked = false;
        continue;
      }
      vectors.push_back(std::make_shared<VectorSegment>(
          std::make_shared<const VectorRows>(std::move(rows).take("the index's rows", resources))));
      checked = prepare(*vectors.all().back(), first_row, resources) && checked;
    }
    const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
    return std::make_shared<FlatState>(IndexContent{vectors.rows(), parts.stored_cols(), dtype, {}}, params,
                                       std::move(vectors), checked);
  }

 private:
  // Rows in the mapped file, which they keep alive.
  static std::shared_ptr<const VectorRows> mapped_rows(const PartMatrix& rows) {
    struct Kept {
      explicit Kept(const PartMatrix& from) : keeper(from.keeper()), rows(from.view()) {}
      const std::shared_ptr<const void> keeper;
      const VectorRows rows;
    };
    const auto kept = std::make_shared<const Kept>(rows);
    return {kept, &kept->rows};
  }

  // Returns whether its values have been checked.
  bool prepare(const VectorSegment& segment, int64_t first_row, const Resources& resources) const {
    const MemorySpace space = segment.space();
    const bool wanted = params_.check_finite || params_.metric == Metric::chi_square;
    const bool checked = !wanted || space.host_readable();
    const Device device = device_at_add(resources.device(), space);
    // With several devices, each prepares its rows at its first search.
    if (!params_.prepare || device.kind == DeviceKind::automatic || resources.parts() > 1) return checked;
    PrepareOptions options = flat_prepare_options(params_, segment.made().view().dtype());
    options.check_finite = !checked && params_.check_finite;
    options.first_row = first_row;
    return get_layout(segment, device, options, resources) != nullptr || checked;
  }

  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_flat(const IndexParams& params) { return std::make_shared<FlatKind>(params); }

}  // namespace kith
