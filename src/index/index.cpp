#include <kith/index.hpp>

#include <kith/error.hpp>

#include "exact/knn_checks.hpp"
#include "index/index_type.hpp"

#include <fmt/format.h>

namespace kith {

struct Index::Impl {
  std::string factory;
  IndexParams params;
  std::unique_ptr<IndexType> type;
};

Index::Index(std::string_view factory, IndexParams params) : impl_(std::make_shared<Impl>()) {
  if (factory != "Flat") {
    throw InvalidArgument(fmt::format("unknown index '{}'; known are: Flat", factory));
  }
  impl_->factory = factory;
  impl_->params = params;
  impl_->type = make_flat(params);
}

void Index::add(const MatrixView& rows, Ownership ownership, const Resources& resources) {
  impl_->type->add(rows, ownership, resources);
}

Neighbors Index::search(const MatrixView& queries, const SearchParams& params, const Resources& resources) const {
  KnnParams{params.k, impl_->params.metric}.validate();
  check_result_size(queries.rows(), params.k);
  Neighbors result(queries.rows(), params.k, resources);
  impl_->type->search(queries, result.view(), params.filter, resources);
  return result;
}

void Index::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                   const Resources& resources) const {
  check_output(out, queries.rows(), params.k);
  impl_->type->search(queries, out, params.filter, resources);
}

RangeNeighbors Index::range_search(const MatrixView& queries, float radius, const RowFilter& filter,
                                   const Resources& resources) const {
  return impl_->type->range_search(queries, radius, filter, resources);
}

int64_t Index::size() const { return impl_->type->size(); }
int64_t Index::dimension() const { return impl_->type->dimension(); }
const std::string& Index::factory() const { return impl_->factory; }
const IndexParams& Index::params() const { return impl_->params; }

}  // namespace kith
