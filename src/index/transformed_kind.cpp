// "OPQ16,...", "PCA64,...": an index of transformed vectors. Vectors and queries are transformed, rounded once per
// transform, and passed to the inner index; distances are between transformed vectors, as in FAISS.
#include <kith/matrix_buffer.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_info.hpp"
#include "index/factory.hpp"
#include "rows/finite_check.hpp"
#include "rows/float_rows.hpp"
#include "rows/host_rows.hpp"
#include "rows/row_source.hpp"
#include "transform/transform_chain.hpp"
#include "transform/transform_cuda.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>

namespace kith {
namespace {

using Chain = std::shared_ptr<const TransformChain>;

// Share of the free memory for transformed vectors; the inner search needs most of it.
constexpr int64_t kTransformedShare = 8;

constexpr std::string_view kTransformedPurpose = "transformed vectors";

// One transformed row, in the memory space of the rows.
Footprint row_footprint(const TransformChain& chain, MemorySpace space) {
  return Footprint::in(space, array_bytes<float>(chain.out()));
}

// Calls use(transformed rows, first) for all rows, in batches, in the memory space of the rows. Under a limit on host
// memory, batches leave room for behind(rows), if that is given.
void for_transformed(const TransformChain& chain, const MatrixView& rows, const Resources& resources,
                     const std::function<void(const MatrixView&, int64_t)>& use,
                     const std::function<Footprint(int64_t)>& behind = {}) {
  constexpr int64_t kPieceBytes = 256 << 20;
  constexpr int64_t kDevicePieceBytes = int64_t{8} << 30;
  const bool here = rows.space().host_readable();
  const int64_t cols = chain.out();
  const int64_t row_bytes = cols * static_cast<int64_t>(sizeof(float));
  const int64_t left = here ? resources.host_memory()->available() : device_memory_left(rows.space().device, resources);
  const int64_t bytes = std::min(here ? kPieceBytes : kDevicePieceBytes, left / kTransformedShare);
  int64_t piece = std::clamp<int64_t>(bytes / row_bytes, 1, std::max<int64_t>(rows.rows(), 1));
  const bool limited = here && behind && counts_memory(resources);
  while (limited && piece > 1 && behind(piece).host > left - piece * row_bytes) piece = divide_up(piece, 2);
  const FloatRows transformed(rows.space(), std::min(piece, rows.rows()), cols, kTransformedPurpose, resources);
  for (int64_t first = 0; first < rows.rows(); first += piece) {
    const int64_t count = std::min(piece, rows.rows() - first);
    const MutableMatrixView out = transformed.view().slice(0, count);
    chain.apply(rows.slice(first, count), out, resources);
    use(out, first);
  }
}

void check_queries_finite(const MatrixView& queries, const Resources& resources) {
  if (!queries.space().host_readable()) return refuse_not_finite_cuda("query", queries, resources);
  refuse_not_finite("query", queries, {0}, resources);
}

// Transformed rows, on which the inner index is trained, in the memory space of the originals.
class TransformedSource final : public RowSource {
 public:
  // Keeps references to both.
  TransformedSource(const TransformChain& chain, RowSource& rows) : chain_(chain), rows_(rows) {}

  RowsInfo info() const override {
    RowsInfo info = rows_.info();
    info.cols = chain_.out();
    info.dtype = DType::f32;
    if (info.space.host_readable()) info.space = {};
    return info;
  }
  int64_t together(int64_t first) const override { return rows_.together(first); }
  void open(int64_t most, const Resources& resources) override {
    resources_ = resources;
    rows_.open(most, resources);
    if (rows_.space().host_readable()) {
      buffer_ = FloatRows({}, std::min(most, rows_.rows()), chain_.out(), kTransformedPurpose, resources);
    }
  }
  MatrixView fetch(int64_t first, int64_t count) override {
    const MemorySpace space = rows_.space();
    if (!space.host_readable() || buffer_.view().rows() < count) {
      buffer_ = FloatRows(space.host_readable() ? MemorySpace() : space, count, chain_.out(), kTransformedPurpose,
                          resources_);
    }
    const MutableMatrixView out = buffer_.view().slice(0, count);
    chain_.apply(rows_.fetch(first, count), out, resources_);
    return out;
  }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    const RowsInfo info = rows_.info();
    MatrixBuffer before(info.dtype, count, info.cols, "rows to transform", resources);
    rows_.gather(rows, count, before.mutable_view(), resources);
    chain_.apply(before.view(), out, resources);
  }
  RowSource* made_from() override { return &rows_; }
  void make(const MatrixView& from, const MutableMatrixView& out, const Resources& resources) override {
    chain_.apply(from, out, resources.with_progress({}));
  }

 private:
  const TransformChain& chain_;
  RowSource& rows_;
  Resources resources_;
  FloatRows buffer_;
};

// Assembles the results of a range search from batches of queries. Memory: for a moment twice that of the results, or
// once if there is only one batch.
class RangeParts {
 public:
  // Adds the result of the next queries, in host memory.
  void add(RangeNeighbors part) { parts_.push_back(std::move(part)); }

  RangeNeighbors joined(const Resources& resources) && {
    if (parts_.size() == 1) return std::move(parts_.front());
    int64_t queries = 0;
    int64_t size = 0;
    for (const RangeNeighbors& part : parts_) {
      queries += part.queries();
      size += part.size();
    }
    RangeNeighbors all(queries, size, resources);
    all.offsets()[0] = 0;
    int64_t query = 0;
    int64_t at = 0;
    for (RangeNeighbors& part : parts_) {
      const int64_t found = part.size();
      std::copy_n(part.ids(), found, all.ids() + at);
      std::copy_n(part.distances(), found, all.distances() + at);
      for (int64_t i = 1; i <= part.queries(); ++i) all.offsets()[++query] = at + part.offsets()[i];
      at += found;
      part = RangeNeighbors();
    }
    return all;
  }

 private:
  std::vector<RangeNeighbors> parts_;
};

IndexContent outer_content(const TransformChain& chain, const IndexState& inner) {
  IndexContent content = inner.content();
  content.cols = chain.in();
  content.any_dtype = true;
  return content;
}

class TransformedState final : public IndexState {
 public:
  TransformedState(Chain chain, SharedState inner, const IndexParams& params)
      : IndexState(outer_content(*chain, *inner)),
        chain_(std::move(chain)),
        inner_(std::move(inner)),
        params_(params) {}

  int64_t probes_with_filter(int64_t probes, const std::function<int64_t()>& kept, int64_t live) const override {
    return inner_->probes_with_filter(probes, kept, live);
  }

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    search_transformed(queries, out, resources,
                  [&](const MatrixView& some, const NeighborsView& part, const Resources& used) {
                    inner_->search(some, part, params, used);
                  });
  }
  void search_all(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                  const Resources& resources) const override {
    search_transformed(queries, out, resources,
                  [&](const MatrixView& some, const NeighborsView& part, const Resources& used) {
                    inner_->search_all(some, part, params, used);
                  });
  }

  int64_t compared(const MatrixView& queries, const SearchParams& params, const Resources& resources) const override {
    if (counts_only(resources)) {
      count_work(chain_->footprint(RowsInfo(queries), resources), resources);
      return inner_->compared(counted_queries(queries.rows(), {}), params, resources);
    }
    int64_t total = 0;
    for_transformed(*chain_, queries, resources,
                    [&](const MatrixView& some, int64_t) { total += inner_->compared(some, params, resources); });
    return total;
  }

  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    const HostRows on_host(queries, resources);
    RangeSearchParams to_host = params;
    to_host.result_space = MemorySpace::host();
    to_host.allocate = {};
    const auto behind = [&](int64_t count) {
      return footprint_of_call(
                 resources,
                 [&](const Resources& used) { (void)inner_->range_search(counted_queries(count, {}), to_host, used); })
          .then(chain_->footprint({count, queries.cols(), DType::f32}, resources));
    };
    if (counts_only(resources)) {  // a query at a time, and the fixed part of its results
      Footprint needed = behind(1);
      needed.device = std::max(needed.device, behind(queries.rows()).device);  // by which nothing gets smaller
      count_work(
          needed.beside(array_footprint<float>(chain_->out())).beside(array_footprint<int64_t>(queries.rows(), 8)),
          resources);
      return {};
    }
    if (params_.check_finite) refuse_not_finite("query", on_host.view(), {0}, resources);
    RangeParts parts;
    for_transformed(
        *chain_, on_host.view(), resources,
        [&](const MatrixView& some, int64_t) { parts.add(inner_->range_search(some, to_host, resources)); }, behind);
    return std::move(parts).joined(resources);
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override {
    MatrixBuffer inner(DType::f32, out.rows(), chain_->out(), "reconstructed vectors", resources);
    inner_->reconstruct(rows, inner.mutable_view(), resources);
    if (counts_only(resources)) {
      return count_work(array_footprint<float>(out.rows(), 2 * chain_->widest())
                            .beside(chain_->footprint({out.rows(), chain_->out(), DType::f32}, resources)),
                        resources);
    }
    chain_->reverse(inner.view(), out, resources);
  }

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
  const SharedState& inner() const { return inner_; }

 private:
  // Calls search(transformed queries, their part of the results, resources).
  template <typename Search>
  void search_transformed(const MatrixView& queries, const NeighborsView& out, const Resources& resources,
                     const Search& search) const {
    if (counts_only(resources)) {
      const Footprint behind = footprint_of_call(resources, [&](const Resources& used) {
        search(counted_queries(queries.rows(), queries.space()), out, used);
      });
      return count_work(behind.then(chain_->footprint(RowsInfo(queries), resources))
                            .beside_share(kTransformedShare, row_footprint(*chain_, queries.space())),
                        resources);
    }
    if (params_.check_finite) check_queries_finite(queries, resources);
    const int64_t spare = SpareDeviceMemory::of(resources);
    const Resources behind = SpareDeviceMemory::with(resources, spare - spare / kTransformedShare);
    const auto search_some = [&](const MatrixView& some, int64_t first) {
      const NeighborsView part{out.ids + first * out.k, out.distances + first * out.k, some.rows(), out.k, out.space};
      search(some, part, behind);
    };
    for_transformed(*chain_, queries, resources, std::cref(search_some));  // which is not copied
  }

  // The shape of transformed queries, for calls that are counted.
  MatrixView counted_queries(int64_t count, MemorySpace space) const {
    return {counted_only_memory(), DType::f32, {count, chain_->out(), chain_->out()}, space};
  }

  int64_t chain_bytes() const {
    int64_t bytes = 0;
    for (const auto& step : chain_->steps()) bytes += step->bytes();
    return bytes;
  }

  const Chain chain_;
  const SharedState inner_;
  const IndexParams params_;
};

const TransformedState& transformed(const IndexState& state) { return static_cast<const TransformedState&>(state); }

class TransformedKind final : public IndexKind {
 public:
  TransformedKind(std::vector<TransformSpec> transforms, std::shared_ptr<const IndexKind> inner,
                  const IndexParams& params)
      : transforms_(std::move(transforms)), inner_(std::move(inner)), params_(params) {}

  SearchUse search_use() const override { return inner_->search_use(); }
  bool needs_training() const override { return true; }

  SharedState trained(RowSource& rows, const Resources& resources) const override {
    const auto chain =
        std::make_shared<const TransformChain>(train_transforms(transforms_, rows, params_.seed, resources));
    TransformedSource source(*chain, rows);
    if (inner_->needs_training()) return made(chain, inner_->trained(source, resources));
    IndexParts nothing;
    nothing.cols = chain->out();
    return made(chain, inner_->restored(nothing, resources));
  }

  // Training of the inner index reads transformed rows, piece by piece.
  Footprint training_footprint(const RowsInfo& rows, const Resources& resources) const override {
    const RowsInfo inside(rows.rows, transformed_cols(transforms_, rows.cols), DType::f32, rows.space);
    const Footprint first = transform_training_footprint(transforms_, rows, resources);
    return inner_->needs_training() ? first.beside(inner_->training_footprint(inside, resources).times(2)) : first;
  }

  SharedState added(const IndexState* before, const MatrixView& rows, Ownership,
                    const Resources& resources) const override {
    const TransformedState& state = transformed(*before);
    SharedState inner = state.inner();
    for_transformed(*state.chain(), rows, resources, [&](const MatrixView& some, int64_t) {
      inner = inner_->added(inner.get(), some, Ownership::copy, resources);
    });
    return made(state.chain(), std::move(inner));
  }

  SharedState completed(const SharedState& state, const Resources& resources) const override {
    return with_inner(state, inner_->completed(transformed(*state).inner(), resources));
  }
  SharedState completed_from(const NeighborsView& start, const SharedState& state,
                             const Resources& resources) const override {
    return with_inner(state, inner_->completed_from(start, transformed(*state).inner(), resources));
  }
  bool takes_start() const override { return inner_->takes_start(); }
  Footprint completion_footprint(const IndexState* before, const RowsInfo& rows,
                                 const Resources& resources) const override {
    const RowsInfo inside(rows.rows, transformed_cols(transforms_, rows.cols), DType::f32, rows.space);
    const IndexState* const behind = before == nullptr ? nullptr : transformed(*before).inner().get();
    return inner_->completion_footprint(behind, inside, resources);
  }
  Footprint compaction_footprint(const IndexState& before, int64_t dropped, const Resources& resources) const override {
    return inner_->compaction_footprint(*transformed(before).inner(), dropped, resources);
  }

  // Rows are added in pieces of a share of the free memory; each makes a state from which the next one is made.
  Footprint add_footprint(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    const TransformedState& state = transformed(*before);
    const int64_t cols = state.chain()->out();
    const RowsInfo inside(rows.rows, cols, DType::f32, rows.space);
    const Footprint behind = inner_->add_footprint(state.inner().get(), inside, resources).times(2);
    return behind.beside_share(kTransformedShare, row_footprint(*state.chain(), rows.space))
        .beside(state.chain()->footprint(rows, resources));
  }

  SharedState compacted(const IndexState& before, const KeptRows& kept, const Resources& resources) const override {
    const TransformedState& state = transformed(before);
    return made(state.chain(), inner_->compacted(*state.inner(), kept, resources));
  }

  SharedState merged(const IndexState* before, const IndexState& other, const Resources& resources) const override {
    const TransformedState& state = transformed(*before);
    const auto* const more = dynamic_cast<const TransformedState*>(&other);
    if (more == nullptr || !same_transforms(*state.chain(), *more->chain())) {
      throw_not_alike("their transforms differ");
    }
    return made(state.chain(), inner_->merged(state.inner().get(), *more->inner(), resources));
  }

  bool merges_in_place() const override { return inner_->merges_in_place(); }

  SharedState restored(IndexParts& parts, const Resources& resources) const override {
    const auto chain = std::make_shared<const TransformChain>(TransformChain::from_parts(parts.transforms, resources));
    return made(chain, inner_->restored(parts, resources));
  }

 private:
  SharedState with_inner(const SharedState& state, SharedState inner) const {
    const TransformedState& whole = transformed(*state);
    return inner == whole.inner() ? state : made(whole.chain(), std::move(inner));
  }

  SharedState made(Chain chain, SharedState inner) const {
    return std::make_shared<TransformedState>(std::move(chain), std::move(inner), params_);
  }

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
