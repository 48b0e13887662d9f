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

Neighbors Index::search(const MatrixView& queries, int64_t k, const Resources& resources) const {
  KnnParams{k, impl_->params.metric, impl_->params.check_finite}.validate();
  check_result_size(queries.rows(), k);
  Neighbors result(queries.rows(), k, resources);
  search(queries, result.view(), resources);
  return result;
}

void Index::search(const MatrixView& queries, const NeighborsView& out, const Resources& resources) const {
  impl_->type->search(queries, out, resources);
}

int64_t Index::size() const { return impl_->type->size(); }
int64_t Index::dimension() const { return impl_->type->dimension(); }
const std::string& Index::factory() const { return impl_->factory; }
const IndexParams& Index::params() const { return impl_->params; }

}  // namespace kith
