// An Index is a kind, the publisher of its versions, and what is the same for all kinds: the checks, ids, and searches
// of nothing.
#include <kith/index.hpp>

#include "core/divide.hpp"
#include "cuda/device_memory.hpp"
#include "exact/knn_checks.hpp"
#include "exact/range_loop.hpp"
#include "exact/search_limit.hpp"
#include "index/factory.hpp"
#include "index/id_filter.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_file.hpp"
#include "index/index_parts_check.hpp"
#include "index/index_publisher.hpp"
#include "io/file_error.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// What any queries are searched in before the first add.
MatrixView no_rows(const MatrixView& queries) {
  return {nullptr, queries.dtype(), {0, queries.cols(), queries.cols()}};
}

const IndexState* state_of(const IndexVersion* version) { return version == nullptr ? nullptr : version->state.get(); }

int64_t rows_of(const IndexVersion* version) {
  return version == nullptr || version->state == nullptr ? 0 : version->state->content().rows;
}

// Rows become ids where they lie.
void rows_to_ids(const IdTable& ids, const VectorView<int64_t>& rows, const Resources& resources) {
  if (ids.plain() || rows.size == 0) return;
  if (rows.space.host_readable()) return ids.rows_to_ids(rows.data, rows.size);
  HostArray<int64_t> found(rows.size, "the ids found", resources);
  const int device = rows.space.device;
  wait_for_stream(device, resources);
  copy_to_host(rows.data, found.bytes(), device, found.data());
  ids.rows_to_ids(found.data(), rows.size);
  const MatrixView bytes(found.data(), DType::u8, {1, found.bytes(), found.bytes()});
  copy_to_device(bytes, reinterpret_cast<std::byte*>(rows.data), device, resources);
}

}  // namespace

struct Index::Impl {
  Impl(std::shared_ptr<const IndexKind> made, std::string_view name, const IndexParams& given)
      : factory(name), params(given), kind(std::move(made)) {
    KnnParams{.metric = given.metric}.validate();
  }

  // Publishes what `add` makes of the current state, with ids for the `count` rows that come.
  template <typename Add>
  void add(const IndexPublisher::Writer& writer, VectorView<const int64_t> new_ids, int64_t count,
           const Resources& resources, const Add& add_rows) {
    versions.publish(
        writer,
        [&](const IndexVersion* current) {
          refuse_untrained(current, "vectors are added");
          const IdTable before = current == nullptr ? IdTable() : current->ids;
          IdTable ids = before.added(new_ids.data, count, resources);
          return IndexVersion{add_rows(state_of(current)), std::move(ids)};
        },
        resources);
  }

  void refuse_untrained(const IndexVersion* current, std::string_view before_what) const {
    if (!kind->needs_training() || state_of(current) != nullptr) return;
    throw InvalidState(fmt::format("the index {} must be trained before {}: call train() first", factory, before_what));
  }

  void train(RowSource& rows, const Resources& resources) {
    const IndexPublisher::Writer writer(versions);
    versions.publish(
        writer,
        [&](const IndexVersion* current) {
          const int64_t before = rows_of(current);
          if (before > 0) {
            throw InvalidState(fmt::format(
                "the index holds {} vectors, coded as it was trained; train a new one, or remove them first", before));
          }
          if (!kind->needs_training()) return current == nullptr ? IndexVersion() : *current;
          return IndexVersion{kind->trained(rows, resources), current == nullptr ? IdTable() : current->ids};
        },
        resources);
  }

  const std::string factory;
  const IndexParams params;
  const std::shared_ptr<const IndexKind> kind;
  IndexPublisher versions;
};

Index::Index(std::string_view factory, IndexParams params)
    : impl_(std::make_shared<Impl>(make_kind(parse_factory(factory), params), factory, params)) {}

Index IndexAccess::make(std::shared_ptr<const IndexKind> kind, std::string_view factory, IndexParams params) {
  return Index(std::make_shared<Index::Impl>(std::move(kind), factory, params));
}

void Index::train(const MatrixView& rows, const Resources& resources) {
  check_trained_on(RowsInfo(rows), impl_->params.metric);
  check_training_values(rows, impl_->params, resources);
  ViewSource source(rows);
  impl_->train(source, resources);
}

void Index::train(const VectorFile& rows, const Resources& resources) {
  check_trained_on(RowsInfo(rows), impl_->params.metric);
  FileSource source(rows);
  impl_->train(source, resources);
}

bool Index::trained() const {
  return !impl_->kind->needs_training() || state_of(impl_->versions.current().get()) != nullptr;
}

void Index::add(const MatrixView& rows, Ownership ownership, const Resources& resources) {
  add(rows, {}, ownership, resources);
}

void Index::add(const MatrixView& rows, VectorView<const int64_t> ids, Ownership ownership,
                const Resources& resources) {
  check_ids(ids, rows.rows());
  const auto fits = [&](const IndexState* current) {
    check_added(current, RowsInfo(rows), impl_->params.metric, resources.device());
  };
  const IndexPublisher::Writer writer(impl_->versions);
  const std::shared_ptr<const IndexVersion> now = impl_->versions.current();
  impl_->refuse_untrained(now.get(), "vectors are added");
  fits(state_of(now.get()));  // before the long look at values, for which nobody else should wait
  if (rows.rows() == 0) return;
  check_added_values(rows, 0, impl_->params, impl_->kind->needs_training(), resources);
  // Borrowed rows are read by searches, on streams of their own.
  const bool read_elsewhere = ownership == Ownership::borrow && !rows.space().host_readable();
  if (read_elsewhere) wait_for_stream(rows.space().device, resources);
  impl_->add(writer, ids, rows.rows(), resources, [&](const IndexState* current) {
    fits(current);
    return impl_->kind->added(current, rows, ownership, resources);
  });
}

void Index::add(const VectorFile& file, VectorView<const int64_t> ids, const Resources& resources) {
  check_ids(ids, file.rows());
  const RowsInfo info(file);
  const IndexPublisher::Writer writer(impl_->versions);
  const std::shared_ptr<const IndexVersion> now = impl_->versions.current();
  impl_->refuse_untrained(now.get(), "vectors are added");
  check_added(state_of(now.get()), info, impl_->params.metric, resources.device());
  if (file.rows() == 0) return;
  FileSource source(file);
  const int64_t piece = rows_of_a_piece(info, resources);
  source.open(piece, resources);
  impl_->add(writer, ids, file.rows(), resources, [&](const IndexState* current) {
    check_added(current, info, impl_->params.metric, resources.device());
    std::shared_ptr<const IndexState> state;
    for (int64_t first = 0; first < file.rows(); first += piece) {
      const MatrixView rows = source.fetch(first, std::min(piece, file.rows() - first));
      check_added_values(rows, first, impl_->params, false, resources);
      state = impl_->kind->added(state == nullptr ? current : state.get(), rows, Ownership::copy, resources);
    }
    return state;
  });
}

int64_t Index::remove(VectorView<const int64_t> ids, const Resources& resources) {
  check_ids(ids, ids.size);
  int64_t removed = 0;
  const IndexPublisher::Writer writer(impl_->versions);
  if (rows_of(impl_->versions.current().get()) == 0) return 0;
  impl_->versions.publish(
      writer,
      [&](const IndexVersion* current) {
        const int64_t rows = rows_of(current);
        HostArray<uint8_t> bits(divide_up(rows, 8), "the rows that stay", resources);
        std::fill(bits.begin(), bits.end(), uint8_t{0xFF});
        for (int64_t i = 0; i < ids.size; ++i) {
          const int64_t row = current->ids.row(ids[i]);
          if (row < 0) continue;
          const auto bit = static_cast<uint8_t>(1u << (row % 8));
          removed += (bits[row / 8] & bit) != 0;
          bits[row / 8] &= static_cast<uint8_t>(~bit);
        }
        if (removed == 0) return *current;
        const KeptRows kept(RowFilter::bits(bits.data(), rows), rows, resources);
        return IndexVersion{impl_->kind->removed(*current->state, kept, resources), current->ids.kept(kept, resources)};
      },
      resources);
  return removed;
}

void Index::reconstruct(VectorView<const int64_t> ids, const MutableMatrixView& out, const Resources& resources) const {
  check_ids(ids, ids.size);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  const IndexState* const state = state_of(version.get());
  check_reconstructed(state, ids.size, out);
  HostArray<uint32_t> rows(ids.size, "the rows to reconstruct", resources);
  for (int64_t i = 0; i < ids.size; ++i) {
    const int64_t row = version == nullptr ? -1 : version->ids.row(ids[i]);
    if (row < 0) throw InvalidArgument(fmt::format("the index has no vector with the id {}", ids[i]));
    rows[i] = static_cast<uint32_t>(row);
  }
  if (ids.size > 0) state->reconstruct(rows.data(), out, resources);
}

Neighbors Index::search(const MatrixView& queries, const SearchParams& params, const Resources& resources) const {
  KnnParams{params.k, impl_->params.metric}.validate();
  check_result_size(queries.rows(), params.k);
  // Rows that a state keeps otherwise than as f32 take no more.
  const SearchShape shape{
      .queries = queries.rows(), .rows = size(), .cols = queries.cols(), .metric = impl_->params.metric};
  const SearchWish wish{.k = params.k};
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  const bool of_rows = version == nullptr || version->ids.plain();
  const RowFilter filter = of_rows ? params.filter : RowFilter();  // a list of ids takes less than a mask
  return naming_the_limit({shape, wish, filter, neighbors_bytes(queries.rows(), params.k)}, resources, [&] {
    Neighbors result(queries.rows(), params.k, resources);
    search(queries, result.view(), params, resources);
    return result;
  });
}

void Index::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                   const Resources& resources) const {
  const IndexParams& own = impl_->params;
  KnnParams{params.k, own.metric}.validate();
  check_search_params(params.probes, params.refine);
  check_output(out, queries.rows(), params.k);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  impl_->refuse_untrained(version.get(), "it is searched");
  const IndexState* const state = state_of(version.get());
  if (state != nullptr) check_queries(state->content(), queries, own.metric);
  if (state == nullptr || state->content().rows == 0) {
    return knn(queries, no_rows(queries), out, {params.k, own.metric, own.check_finite, params.filter}, resources);
  }
  warn_of_short_base(queries.rows(), state->content().rows, params.k, resources);
  const IdFilter filter(params.filter, version->ids, resources);
  SearchParams of_rows = params;
  of_rows.filter = filter.of_rows();
  state->search(queries, out, of_rows, resources);
  rows_to_ids(version->ids, {out.ids, out.queries * out.k, out.space}, resources);
}

RangeNeighbors Index::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                   const Resources& resources) const {
  const IndexParams& own = impl_->params;
  const RangeParams whole{params.radius, own.metric,          own.check_finite,
                          params.filter, params.result_space, params.allocate};
  whole.validate();
  check_search_params(params.probes, 0);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  impl_->refuse_untrained(version.get(), "it is searched");
  const IndexState* const state = state_of(version.get());
  if (state != nullptr) check_queries(state->content(), queries, own.metric);
  if (state == nullptr || state->content().rows == 0) {
    return kith::range_search(queries, no_rows(queries), whole, resources);
  }
  const IdFilter filter(params.filter, version->ids, resources);
  RangeSearchParams of_rows = params;
  of_rows.filter = filter.of_rows();
  RangeNeighbors found = state->range_search(queries, of_rows, resources);
  rows_to_ids(version->ids, {found.ids(), found.size(), found.space()}, resources);
  // A kind of index may know host memory alone.
  return in_space(std::move(found), params.result_space, params.allocate, resources);
}

int64_t Index::size() const { return rows_of(impl_->versions.current().get()); }

int64_t Index::dimension() const {
  const auto version = impl_->versions.current();
  return state_of(version.get()) == nullptr ? 0 : version->state->content().cols;
}

Device Index::device() const {
  const auto version = impl_->versions.current();
  if (rows_of(version.get()) == 0) return Device::automatic();
  const MemorySpace& space = version->state->content().space;
  return space.host_readable() ? Device::cpu() : Device::cuda(space.device);
}

IndexBytes Index::bytes() const {
  const auto version = impl_->versions.current();
  if (state_of(version.get()) == nullptr) return {};
  IndexBytes total = version->state->bytes();
  total.host += version->ids.bytes();
  return total;
}

IndexInfo Index::info() const {
  const auto version = impl_->versions.current();
  IndexInfo info;
  info.factory = impl_->factory;
  info.metric = impl_->params.metric;
  info.trained = !impl_->kind->needs_training();
  if (state_of(version.get()) == nullptr) return info;
  const IndexState& state = *version->state;
  info.trained = true;
  info.rows = state.content().rows;
  info.dimension = state.content().cols;
  info.dtype = state.content().dtype;
  state.describe(info);
  info.bytes = state.bytes();
  info.bytes.host += version->ids.bytes();
  if (!version->ids.plain()) info.parts.emplace_back("ids", version->ids.bytes());
  return info;
}

const std::string& Index::factory() const { return impl_->factory; }
const IndexParams& Index::params() const { return impl_->params; }

void Index::save(const std::string& path, const Resources& resources) const {
  save_parts(IndexAccess::parts(*this, resources), path, resources);
}

Index Index::load(const std::string& path, const Resources& resources) {
  IndexParts parts = load_parts(path, resources);
  if (!parts.subtracted.empty()) {
    throw Unsupported(fmt::format(
        "'{}' holds vectors from which Python has subtracted an offset, since they were float64: load it there, with "
        "kith.load",
        path));
  }
  try {
    return IndexAccess::from_parts(std::move(parts), resources);
  } catch (const PartsProblem& problem) {
    throw_corrupt(path, 0, problem.what());
  }
}

IndexParts IndexAccess::parts(const Index& index, const Resources& resources) {
  const Index::Impl& impl = *index.impl_;
  const std::shared_ptr<const IndexVersion> version = impl.versions.current();
  impl.refuse_untrained(version.get(), "it is saved");
  IndexParts parts;
  parts.factory = impl.factory;
  parts.metric = impl.params.metric;
  parts.check_finite = impl.params.check_finite;
  if (state_of(version.get()) == nullptr) return parts;
  const IndexContent& content = version->state->content();
  parts.cols = content.cols;
  parts.rows = content.rows;
  parts.dtype = content.dtype;
  version->state->give_parts(parts, resources);
  parts.next_id = version->ids.next_id();
  if (!version->ids.plain()) {
    HostArray<int64_t> ids(content.rows, "the ids to be saved", resources);
    for (int64_t row = 0; row < content.rows; ++row) ids[row] = version->ids.id(row);
    parts.ids = std::move(ids);
  }
  return parts;
}

namespace {

// Of the factory string, which goes with what there is.
std::shared_ptr<const IndexKind> kind_of(const IndexParts& parts, const IndexParams& params) {
  FactorySpec spec;
  try {
    spec = parse_factory(parts.factory);
  } catch (const InvalidArgument& error) {
    throw PartsProblem("about", error.what());
  }
  const bool coded = spec.has_lists || spec.code.has_value();
  const bool fits = parts.cols == 0 || (coded == parts.lists.has_value() && spec.refines == parts.refine.has_value() &&
                                        spec.transforms.empty() == parts.transforms.empty());
  if (!fits) {
    throw PartsProblem("about",
                       fmt::format("the index '{}' does not have the parts that it is made of", parts.factory));
  }
  return make_kind(spec, params);
}

}  // namespace

Index IndexAccess::from_parts(IndexParts parts, const Resources& resources) {
  const IndexParams params{.metric = parts.metric, .check_finite = parts.check_finite};
  Index index = make(kind_of(parts, params), parts.factory, params);
  if (parts.cols == 0) return index;
  Index::Impl& impl = *index.impl_;
  const bool own_ids = parts.ids.size() > 0;
  IdTable ids(own_ids ? parts.ids.data() : nullptr, parts.rows, parts.next_id, resources);
  impl.versions.publish(
      [&](const IndexVersion*) {
        return IndexVersion{impl.kind->restored(parts, resources), ids};
      },
      resources);
  return index;
}

}  // namespace kith
