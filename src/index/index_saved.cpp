// Taking an index apart for files, and making one from parts.
#include <kith/index.hpp>

#include "core/within_limits.hpp"
#include "index/factory.hpp"
#include "index/index_access.hpp"
#include "index/index_file.hpp"
#include "index/index_impl.hpp"
#include "index/index_parts_check.hpp"
#include "index/index_runs.hpp"
#include "io/file_error.hpp"
#include "io/file_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace kith {

namespace {

// Room for the streams that write a file, and the offsets of its lists.
constexpr int64_t kStreamedRoom = int64_t{1} << 20;

// The parts in a file, without its rows.
IndexParts trained_parts(const std::string& path, const Resources& resources) {
  return load_parts(path, resources, {RowArrays::left_out, RowArrays::left_out});
}

// Bytes of a section; 0 if there is none.
int64_t section_bytes_in(const std::string& path, std::string_view name) {
  const ContainerFile file(path);
  const Section* const section = file.find(name);
  return section == nullptr ? 0 : section->bytes;
}

// Saves an index on disk: all of its files as one, with the version's ids and offset.
void save_files(const std::vector<std::string>& files, const IndexVersion& version, const std::string& path,
                const Resources& resources) {
  const std::string& first = first_with_columns(files, resources);
  IndexRuns runs(path, [&] { return trained_parts(first, resources); });
  for (const std::string& file : files) runs.add_file(file, resources);
  runs.expect_rows(version.ids.live().stored());
  IndexParts whole = trained_parts(first, resources);
  if (version.tuned != nullptr) whole.tuned = TunedParts::of(*version.tuned);
  runs.write(version.ids, std::move(whole), resources);
}

}  // namespace

const std::string& first_with_columns(const std::vector<std::string>& files, const Resources& resources) {
  for (const std::string& file : files) {
    if (trained_parts(file, resources).cols > 0) return file;
  }
  return files.front();
}

void Index::save(const std::string& path, const Resources& resources) const {
  const auto version = impl_->versions.current();
  if (!impl_->files.empty()) {
    const auto streamed = [&] {
      return Footprint{load_bytes(impl_->files.front(), resources, {RowArrays::left_out, RowArrays::left_out})}.beside(
          {kStreamedRoom});
    };
    return within_limits("the file", resources, streamed, [&] { save_files(impl_->files, *version, path, resources); });
  }
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

Index Index::load(const std::string& path, const Resources& resources) { return load(path, {}, resources); }

IndexParts IndexAccess::parts_of(const Index::Impl& impl, const IndexVersion& version, const Resources& resources) {
  IndexParts parts;
  static_cast<IndexParams&>(parts) = impl.params;
  parts.factory = impl.factory;
  if (version.state == nullptr) return parts;
  const IndexContent& content = version.state->content();
  parts.cols = content.cols;
  parts.rows = content.rows;
  parts.dtype = content.dtype;
  parts.next_id = content.rows;
  if (version.offset != nullptr) parts.subtracted = *version.offset;
  if (version.tuned != nullptr) parts.tuned = TunedParts::of(*version.tuned);
  version.state->give_parts(parts, resources);
  return parts;
}

IndexParts IndexAccess::parts(const Index& index, const Resources& resources) {
  const Index::Impl& impl = *index.impl_;
  const std::shared_ptr<const IndexVersion> current = impl.versions.current();
  impl.refuse_untrained(current.get(), "it is saved");
  if (state_of(current.get()) == nullptr) return parts_of(impl, {}, resources);
  const IndexVersion version = compacted(*impl.kind, *current, resources);
  IndexParts parts = parts_of(impl, version, resources);
  parts.next_id = version.ids.next_id();
  if (!version.ids.plain()) {
    HostArray<int64_t> ids(parts.rows, "the ids to be saved", resources);
    for (int64_t row = 0; row < parts.rows; ++row) ids[row] = version.ids.id(row);
    parts.ids = std::move(ids);
  }
  return parts;
}

namespace {

// The kind that the stored factory string names.
std::shared_ptr<const IndexKind> kind_of(const IndexParts& parts) {
  FactorySpec spec;
  try {
    spec = parse_factory(parts.factory);
  } catch (const InvalidArgument& error) {
    throw PartsProblem("about", error.what());
  }
  const bool coded = spec.has_lists || spec.code.has_value();
  // A graph without codes, walked by the vectors, has no bits.
  const bool bits_fit = !parts.graph || parts.graph->scale.empty() || spec.four_bits == (parts.graph->bits == 4);
  const bool graph_fits = !parts.graph || (spec.degree == parts.graph->degree && bits_fit && !spec.has_lists);
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
  if (parts.cols == 0) return from_parts(std::move(parts), IdTable(), resources);
  const bool own_ids = parts.ids.size() > 0;
  const IdTable ids(own_ids ? parts.ids.data() : nullptr, parts.rows, parts.next_id, resources);
  return from_parts(std::move(parts), ids, resources);
}

Index IndexAccess::from_parts(IndexParts parts, const IdTable& ids, const Resources& resources) {
  Index index = make(kind_of(parts), parts.factory, parts);
  if (parts.cols == 0) return index;
  Index::Impl& impl = *index.impl_;
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

namespace {

LoadMode mode_of(const LoadParams& params) {
  LoadMode mode;
  if (params.mmap) mode.lists = mode.vectors = RowArrays::mapped;
  if (params.lists == ListsPlace::disk) mode.lists = RowArrays::mapped;
  mode.verify = params.verify;
  return mode;
}

bool is_graph(const std::string& factory) {
  try {
    return parse_factory(factory).degree > 0;
  } catch (const InvalidArgument&) {
    return false;  // loading the file will give the error
  }
}

// The files of a pattern, in the order of names; a path that exists is one file.
std::vector<std::string> index_files(const std::string& path) {
  return is_file_pattern(path) ? matching_files(path) : std::vector<std::string>{path};
}

// Appends the rows of another file of the same training to `parts`.
void join_parts(IndexParts& parts, IndexParts more, const Resources& resources) {
  const int64_t first_row = parts.rows;
  check_joined_rows(parts.rows, more.rows);
  parts.rows += more.rows;
  if (more.rows == 0) return;
  if (parts.lists) {
    ListArrayParts& arrays = *more.lists;
    if (first_row > 0) {
      HostArray<uint32_t> numbered(arrays.rows.size(), "the rows of several files", resources);
      std::transform(arrays.rows.begin(), arrays.rows.end(), numbered.begin(),
                     [&](uint32_t row) { return static_cast<uint32_t>(row + first_row); });
      arrays.rows = std::move(numbered);
    }
    parts.lists->behind.push_back(std::move(arrays));
  }
  for (PartMatrix& block : more.flat) parts.flat.push_back(std::move(block));
  if (parts.refine) parts.refine->behind.push_back(std::move(more.refine->codes));
}

IdTable ids_of(const IndexParts& parts, const Resources& resources) {
  return {parts.ids.size() > 0 ? parts.ids.data() : nullptr, parts.rows, parts.next_id, resources};
}

// Several files of one training on disk.
Index join_files(const std::vector<std::string>& files, const LoadMode& mode, const Resources& resources) {
  auto first = std::make_unique<const ContainerFile>(files.front());
  IndexParts parts = load_parts(files.front(), resources, mode);
  IdTable ids = ids_of(parts, resources);
  bool numbered = ids.plain();  // else ids stay as they are, and none may be there twice
  for (size_t i = 1; i < files.size(); ++i) {
    auto other = std::make_unique<const ContainerFile>(files[i]);
    refuse_other_training(*first, *other, resources);
    IndexParts more = load_parts(files[i], resources, mode);
    const IdTable others = ids_of(more, resources);
    numbered = numbered && others.plain();
    ids = ids.joined(others, numbered, resources);
    if (parts.cols == 0) {
      parts = std::move(more);
      first = std::move(other);
    } else {
      join_parts(parts, std::move(more), resources);
    }
  }
  try {
    return IndexAccess::from_parts(std::move(parts), ids, resources);
  } catch (const PartsProblem& problem) {
    throw_corrupt(first->path(), 0, problem.what());
  }
}

Index load_file(const std::string& path, const LoadMode& mode, const Resources& resources) {
  IndexParts parts = load_parts(path, resources, mode);
  try {
    return IndexAccess::from_parts(std::move(parts), resources);
  } catch (const PartsProblem& problem) {
    throw_corrupt(path, 0, problem.what());
  }
}

}  // namespace

Index Index::load(const std::string& path, const LoadParams& params, const Resources& resources) {
  return load(index_files(path), params, resources);
}

Index Index::load(const std::vector<std::string>& files, const LoadParams& params, const Resources& resources) {
  if (files.empty()) throw InvalidArgument("an index is loaded from at least one file");
  // A graph is walked over in memory, and so are its vectors.
  const bool asked = params.mmap || params.lists == ListsPlace::disk;
  const bool on_disk = asked && !is_graph(factory_in(files.front(), resources));
  const LoadMode mode = on_disk ? mode_of(params) : LoadMode();
  const auto least = [&] {
    Footprint all;
    for (const std::string& file : files) all = all.beside({load_bytes(file, resources, mode)});
    if (files.size() == 1) return all;
    if (!on_disk) return all.times(3);       // of which one is made
    for (const std::string& file : files) {  // rows numbered through, and ids
      all = all.beside({section_bytes_in(file, "rows") + 3 * section_bytes_in(file, "ids")});
    }
    return all;
  };
  // An index that has never had vectors has nothing on the disk.
  const auto has_columns = [](const Index& index) {
    return state_of(index.impl_->versions.current().get()) != nullptr;
  };
  return within_limits("the index", resources, least, [&] {
    if (files.size() == 1 || !on_disk) {
      Index index = load_file(files.front(), mode, resources);
      for (size_t i = 1; i < files.size(); ++i) {
        const Index more = load_file(files[i], mode, resources);
        const auto plain = [](const auto& impl) {
          const auto version = impl.versions.current();
          return version == nullptr || version->ids.plain();
        };
        const bool numbered = plain(*index.impl_) && plain(*more.impl_);
        index.merge(more, {.shift_ids = numbered}, resources);
      }
      if (on_disk && has_columns(index)) index.impl_->files = files;
      return index;
    }
    Index index = join_files(files, mode, resources);
    if (has_columns(index)) index.impl_->files = files;
    return index;
  });
}

void Index::merge_files(const std::vector<std::string>& files, const std::string& path, const MergeParams& params,
                        const Resources& resources) {
  if (files.empty()) throw InvalidArgument("at least one file is needed to merge");
  const LoadMode mapped{RowArrays::mapped, RowArrays::mapped};
  const auto least = [&] {
    Footprint one;
    Footprint ids;
    for (const std::string& file : files) {
      one = one.then({load_bytes(file, resources, mapped)});
      ids = ids.beside({3 * section_bytes_in(file, "ids")});
    }
    return one.beside(ids).beside({kStreamedRoom});
  };
  within_limits("the merged file", resources, least, [&] {
    const std::string& described = first_with_columns(files, resources);
    IndexRuns runs(path, [&] { return trained_parts(described, resources); });
    IdTable ids;
    for (const std::string& file : files) {
      const bool first = runs.empty();
      runs.add_file(file, resources);
      const IdTable more = ids_of(load_parts(file, resources, mapped), resources);
      ids = first ? more : ids.joined(more, params.shift_ids, resources);
    }
    runs.write(ids, trained_parts(described, resources), resources);
  });
}

}  // namespace kith
