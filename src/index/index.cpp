// The part of Index that all kinds share: training, adding, removing, and information. Searches are in
// index_search.cpp, files in index_saved.cpp.
#include <kith/index.hpp>
#include <kith/refused_row.hpp>

#include "core/divide.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "index/factory.hpp"
#include "index/graph_start.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_impl.hpp"
#include "index/rows_in_place.hpp"
#include "index/whole_host_limit.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// The device asked to hold added rows; automatic for several devices, which accept rows of any of them.
Device place_asked_for(const Resources& resources) {
  return resources.parts() > 1 ? Device::automatic() : resources.device();
}
// For training, which only the first device does.
Resources on_one(const Resources& resources) {
  return resources.parts() > 1 ? resources.with_device(resources.device()) : resources;
}

// The least host memory of an add, including the new state.
template <typename Impl>
Footprint add_footprint(const Impl& impl, const RowsInfo& rows, bool gives_ids, KnownIds known,
                        const Resources& resources) {
  const auto version = impl.versions.current();
  const IdTable ids = version == nullptr ? IdTable() : version->ids;
  RowsInfo all = rows;
  if (const IndexState* const state = state_of(version.get())) {
    all.rows += state->content().rows;
    if (state->content().any_dtype) all.dtype = state->content().dtype;
  }
  return impl.kind->add_footprint(state_of(version.get()), rows, resources)
      .beside(impl.kind->completion_footprint(state_of(version.get()), all, resources))
      .beside({ids.added_bytes(gives_ids, rows.rows)})
      .beside({known == KnownIds::replaced ? 2 * LiveRows::bytes_for(ids.live().stored() + rows.rows) : 0});
}

// Compacts if a fifth of all rows are dead and the memory limit has room for it.
IndexVersion compacted_if_worth(const IndexKind& kind, const IndexVersion& version, const Resources& resources) {
  if (!version.ids.live().wants_compaction()) return version;
  try {
    return compacted(kind, version, resources);
  } catch (const OutOfMemory& error) {
    resources.log(LogLevel::info, fmt::format("removed rows keep their memory until compact(): {}", error.what()));
    return version;
  }
}

// Publishes the version that `add_rows` makes from the current one, with ids for its `count` new rows. `start`: their
// neighbours, or null. Returns the number of replaced vectors.
template <typename Impl, typename Add>
int64_t publish_added(Impl& impl, const IndexPublisher::Writer& writer, VectorView<const int64_t> new_ids,
                      KnownIds known, int64_t count, const Resources& resources, const Add& add_rows,
                      const NeighborsView* start = nullptr) {
  int64_t replaced = 0;
  impl.versions.publish(
      writer,
      [&](const IndexVersion* current) {
        impl.refuse_untrained(current, "vectors are added");
        IndexVersion after = current == nullptr ? IndexVersion() : *current;
        if (known == KnownIds::replaced) {
          const int64_t before = after.ids.live().count();
          after.ids = after.ids.without(new_ids.data, new_ids.size, resources);
          replaced = before - after.ids.live().count();
        }
        after.ids = after.ids.added(new_ids.data, count, resources);
        add_rows(after);
        after.state = start == nullptr ? impl.kind->completed(after.state, resources)
                                       : impl.kind->completed_from(*start, after.state, resources);
        return replaced > 0 ? compacted_if_worth(*impl.kind, after, resources) : after;
      },
      resources);
  return replaced;
}

void refuse_missing_ids(VectorView<const int64_t> ids) {
  if (ids.data != nullptr) return;
  throw InvalidArgument("replace() goes by ids: give one for each vector");
}

// Publishes what `train` makes of the current version, which holds no vectors. `narrowed`: the training rows as f32.
template <typename Impl, typename Train>
void publish_trained(Impl& impl, const RowsInfo& rows, const Footprint& narrowed, const Resources& resources,
                     const Train& train) {
  const IndexPublisher::Writer writer(impl.versions);
  impl.versions.publish(
      writer,
      [&](const IndexVersion* current) {
        const int64_t before = rows_of(current);
        if (before > 0) {
          throw InvalidState(fmt::format(
              "the index holds {} vectors, coded as it was trained; train a new one, or remove them first", before));
        }
        IndexVersion after = current == nullptr ? IndexVersion() : *current;
        if (!impl.kind->needs_training()) return after;
        const auto least = [&] { return narrowed.beside(impl.kind->training_footprint(rows, resources)); };
        return within_limits("training", resources, least, [&] {
          train(after);
          return after;
        });
      },
      resources);
}

// Narrows training rows or added rows; the first ones fix the offset of the index.
NarrowedRows narrowed_for(const IndexVersion& version, const MatrixView& rows, Metric metric,
                          const Resources& resources) {
  if (version.state == nullptr) return {"x", rows, metric, resources};
  return {"x", rows, version.offset, OfRounding::warns, resources};
}

// Their shape afterwards, and the memory of narrowing.
RowsInfo narrowed_info(const MatrixView& rows, const Offset& offset) {
  RowsInfo info(rows);
  if (is_narrowed(rows, offset)) info.dtype = DType::f32;
  return info;
}
Footprint narrowed_footprint(const MatrixView& rows, const Offset& offset, const Resources& resources) {
  return footprint_of<NarrowedRows>(resources, "x", rows, offset, OfRounding::silent);
}

}  // namespace

Index::Index(std::string_view factory, IndexParams params)
    : impl_(std::make_shared<Impl>(make_kind(parse_factory(without_spaces(factory)), params), without_spaces(factory),
                                   params)) {}

Index IndexAccess::make(std::shared_ptr<const IndexKind> kind, std::string_view factory, IndexParams params) {
  return Index(std::make_shared<Index::Impl>(std::move(kind), factory, params));
}

void Index::train(const MatrixView& rows, const Resources& given) {
  impl_->refuse_on_disk("training");
  const Resources resources = on_one(impl_->on_device(given));
  const IndexParams& own = impl_->params;
  check_trained_on(RowsInfo(rows), own.metric);
  if (rows.dtype() == DType::f64 && !impl_->kind->needs_training()) {  // what is wrong with them it says all the same
    return train(NarrowedRows("x", rows, nullptr, OfRounding::silent, resources).view(), resources);
  }
  const Offset known = offset_of(impl_->versions.current().get());
  if (!impl_->kind->needs_training()) check_training_values(rows, own, resources);  // nobody else will look
  publish_trained(*impl_, narrowed_info(rows, known), narrowed_footprint(rows, known, resources), resources,
                  [&](IndexVersion& version) {
                    const NarrowedRows narrowed = narrowed_for(version, rows, own.metric, resources);
                    check_training_values(narrowed.view(), own, resources);
                    ViewSource source(narrowed.view());
                    version.state = impl_->kind->trained(source, resources);
                    version.offset = narrowed.offset();
                    version.tuned = nullptr;
                  });
}

void Index::train(const VectorFile& rows, const Resources& given) {
  impl_->refuse_on_disk("training");
  const Resources resources = on_one(impl_->on_device(given));
  check_trained_on(RowsInfo(rows), impl_->params.metric);
  FileSource source(rows);
  const auto least = [&] {
    return Footprint{rows.memory_bytes()}.beside(impl_->kind->training_footprint(RowsInfo(rows), resources));
  };
  within_limits("training", resources, least, [&] {
    const ReadMemory memory = rows.reserve_memory(resources);
    publish_trained(*impl_, RowsInfo(rows), {}, resources, [&](IndexVersion& version) {
      refuse_unshifted_file(version.offset, rows.path());
      naming_files({{"training", rows}}, [&] { version.state = impl_->kind->trained(source, resources); });
      version.tuned = nullptr;
    });
  });
}

bool Index::trained() const {
  return !impl_->kind->needs_training() || state_of(impl_->versions.current().get()) != nullptr;
}

void Index::add(const MatrixView& rows, Ownership ownership, const Resources& resources) {
  add(rows, {}, ownership, resources);
}

void Index::add(const MatrixView& rows, VectorView<const int64_t> ids, Ownership ownership, const Resources& given) {
  impl_->add(rows, ids, KnownIds::refused, ownership, nullptr, given);
}

void Index::add(const VectorFile& file, VectorView<const int64_t> ids, const Resources& given) {
  impl_->add(file, ids, KnownIds::refused, given);
}

int64_t Index::replace(const MatrixView& rows, VectorView<const int64_t> ids, const Resources& given) {
  refuse_missing_ids(ids);
  return impl_->add(rows, ids, KnownIds::replaced, Ownership::copy, nullptr, given);
}

int64_t Index::replace(const VectorFile& file, VectorView<const int64_t> ids, const Resources& given) {
  refuse_missing_ids(ids);
  return impl_->add(file, ids, KnownIds::replaced, given);
}

void Index::add(const MatrixView& rows, VectorView<const int64_t> ids, const KnnGraph& start, const Resources& given) {
  if (!impl_->kind->takes_start()) {
    throw Unsupported(
        fmt::format("an index '{}' built from a graph (start); \"Graph32\" is one that takes it", impl_->factory));
  }
  const KnnGraph on_host = start.to(MemorySpace::host(), given);
  impl_->add(rows, ids, KnownIds::refused, Ownership::copy, &on_host, given);
}

int64_t Index::Impl::add(const MatrixView& rows, VectorView<const int64_t> ids, KnownIds known, Ownership ownership,
                         const KnnGraph* start, const Resources& given) {
  refuse_on_disk("add()");
  const Resources resources = on_device(given);
  const IndexParams& own = params;
  check_ids(ids, rows.rows());
  const auto place = [&](const IndexVersion* version) {
    return place_for(state_of(version), rows.space(), place_asked_for(resources));
  };
  const auto fits = [&](const IndexVersion* version) {
    check_added(state_of(version), narrowed_info(rows, offset_of(version)), own.metric);
    return !is_narrowed(rows, offset_of(version)) && place(version) == rows.space();
  };
  NeighborsView neighbors;
  if (start != nullptr) {
    neighbors = {const_cast<int64_t*>(start->ids()), const_cast<float*>(start->distances()), start->rows(), start->k(),
                 start->space()};
  }
  const IndexPublisher::Writer writer(versions);
  const std::shared_ptr<const IndexVersion> now = versions.current();
  refuse_untrained(now.get(), "vectors are added");
  const bool as_they_lie = fits(now.get());
  if (start != nullptr && rows_of(now.get()) > 0) {
    throw InvalidState(fmt::format(
        "the index holds {} vectors, and start is a graph of the first; add these without it", rows_of(now.get())));
  }
  if (rows.rows() == 0) return 0;
  const auto check_values = [&](const MatrixView& view) {
    check_added_values(view, 0, own, kind->needs_training(), resources);
  };
  // Searches read borrowed rows on their own streams.
  const bool read_elsewhere = ownership == Ownership::borrow && !rows.space().host_readable();
  if (read_elsewhere) wait_for_stream(rows.space().device, resources);
  const bool borrows = ownership == Ownership::borrow && as_they_lie && factory == "Flat";
  const auto least = [&] {
    if (borrows) return Footprint();
    const Offset offset = offset_of(now.get());
    RowsInfo info = narrowed_info(rows, offset);
    const MemorySpace there = place(now.get());
    const bool moved = std::exchange(info.space, there) != there;
    return narrowed_footprint(rows, offset, resources)
        .beside(Footprint::in(there, moved ? info.rows * info.row_bytes() : 0))
        .beside(add_footprint(*this, info, ids.size > 0, known, resources));
  };
  return within_limits("the added vectors", resources, least, [&](const Resources& used) {
    if (as_they_lie) check_values(rows);  // a long look, for which no search should wait
    return publish_added(
        *this, writer, ids, known, rows.rows(), used,
        [&](IndexVersion& version) {
          const bool still_as_they_lie = fits(&version);
          const NarrowedRows narrowed = narrowed_for(version, rows, own.metric, used);
          const RowsInPlace added(narrowed.view(), place(&version), used);
          if (!still_as_they_lie) check_values(narrowed.view().space().host_readable() ? narrowed.view() : added.view());
          if (start != nullptr && added.view().space().host_readable()) {
            check_start(*start, added.view(), own.metric);
          }
          version.state =
              kind->added(version.state.get(), added.view(), still_as_they_lie ? ownership : Ownership::copy, used);
          version.offset = narrowed.offset();
        },
        start == nullptr ? nullptr : &neighbors);
  });
}

int64_t Index::Impl::add(const VectorFile& file, VectorView<const int64_t> ids, KnownIds known, const Resources& given) {
  refuse_on_disk("add()");
  const Resources resources = on_device(given);
  check_ids(ids, file.rows());
  const RowsInfo info(file);
  const IndexPublisher::Writer writer(versions);
  const std::shared_ptr<const IndexVersion> now = versions.current();
  refuse_untrained(now.get(), "vectors are added");
  refuse_unshifted_file(offset_of(now.get()), file.path());
  check_added(state_of(now.get()), info, params.metric);
  if (file.rows() == 0) return 0;
  const MemorySpace place = place_for(state_of(now.get()), info.space, place_asked_for(resources));
  // Pieces, and those read ahead, take a share of the free memory; each makes a state from which the next one is made.
  // Most files need less than could be stated in advance, so a sufficient limit is named only after one was too small.
  const auto needed = [&] {
    const Footprint behind = add_footprint(*this, info, ids.size > 0, known, resources).times(2).beside({file.memory_bytes()});
    return behind.beside_share(8, {2 * info.row_bytes()}).host;
  };
  return naming_whole_host_limit(needed, resources, [&] {
    const ReadMemory memory = file.reserve_memory(resources);
    FileSource source(file);
    const int64_t piece = rows_of_a_piece(info, resources);
    source.open(piece, resources);
    return publish_added(*this, writer, ids, known, file.rows(), resources, [&](IndexVersion& version) {
      refuse_unshifted_file(version.offset, file.path());
      check_added(version.state.get(), info, params.metric);
      for (int64_t first = 0; first < file.rows(); first += piece) {
        const MatrixView rows = source.fetch(first, std::min(piece, file.rows() - first));
        naming_files({{"added", file}}, [&] { check_added_values(rows, first, params, false, resources); });
        const RowsInPlace added(rows, place, resources);
        version.state = kind->added(version.state.get(), added.view(), Ownership::copy, resources);
      }
    });
  });
}

int64_t Index::remove(VectorView<const int64_t> ids, const Resources& given) {
  impl_->refuse_on_disk("remove()");
  const Resources resources = impl_->on_device(given);
  check_ids(ids, ids.size);
  int64_t removed = 0;
  const IndexPublisher::Writer writer(impl_->versions);
  const auto before = impl_->versions.current();
  if (rows_of(before.get()) == 0) return 0;
  const auto least = [&] { return Footprint{LiveRows::bytes_for(before->ids.live().stored())}; };
  const auto without = [&](const IndexVersion* current) {
    IndexVersion after{current->state, current->ids.without(ids.data, ids.size, resources), current->offset,
                       current->tuned};
    removed = rows_of(current) - rows_of(&after);
    return removed > 0 ? compacted_if_worth(*impl_->kind, after, resources) : after;
  };
  within_limits("the removal", resources, least, [&] { impl_->versions.publish(writer, without, resources); });
  return removed;
}

void Index::compact(const Resources& given) {
  const Resources resources = impl_->on_device(given);
  const IndexPublisher::Writer writer(impl_->versions);
  const auto before = impl_->versions.current();
  if (state_of(before.get()) == nullptr) return;
  const auto least = [&] { return compacted_footprint(*impl_->kind, before.get(), resources); };
  within_limits("compaction", resources, least, [&] {
    impl_->versions.publish(
        writer, [&](const IndexVersion* current) { return compacted(*impl_->kind, *current, resources); }, resources);
  });
}

int64_t Index::size() const { return rows_of(impl_->versions.current().get()); }

HostBuffer Index::ids(const Resources& resources) const {
  const auto version = impl_->versions.current();
  const int64_t bytes = array_bytes<int64_t>(rows_of(version.get()));
  require_memory("the ids", {bytes}, resources);
  HostBuffer all(bytes, "the ids", resources);
  if (version == nullptr) return all;
  const LiveRows& live = version->ids.live();
  int64_t* to = all.as<int64_t>();
  for (int64_t row = 0; row < live.stored(); ++row) {
    if (live.has(row)) *to++ = version->ids.id(row);
  }
  return all;
}

bool Index::contains(int64_t id) const {
  const auto version = impl_->versions.current();
  return version != nullptr && version->ids.row(id) >= 0;
}

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
  total.host += version->ids.bytes() + version->ids.live().bytes();
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
  const LiveRows& live = version->ids.live();
  info.size = live.count();
  info.dead = live.all() ? 0 : static_cast<double>(live.dead()) / static_cast<double>(live.stored());
  info.dimension = state.content().cols;
  info.dtype = state.content().dtype;
  state.describe(info, live);
  if (version->tuned != nullptr) info.tuned = *version->tuned;
  info.bytes = state.bytes();
  info.bytes.host += version->ids.bytes() + live.bytes();
  if (!version->ids.plain()) info.parts.emplace_back("ids", version->ids.bytes());
  if (!live.all()) info.parts.emplace_back("marks of removed rows", live.bytes());
  return info;
}

std::vector<double> Index::offset() const {
  const Offset offset = offset_of(impl_->versions.current().get());
  return offset == nullptr ? std::vector<double>() : *offset;
}

const std::string& Index::factory() const { return impl_->factory; }
const IndexParams& Index::params() const { return impl_->params; }

}  // namespace kith
