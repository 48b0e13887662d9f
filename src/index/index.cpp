// An Index is a kind, the publisher of its versions, and what is the same for all kinds: the checks, and searches
// before anything was added.
#include <kith/index.hpp>

#include "cuda/device_memory.hpp"
#include "exact/knn_checks.hpp"
#include "exact/range_loop.hpp"
#include "exact/search_limit.hpp"
#include "index/index_checks.hpp"
#include "index/index_kinds.hpp"
#include "index/index_publisher.hpp"

namespace kith {
namespace {

// Before the first add any queries will do.
MatrixView no_rows(const MatrixView& queries) {
  return {nullptr, queries.dtype(), {0, queries.cols(), queries.cols()}};
}

}  // namespace

struct Index::Impl {
  Impl(const IndexKinds& kinds, std::string_view name, const IndexParams& given)
      : factory(name), params(given), kind(kinds.make(name, given)) {
    KnnParams{.metric = given.metric}.validate();
  }

  const std::string factory;
  const IndexParams params;
  const std::shared_ptr<const IndexKind> kind;
  IndexPublisher versions;
};

Index::Index(std::string_view factory, IndexParams params) : Index(IndexKinds::builtin(), factory, params) {}

Index::Index(const IndexKinds& kinds, std::string_view factory, IndexParams params)
    : impl_(std::make_shared<Impl>(kinds, factory, params)) {}

Index make_index(const IndexKinds& kinds, std::string_view factory, IndexParams params) {
  return Index(kinds, factory, params);
}

void Index::add(const MatrixView& rows, Ownership ownership, const Resources& resources) {
  const auto fits = [&](const IndexState* current) {
    check_added(current, rows, impl_->params.metric, resources.device());
  };
  const IndexPublisher::Writer writer(impl_->versions);
  fits(impl_->versions.state().get());  // before the long look at values, for which nobody else should wait
  if (rows.rows() == 0) return;
  check_added_values(rows, impl_->params, resources);
  // Borrowed rows are read by searches, on streams of their own.
  const bool read_elsewhere = ownership == Ownership::borrow && !rows.space().host_readable();
  if (read_elsewhere) wait_for_stream(rows.space().device, resources);
  impl_->versions.publish(
      writer,
      [&](const IndexState* current) {
        fits(current);
        return impl_->kind->added(current, rows, ownership, resources);
      },
      resources);
}

Neighbors Index::search(const MatrixView& queries, const SearchParams& params, const Resources& resources) const {
  KnnParams{params.k, impl_->params.metric}.validate();
  check_result_size(queries.rows(), params.k);
  // Rows that a state keeps otherwise than as f32 take no more.
  const SearchShape shape{
      .queries = queries.rows(), .rows = size(), .cols = queries.cols(), .metric = impl_->params.metric};
  const SearchWish wish{.k = params.k};
  return naming_the_limit({shape, wish, params.filter, neighbors_bytes(queries.rows(), params.k)}, resources, [&] {
    Neighbors result(queries.rows(), params.k, resources);
    search(queries, result.view(), params, resources);
    return result;
  });
}

void Index::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                   const Resources& resources) const {
  const IndexParams& own = impl_->params;
  KnnParams{params.k, own.metric}.validate();
  check_output(out, queries.rows(), params.k);
  const std::shared_ptr<const IndexState> state = impl_->versions.state();
  if (state == nullptr) {
    return knn(queries, no_rows(queries), out, {params.k, own.metric, own.check_finite, params.filter}, resources);
  }
  check_queries(state->content(), queries, own.metric);
  state->search(queries, out, params, resources);
}

RangeNeighbors Index::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                   const Resources& resources) const {
  const IndexParams& own = impl_->params;
  const RangeParams whole{params.radius, own.metric,          own.check_finite,
                          params.filter, params.result_space, params.allocate};
  whole.validate();
  const std::shared_ptr<const IndexState> state = impl_->versions.state();
  if (state == nullptr) return kith::range_search(queries, no_rows(queries), whole, resources);
  check_queries(state->content(), queries, own.metric);
  // A kind of index may know host memory alone.
  return in_space(state->range_search(queries, params, resources), params.result_space, params.allocate, resources);
}

int64_t Index::size() const {
  const auto state = impl_->versions.state();
  return state == nullptr ? 0 : state->content().rows;
}

int64_t Index::dimension() const {
  const auto state = impl_->versions.state();
  return state == nullptr ? 0 : state->content().cols;
}

Device Index::device() const {
  const auto state = impl_->versions.state();
  if (state == nullptr) return Device::automatic();
  const MemorySpace& space = state->content().space;
  return space.host_readable() ? Device::cpu() : Device::cuda(space.device);
}

IndexBytes Index::bytes() const {
  const auto state = impl_->versions.state();
  return state == nullptr ? IndexBytes() : state->bytes();
}

const std::string& Index::factory() const { return impl_->factory; }
const IndexParams& Index::params() const { return impl_->params; }

}  // namespace kith
