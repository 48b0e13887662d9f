// How a Flat index is searched: exactly, over its segments, with the layouts that they have or get.
#include "index/flat_state.hpp"

#include "core/typed_row.hpp"
#include "cuda/device_memory.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/knn_loop.hpp"
#include "exact/range_loop.hpp"
#include "exact/search_limit.hpp"
#include "rows/stored_row.hpp"

namespace kith {
namespace {

BlockSource rows_of(const FlatState& state) {
  std::vector<MatrixView> blocks;
  for (const auto& segment : state.vectors()) blocks.push_back(segment->made().view());
  return BlockSource(std::move(blocks));
}

// The layouts that the segments of a state have or get, as one search sees them.
class FlatLayouts final : public BaseLayouts {
 public:
  FlatLayouts(const FlatState& state, const Resources& resources)
      : state_(state), resources_(resources), ready_(state.vectors().count()) {}

  // However the search ends, it may have enqueued work that reads the segments.
  ~FlatLayouts() override {
    if (device_.kind != DeviceKind::cuda) return;
    const std::shared_ptr<const StreamMark> mark = mark_stream(device_.index, resources_);
    for (const auto& segment : state_.vectors()) segment->read_until(mark);
  }
  FlatLayouts(const FlatLayouts&) = delete;
  FlatLayouts& operator=(const FlatLayouts&) = delete;

  bool can_prepare() const override { return state_.params().prepare; }

  bool prepare(const SearchTask& task, Device device, const Resources& resources) override {
    device_ = device;
    // A search of few queries uses what there is on the CPU, but would not make up for packing.
    const bool few = device == Device::cpu() && !pays_to_prepare_cpu(task);
    const bool make = state_.params().prepare && !few;
    const PrepareOptions options = flat_prepare_options(state_.params(), task.shape.query_dtype);
    bool all = true;
    for (size_t i = 0; i < ready_.size(); ++i) {
      const VectorSegment& segment = *state_.vectors().all()[i];
      ready_[i] = make ? get_layout(segment, device, options, resources) : find_layout(segment, device, options.queries);
      all &= ready_[i] != nullptr;
    }
    return all;
  }

  const PreparedBase* of(int64_t row) const override { return ready_[state_.vectors().number_of(row)].get(); }

 private:
  const FlatState& state_;
  const Resources& resources_;
  Device device_;  // that searches; a search on a GPU always asks for the layouts there
  std::vector<Layout> ready_;
};

}  // namespace

void FlatState::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                       const Resources& resources) const {
  BlockSource base = rows_of(*this);
  SearchShape shape = check_knn(RowsInfo(queries), base.info(), {params.k, params_.metric});
  shape.base_checked = checked_;
  ViewSource query_rows(queries);
  FlatLayouts layouts(*this, resources);
  search_knn(shape, {.k = params.k, .check_finite = params_.check_finite, .result_space = out.space},
             {query_rows, base, params.filter, &layouts}, out, resources);
}

RangeNeighbors FlatState::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                       const Resources& resources) const {
  RangeParams range{params.radius, params_.metric, params_.check_finite};
  range.result_space = params.result_space;
  range.allocate = params.allocate;
  BlockSource base = rows_of(*this);
  SearchShape shape = check_range(RowsInfo(queries), base.info(), range);
  shape.base_checked = checked_;
  ViewSource query_rows(queries);
  FlatLayouts layouts(*this, resources);
  return search_range(shape, range, {query_rows, base, params.filter, &layouts}, resources);
}

int64_t FlatState::smallest_host_bytes(const RowsInfo& queries, const SearchParams& params,
                                       const Resources& resources) const {
  const SearchShape shape = check_knn(queries, rows_of(*this).info(), {params.k, params_.metric});
  return kith::smallest_host_bytes(shape, {.k = params.k}, params.filter, resources);
}

void FlatState::reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources&) const {
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

int64_t FlatState::give_parts_bytes() const {
  int64_t bytes = 0;
  for (const auto& segment : vectors_) {
    const MatrixView& view = segment->made().view();
    if (!view.space().host_readable()) bytes += view.rows() * view.cols() * size_of(view.dtype());
  }
  return bytes;
}

void FlatState::give_parts(IndexParts& parts, const Resources& resources) const {
  for (const auto& segment : vectors_) {
    const MatrixView& view = segment->made().view();
    if (view.space().host_readable()) {
      parts.flat.emplace_back(view, segment);
      continue;
    }
    MatrixBuffer copy(view.dtype(), view.rows(), view.cols(), "rows to be saved", resources);
    for (int64_t i = 0; i < view.rows(); ++i) {
      copy_to_host(view.row(i), view.cols() * size_of(view.dtype()), view.space().device, copy.mutable_view().row(i));
    }
    parts.flat.emplace_back(std::move(copy));
  }
}

void FlatState::describe(IndexInfo& info, const LiveRows&) const {
  const IndexBytes held = bytes();
  info.parts.emplace_back("vectors", held.host + held.device);
}

IndexBytes FlatState::bytes() const {
  IndexBytes total;
  for (const auto& segment : vectors_) {
    total.host += segment->bytes(DeviceKind::cpu);
    total.device += segment->bytes(DeviceKind::cuda);
  }
  return total;
}

}  // namespace kith
