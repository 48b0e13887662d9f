// An index becomes parts, which files hold, and parts an index.
#include <kith/index.hpp>

#include "core/within_limits.hpp"
#include "index/factory.hpp"
#include "index/index_access.hpp"
#include "index/index_file.hpp"
#include "index/index_impl.hpp"
#include "index/index_parts_check.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

namespace kith {

void Index::save(const std::string& path, const Resources& resources) const {
  const auto version = impl_->versions.current();
  const auto least = [&] {
    const IndexState* const state = state_of(version.get());
    if (state == nullptr) return Footprint();
    const int64_t rows = state->content().rows;
    // Ids, and the checks of ids and of row numbers.
    const int64_t ids = version->ids.plain() ? 0 : 2 * array_bytes<int64_t>(rows);
    const Footprint parts = footprint_of_call(resources, [&](const Resources& used) {
      IndexParts counted;
      state->give_parts(counted, used);
    });
    return compacted_footprint(*impl_->kind, version.get(), resources).beside({ids + rows / 8 + 8}).beside(parts);
  };
  within_limits("the file", resources, least,
                [&] { save_parts(IndexAccess::parts(*this, resources), path, resources); });
}

Index Index::load(const std::string& path, const Resources& resources) {
  const auto least = [&] { return Footprint{load_bytes(path, resources)}; };
  return within_limits("the index", resources, least, [&] {
    IndexParts parts = load_parts(path, resources);
    try {
      return IndexAccess::from_parts(std::move(parts), resources);
    } catch (const PartsProblem& problem) {
      throw_corrupt(path, 0, problem.what());
    }
  });
}

IndexParts IndexAccess::parts(const Index& index, const Resources& resources) {
  const Index::Impl& impl = *index.impl_;
  const std::shared_ptr<const IndexVersion> current = impl.versions.current();
  impl.refuse_untrained(current.get(), "it is saved");
  IndexParts parts;
  static_cast<IndexParams&>(parts) = impl.params;
  parts.factory = impl.factory;
  if (state_of(current.get()) == nullptr) return parts;
  const IndexVersion version = compacted(*impl.kind, *current, resources);
  const IndexContent& content = version.state->content();
  parts.cols = content.cols;
  parts.rows = content.rows;
  parts.dtype = content.dtype;
  if (version.offset != nullptr) parts.subtracted = *version.offset;
  if (version.tuned != nullptr) parts.tuned = TunedParts::of(*version.tuned);
  version.state->give_parts(parts, resources);
  parts.next_id = version.ids.next_id();
  if (!version.ids.plain()) {
    HostArray<int64_t> ids(content.rows, "the ids to be saved", resources);
    for (int64_t row = 0; row < content.rows; ++row) ids[row] = version.ids.id(row);
    parts.ids = std::move(ids);
  }
  return parts;
}

namespace {

// Of the factory string, which goes with what there is.
std::shared_ptr<const IndexKind> kind_of(const IndexParts& parts) {
  FactorySpec spec;
  try {
    spec = parse_factory(parts.factory);
  } catch (const InvalidArgument& error) {
    throw PartsProblem("about", error.what());
  }
  const bool coded = spec.has_lists || spec.code.has_value();
  const bool graph_fits = !parts.graph || (spec.degree == parts.graph->degree && !spec.has_lists);
  const bool fits =
      parts.cols == 0 || (graph_fits && coded == parts.lists.has_value() && spec.refines == parts.refine.has_value() &&
                          spec.transforms.empty() == parts.transforms.empty());
  if (!fits) {
    throw PartsProblem("about",
                       fmt::format("the index '{}' does not have the parts that it is made of", parts.factory));
  }
  return make_kind(spec, parts);
}

}  // namespace

Index IndexAccess::from_parts(IndexParts parts, const Resources& resources) {
  Index index = make(kind_of(parts), parts.factory, parts);
  if (parts.cols == 0) return index;
  Index::Impl& impl = *index.impl_;
  const bool own_ids = parts.ids.size() > 0;
  IdTable ids(own_ids ? parts.ids.data() : nullptr, parts.rows, parts.next_id, resources);
  Offset offset;
  if (!parts.subtracted.empty()) offset = std::make_shared<const std::vector<double>>(parts.subtracted);
  std::shared_ptr<const TuneTable> tuned;
  if (parts.tuned) tuned = std::make_shared<const TuneTable>(parts.tuned->table());
  impl.versions.publish(
      [&](const IndexVersion*) {
        return IndexVersion{impl.kind->restored(parts, resources), ids, offset, tuned};
      },
      resources);
  return index;
}

}  // namespace kith
