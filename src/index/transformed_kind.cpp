#include "index/transformed_kind.hpp"

#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "cuda/device_info.hpp"
#include "cuda/device_memory.hpp"
#include "index/host_rows.hpp"
#include "index/range_parts.hpp"
#include "index/transformed_source.hpp"
#include "rows/finite_check.hpp"
#include "transform/transform_cuda.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>

namespace kith {
namespace {

using Chain = std::shared_ptr<const TransformChain>;

// Of the memory that is free, for transformed vectors: the search behind needs most of it.
constexpr int64_t kTransformedShare = 8;

// Calls use(transformed rows, first) for all rows, as many at a time as fit well, in the memory where they lie.
void for_transformed(const TransformChain& chain, const MatrixView& rows, const Resources& resources,
                     const std::function<void(const MatrixView&, int64_t)>& use) {
  constexpr int64_t kPieceBytes = 256 << 20;
  constexpr int64_t kDevicePieceBytes = int64_t{8} << 30;
  const bool here = rows.space().host_readable();
  const int device = rows.space().device;
  const int64_t cols = chain.out();
  const int64_t row_bytes = cols * static_cast<int64_t>(sizeof(float));
  const int64_t left =
      here ? resources.host_memory()->available()
           : std::min(resources.device_memory(device)->available(), cuda_device(device).memory_free);
  const int64_t bytes = std::min(here ? kPieceBytes : kDevicePieceBytes, left / kTransformedShare);
  const int64_t piece = std::clamp<int64_t>(bytes / row_bytes, 1, std::max<int64_t>(rows.rows(), 1));
  constexpr std::string_view kPurpose = "transformed vectors";
  MatrixBuffer buffer;
  std::shared_ptr<std::byte> there;
  if (here) {
    buffer = MatrixBuffer(DType::f32, std::min(piece, rows.rows()), cols, kPurpose, resources);
  } else {
    there = allocate_on_device(std::min(piece, rows.rows()) * row_bytes, kPurpose, device, resources);
  }
  for (int64_t first = 0; first < rows.rows(); first += piece) {
    const int64_t count = std::min(piece, rows.rows() - first);
    const MutableMatrixView out = here ? buffer.mutable_view().slice(0, count)
                                       : MutableMatrixView(there.get(), DType::f32, {count, cols, cols}, rows.space());
    chain.apply(rows.slice(first, count), out, resources);
    use(out, first);
  }
}

void check_queries_finite(const MatrixView& queries, const Resources& resources) {
  if (!queries.space().host_readable()) return refuse_not_finite_cuda("query", queries, resources);
  refuse_not_finite("query", queries, {0}, resources);
}

IndexContent outer_content(const TransformChain& chain, const IndexState& inner) {
  IndexContent content = inner.content();
  content.cols = chain.in();
  content.any_dtype = true;
  return content;
}

class TransformedState final : public IndexState {
 public:
  TransformedState(Chain chain, std::shared_ptr<const IndexState> inner, const IndexParams& params)
      : IndexState(outer_content(*chain, *inner)),
        chain_(std::move(chain)),
        inner_(std::move(inner)),
        params_(params) {}

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    if (params_.check_finite) check_queries_finite(queries, resources);
    for_transformed(*chain_, queries, resources, [&](const MatrixView& some, int64_t first) {
      const NeighborsView part{out.ids + first * out.k, out.distances + first * out.k, some.rows(), out.k, out.space};
      inner_->search(some, part, params, resources);
    });
  }

  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    const HostRows on_host(queries, resources);
    if (params_.check_finite) refuse_not_finite("query", on_host.view(), {0}, resources);
    RangeSearchParams to_host = params;
    to_host.result_space = MemorySpace::host();
    to_host.allocate = {};
    RangeParts parts;
    for_transformed(*chain_, on_host.view(), resources, [&](const MatrixView& some, int64_t) {
      parts.add(inner_->range_search(some, to_host, resources));
    });
    return std::move(parts).joined(resources);
  }

  int64_t smallest_host_bytes(const RowsInfo& queries, const SearchParams& params,
                              const Resources& resources) const override {
    const int64_t row_bytes = array_bytes<float>(chain_->out());
    const RowsInfo transformed(queries.rows, chain_->out(), DType::f32);
    const int64_t behind = inner_->smallest_host_bytes(transformed, params, resources);
    // Steps between the first and the last make rows of their own.
    return HostRows::bytes_for(queries) + behind + std::max(behind / (kTransformedShare - 1) + 1, row_bytes) +
           2 * array_bytes<float>(chain_->widest());
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override {
    MatrixBuffer inner(DType::f32, out.rows(), chain_->out(), "reconstructed vectors", resources);
    inner_->reconstruct(rows, inner.mutable_view(), resources);
    chain_->reverse(inner.view(), out, resources);
  }

  int64_t smallest_range_bytes(const RowsInfo& queries, const RangeSearchParams& params,
                               const Resources& resources) const override {
    const RowsInfo transformed(queries.rows, chain_->out(), DType::f32);
    const int64_t behind = inner_->smallest_range_bytes(transformed, params, resources);
    return HostRows::bytes_for(queries) + behind + behind / (kTransformedShare - 1) +
           array_bytes<float>(chain_->out()) + chain_->footprint(queries, resources).host;
  }

  int64_t reconstruct_bytes(int64_t count, const Resources& resources) const override {
    return inner_->reconstruct_bytes(count, resources) +
           count * array_bytes<float>(chain_->out() + 2 * chain_->widest()) +
           chain_->footprint({count, chain_->out(), DType::f32}, resources).host;
  }
  int64_t give_parts_bytes() const override { return inner_->give_parts_bytes(); }
  IndexBytes bytes() const override {
    IndexBytes total = inner_->bytes();
    total.host += chain_bytes();
    return total;
  }
  void describe(IndexInfo& info, const LiveRows& live) const override {
    info.parts.emplace_back("transforms", chain_bytes());
    inner_->describe(info, live);
  }
  void give_parts(IndexParts& parts, const Resources& resources) const override {
    parts.transforms = chain_->parts();
    inner_->give_parts(parts, resources);
  }

  const Chain& chain() const { return chain_; }
  const std::shared_ptr<const IndexState>& inner() const { return inner_; }

 private:
  int64_t chain_bytes() const {
    int64_t bytes = 0;
    for (const auto& step : chain_->steps()) bytes += step->bytes();
    return bytes;
  }

  const Chain chain_;
  const std::shared_ptr<const IndexState> inner_;
  const IndexParams params_;
};

const TransformedState& transformed(const IndexState& state) { return static_cast<const TransformedState&>(state); }

class TransformedKind final : public IndexKind {
 public:
  TransformedKind(std::vector<TransformSpec> transforms, std::shared_ptr<const IndexKind> inner,
                  const IndexParams& params)
      : transforms_(std::move(transforms)), inner_(std::move(inner)), params_(params) {}

  bool needs_training() const override { return true; }

  std::shared_ptr<const IndexState> trained(RowSource& rows, const Resources& resources) const override {
    const auto chain =
        std::make_shared<const TransformChain>(train_transforms(transforms_, rows, params_.seed, resources));
    TransformedSource source(*chain, rows);
    std::shared_ptr<const IndexState> inner;
    if (inner_->needs_training()) {
      inner = inner_->trained(source, resources);
    } else {
      IndexParts nothing;
      nothing.cols = chain->out();
      inner = inner_->restored(nothing, resources);
    }
    return std::make_shared<TransformedState>(chain, std::move(inner), params_);
  }

  // What is trained behind the transforms takes rows through them, piece by piece.
  int64_t trained_bytes(const RowsInfo& rows, const Resources& resources) const override {
    const RowsInfo inside(rows.rows, transformed_cols(transforms_, rows.cols), DType::f32);
    const int64_t first = transform_training_footprint(transforms_, rows, resources).host;
    return first + (inner_->needs_training() ? 2 * inner_->trained_bytes(inside, resources) : 0);
  }

  std::shared_ptr<const IndexState> added(const IndexState* before, const MatrixView& rows, Ownership,
                                          const Resources& resources) const override {
    const TransformedState& state = transformed(*before);
    std::shared_ptr<const IndexState> inner = state.inner();
    for_transformed(*state.chain(), rows, resources, [&](const MatrixView& some, int64_t) {
      inner = inner_->added(inner.get(), some, Ownership::copy, resources);
    });
    return std::make_shared<TransformedState>(state.chain(), std::move(inner), params_);
  }

  // Rows come in pieces of a share of what is left: each makes a state, of which the next is made.
  int64_t added_bytes(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    const TransformedState& state = transformed(*before);
    RowsInfo inside(rows.rows, state.chain()->out(), DType::f32);
    const int64_t behind = 2 * inner_->added_bytes(state.inner().get(), inside, resources);
    const int64_t row_bytes = array_bytes<float>(state.chain()->out());
    return behind + std::max(behind / (kTransformedShare - 1) + 1, row_bytes) +
           state.chain()->footprint(rows, resources).host;
  }

  std::shared_ptr<const IndexState> compacted(const IndexState& before, const KeptRows& kept,
                                              const Resources& resources) const override {
    const TransformedState& state = transformed(before);
    return std::make_shared<TransformedState>(state.chain(), inner_->compacted(*state.inner(), kept, resources), params_);
  }

  std::shared_ptr<const IndexState> merged(const IndexState* before, const IndexState& other,
                                           const Resources& resources) const override {
    const TransformedState& state = transformed(*before);
    const auto* const more = dynamic_cast<const TransformedState*>(&other);
    if (more == nullptr || !same_transforms(*state.chain(), *more->chain())) {
      throw_not_alike("their transforms differ");
    }
    return std::make_shared<TransformedState>(state.chain(),
                                              inner_->merged(state.inner().get(), *more->inner(), resources), params_);
  }

  std::shared_ptr<const IndexState> restored(IndexParts& parts, const Resources& resources) const override {
    const auto chain = std::make_shared<const TransformChain>(TransformChain::from_parts(parts.transforms, resources));
    std::shared_ptr<const IndexState> inner = inner_->restored(parts, resources);
    return std::make_shared<TransformedState>(chain, std::move(inner), params_);
  }

 private:
  const std::vector<TransformSpec> transforms_;
  const std::shared_ptr<const IndexKind> inner_;
  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_transformed_kind(std::vector<TransformSpec> transforms,
                                                       std::shared_ptr<const IndexKind> inner,
                                                       const IndexParams& params) {
  return std::make_shared<TransformedKind>(std::move(transforms), std::move(inner), params);
}

}  // namespace kith
