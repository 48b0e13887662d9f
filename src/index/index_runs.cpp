#include "index/index_runs.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/host_array.hpp"
#include "index/index_about.hpp"
#include "index/index_file.hpp"
#include "index/index_kind.hpp"
#include "io/container/section_stream.hpp"
#include "io/disk.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace kith {
namespace {

constexpr size_t kMostRuns = 32;  // open at a time; then they are merged into one
constexpr std::string_view kStepBeginning = "rows-";

const Section& section_of(const ContainerFile& file, std::string_view name) {
  const Section* const section = file.find(name);
  if (section == nullptr) file.corrupt(fmt::format("section '{}' is missing", name));
  return *section;
}

IndexParts about_of(const ContainerFile& file, const Resources& resources) {
  constexpr int64_t kLongestAbout = 1 << 20;
  const Section& section = section_of(file, "about");
  if (section.type != SectionType::text || section.bytes > kLongestAbout) file.corrupt(section, "it is no such text");
  std::string text(static_cast<size_t>(section.bytes), '\0');
  file.read(section, text.data(), resources);
  try {
    return parse_about<IndexParts>(text);
  } catch (const AboutProblem& problem) {
    file.corrupt(section, problem.what());
  }
}

// Whether a section has a value per row, or offsets of such values.
bool is_of_rows(std::string_view name) {
  constexpr std::string_view kNames[] = {"about", "offsets", "rows", "codes", "flat", "ids", "refine.codes", "tuned"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::string in_words(std::string_view section) {
  if (section == "centres") return "the centres of their lists differ";
  if (section.starts_with("transform")) return "their transforms differ";
  if (section.starts_with("refine")) return "the vectors to refine with are kept as other codes";
  if (section == "subtracted") return "they subtract different offsets from float64 vectors";
  return "their codes differ";
}

// Buffer size of each stream, and of the piece between them.
int64_t stream_bytes(size_t streams, const Resources& resources) {
  constexpr int64_t kLeast = 4 << 10;
  constexpr int64_t kMostBuffered = 1 << 20;
  const int64_t share = resources.host_memory()->available() / (4 * (static_cast<int64_t>(streams) + 1));
  return std::clamp(share / kLeast * kLeast, kLeast, kMostBuffered);
}

// A buffer of bytes for a section, written when it is full.
class Piece {
 public:
  Piece(int64_t bytes, const ContainerWriter::Put& put, const Resources& resources)
      : bytes_(bytes, "what is written to a file at a time", resources), put_(put) {}

  // Moves `bytes` bytes from the stream, after change(data, bytes).
  template <typename Change>
  void take(SectionStream& from, int64_t bytes, const Change& change) {
    while (bytes > 0) {
      if (filled_ == bytes_.size()) flush();
      const int64_t some = std::min(bytes, bytes_.size() - filled_);
      std::byte* const to = bytes_.data() + filled_;
      from.read(to, some);
      change(to, some);
      filled_ += some;
      bytes -= some;
    }
  }
  void take(SectionStream& from, int64_t bytes) {
    take(from, bytes, [](std::byte*, int64_t) {});
  }
  void add(const void* value, int64_t bytes) {
    if (filled_ + bytes > bytes_.size()) flush();
    std::copy_n(static_cast<const std::byte*>(value), bytes, bytes_.data() + filled_);
    filled_ += bytes;
  }
  void flush() {
    put_({bytes_.data(), static_cast<size_t>(filled_)});
    filled_ = 0;
  }

 private:
  HostArray<std::byte> bytes_;
  const ContainerWriter::Put& put_;
  int64_t filled_ = 0;
};

// The sizes of lists in one run, in their order.
class ListSizes {
 public:
  ListSizes(const ContainerFile& file, int64_t rows, int64_t buffer, const Resources& resources)
      : file_(file), section_(section_of(file, "offsets")), stream_(file, section_, buffer, resources), rows_(rows) {
    if (stream_.next<int64_t>() != 0) file_.corrupt(section_, "the first list does not begin at 0");
  }
  int64_t next() {
    const auto end = stream_.next<int64_t>();
    if (end < at_ || end > rows_) file_.corrupt(section_, "a list ends before it begins, or behind the rows");
    return end - std::exchange(at_, end);
  }

 private:
  const ContainerFile& file_;
  const Section& section_;
  SectionStream stream_;
  const int64_t rows_;
  int64_t at_ = 0;
};

}  // namespace

std::string factory_in(const std::string& path, const Resources& resources) {
  const ContainerFile file(path);
  if (file.kind() != "index") return {};  // loading it will give the error
  return about_of(file, resources).factory;
}

void refuse_other_training(const ContainerFile& first, const ContainerFile& other, const Resources& resources) {
  const IndexParts a = about_of(first, resources);
  const IndexParts b = about_of(other, resources);
  const auto refuse = [&](std::string_view difference) {
    throw_not_alike(fmt::format("'{}' and '{}': {}", first.path(), other.path(), difference));
  };
  if (a.graph || b.graph) {
    throw Unsupported(
        fmt::format("'{}' and '{}' cannot be one index on disk: a graph is over all of its vectors; load them into "
                    "memory and merge()",
                    first.path(), other.path()));
  }
  if (a.factory != b.factory) refuse(fmt::format("one is '{}', the other '{}'", a.factory, b.factory));
  if (a.metric != b.metric) {
    refuse(fmt::format("one is searched by {}, the other by {}", name_of(a.metric), name_of(b.metric)));
  }
  if (a.cols == 0 || b.cols == 0) return;  // one that has not seen a vector, and needs no training
  if (a.cols != b.cols || a.dtype != b.dtype) {
    refuse(fmt::format("one is of {} columns of {}, the other of {} of {}", a.cols, name_of(a.dtype), b.cols,
                       name_of(b.dtype)));
  }
  std::set<std::string, std::less<>> names;
  for (const ContainerFile* file : {&first, &other}) {
    for (const Section& section : file->sections()) names.insert(section.name);
  }
  for (const std::string& name : names) {
    if (is_of_rows(name)) continue;
    const Section* const x = first.find(name);
    const Section* const y = other.find(name);
    if (x == nullptr || y == nullptr || x->shape != y->shape || x->hash != y->hash) refuse(in_words(name));
  }
}

void check_joined_rows(int64_t rows, int64_t more) {
  constexpr int64_t kMostJoined = std::numeric_limits<int32_t>::max();
  if (more <= kMostJoined - rows) return;
  throw Unsupported(fmt::format("an index of {} + {} rows; one index takes up to {}", rows, more, kMostJoined));
}

std::string StepRows::name() const { return fmt::format("{}{}-{}", kStepBeginning, first, end); }

std::vector<StepRows> IndexRuns::find_steps(WorkFolder& folder) {
  std::vector<StepRows> found;
  for (const std::string& name : folder.names(kStepBeginning)) {
    StepRows rows;
    const char* const last = name.data() + name.size();
    const auto first = std::from_chars(name.data() + kStepBeginning.size(), last, rows.first);
    if (first.ptr != last) std::from_chars(first.ptr + 1, last, rows.end);
    if (rows.name() == name && rows.first < rows.end && folder.find(name)) found.push_back(rows);
  }
  std::sort(found.begin(), found.end(), [](const StepRows& a, const StepRows& b) {
    return a.first != b.first ? a.first < b.first : a.end > b.end;
  });
  int64_t at = 0;
  std::erase_if(found, [&](const StepRows& rows) {
    if (rows.first >= at) {
      at = rows.end;
      return false;
    }
    folder.remove(rows.name());
    return true;
  });
  return found;
}

IndexRuns::Run IndexRuns::opened_step(const StepRows& rows, const Resources& resources) const {
  const StepFile step = folder_->open(rows.name());
  std::shared_ptr<const ContainerFile> file;
  try {
    file = std::make_shared<const ContainerFile>(step.as_file());
    if (about_of(*file, resources).rows != rows.end - rows.first) file->corrupt("it has other rows than its name says");
  } catch (const CorruptFile& damaged) {
    throw DamagedStep(damaged, rows.name());
  }
  return {std::move(file), rows.first, rows.end - rows.first, rows.name()};
}

IndexParts IndexRuns::training_in(WorkFolder& folder, const StepRows& rows, const Resources& resources) {
  try {
    return load_parts(folder.open(rows.name()).as_file(), resources, {RowArrays::left_out, RowArrays::left_out});
  } catch (const DamagedStep&) {
    throw;
  } catch (const CorruptFile& damaged) {
    throw DamagedStep(damaged, rows.name());
  }
}

void IndexRuns::add_step(const StepRows& rows, const Resources& resources) {
  if (runs_.size() >= kMostRuns) join_runs(resources);
  runs_.push_back(opened_step(rows, resources));
  rows_ += runs_.back().rows;
}

IndexRuns::Run IndexRuns::written_step(const StepRows& rows, const std::function<void(DiskFile&)>& write,
                                       const Resources& resources) {
  StepWriter writer(*folder_, rows.name());
  writer.add_file(write);
  writer.commit();
  return opened_step(rows, resources);
}

void IndexRuns::add_file(const std::string& path, const Resources& resources) {
  auto file = std::make_shared<const ContainerFile>(path);
  if (file->kind() != "index") throw InvalidArgument(fmt::format("'{}' holds no index", path));
  for (const Run& run : runs_) refuse_other_training(*run.file, *file, resources);
  const int64_t rows = about_of(*file, resources).rows;
  check_joined_rows(rows_, rows);
  runs_.push_back({std::move(file), rows_, rows});
  rows_ += rows;
}

std::shared_ptr<const ContainerFile> IndexRuns::opened_and_removed(const std::string& path) const {
  try {
    auto file = std::make_shared<const ContainerFile>(path);
    ::unlink(path.c_str());
    return file;
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

void IndexRuns::expect_rows(int64_t rows) const {
  if (rows_ == rows) return;
  throw InvalidState(fmt::format(
      "the files of this index have changed since it was loaded: it had {} rows, they have {}; load them again", rows,
      rows_));
}

namespace {

void refuse_full_disk(const std::string& path, int64_t bytes) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int64_t free = real_disk().free_bytes(folder.empty() ? "." : folder);
  if (bytes <= free) return;
  throw IoError(
      fmt::format("cannot write '{}': it and what is written beside it on the way take {}, and {} are free; give "
                  "a path on another disk, or a larger memory limit",
                  path, format_bytes_up(bytes), format_bytes(free)),
      path, ENOSPC);
}

// Bytes of the sections that have one value per row.
int64_t bytes_of_rows(const ContainerFile& file) {
  int64_t bytes = 0;
  for (const Section& section : file.sections()) bytes += is_of_rows(section.name) ? section.bytes : 0;
  return bytes;
}

}  // namespace

std::string IndexRuns::spill_path() {
  if (!spilled_) spilled_.emplace(path_);
  return spilled_->next();
}

void IndexRuns::spill(const IndexParts& parts, int64_t to_come, const Resources& resources) {
  if (runs_.size() >= kMostRuns) join_runs(resources);
  Run run;
  if (folder_ != nullptr) {
    run = written_step({rows_, rows_ + parts.rows},
                       [&](DiskFile& file) { save_parts(parts, ProducedFile{.into = &file}, path_, resources); }, resources);
  } else {
    const std::string path = spill_path();
    save_parts(parts, ProducedFile{.sections = {}, .synced = false}, path, resources);
    run = {opened_and_removed(path), rows_, parts.rows};
  }
  const int64_t each = bytes_of_rows(*run.file) / std::max<int64_t>(parts.rows, 1) + 1;
  if (folder_ != nullptr) folder_->require_space(each * to_come);
  refuse_full_disk(path_, each * (rows_ + parts.rows + (folder_ == nullptr ? 2 : 1) * to_come));
  runs_.push_back(std::move(run));
  rows_ += parts.rows;
}

// Merges the open runs into one. Users' files stay unchanged on the disk.
void IndexRuns::join_runs(const Resources& resources) {
  if (folder_ != nullptr) return join_steps(resources);
  const std::string path = spill_path();
  write_runs(runs_, path, trained_(), nullptr, nullptr, resources);
  Run joined{opened_and_removed(path), 0, rows_};
  runs_.clear();
  runs_.push_back(std::move(joined));
}

// The steps behind a user's files become one.
void IndexRuns::join_steps(const Resources& resources) {
  const auto first = std::find_if(runs_.begin(), runs_.end(), [](const Run& run) { return !run.step.empty(); });
  const Runs steps(first, runs_.end());
  if (steps.size() < 2) return;
  const auto write = [&](DiskFile& file) { write_runs(steps, path_, trained_(), nullptr, &file, resources); };
  Run joined = written_step({first->first_row, rows_}, write, resources);
  for (const Run& run : steps) folder_->remove(run.step);
  runs_.erase(first, runs_.end());
  runs_.push_back(std::move(joined));
}

void IndexRuns::write(const IdTable& ids, IndexParts whole, const Resources& resources) const {
  write_runs(runs_, path_, std::move(whole), &ids, nullptr, resources);
}

void IndexRuns::write_runs(Runs runs, const std::string& path, IndexParts whole, const IdTable* ids, DiskFile* into,
                           const Resources& resources) const {
  try {
    write_file(runs, path, std::move(whole), ids, into, resources);
  } catch (const CorruptFile& damaged) {
    for (const Run& run : runs) {
      if (run.step.empty() || run.file->path() != damaged.path()) continue;
      throw DamagedStep(damaged, run.step);
    }
    throw;
  }
}

void IndexRuns::write_file(Runs runs, const std::string& path, IndexParts whole, const IdTable* ids, DiskFile* into,
                           const Resources& resources) const {
  whole.rows = 0;
  for (const Run& run : runs) whole.rows += run.rows;
  whole.next_id = ids == nullptr ? whole.rows : ids->next_id();
  ProducedFile file{.sections = {}, .synced = ids != nullptr, .into = into};

  const auto in_order = [&](const std::string& name) {
    file.sections[name] = [&, name](const ContainerWriter::Put& put) {
      const int64_t buffer = stream_bytes(1, resources);
      Piece piece(buffer, put, resources);
      for (const Run& run : runs) {
        if (run.rows == 0) continue;
        const Section& section = section_of(*run.file, name);
        SectionStream stream(*run.file, section, buffer, resources);
        piece.take(stream, section.bytes);
      }
      piece.flush();
    };
  };
  const auto by_list = [&](const std::string& name, int64_t each, bool numbers_rows) {
    file.sections[name] = [&, name, each, numbers_rows, lists = whole.lists->lists](const ContainerWriter::Put& put) {
      const int64_t buffer = stream_bytes(2 * runs.size(), resources);
      Piece piece(buffer, put, resources);
      std::vector<ListSizes> sizes;
      std::vector<SectionStream> streams;
      std::vector<uint32_t> first_rows;
      for (const Run& run : runs) {
        if (run.rows == 0) continue;
        sizes.emplace_back(*run.file, run.rows, buffer, resources);
        streams.emplace_back(*run.file, section_of(*run.file, name), buffer, resources);
        first_rows.push_back(static_cast<uint32_t>(run.first_row - runs.front().first_row));
      }
      for (int64_t list = 0; list < lists; ++list) {
        for (size_t i = 0; i < streams.size(); ++i) {
          const int64_t bytes = sizes[i].next() * each;
          if (!numbers_rows || first_rows[i] == 0) {
            piece.take(streams[i], bytes);
            continue;
          }
          piece.take(streams[i], bytes, [&](std::byte* data, int64_t some) {
            auto* const rows = reinterpret_cast<uint32_t*>(data);
            for (int64_t k = 0; k < some / 4; ++k) rows[k] += first_rows[i];
          });
        }
      }
      piece.flush();
    };
  };

  if (whole.lists && whole.lists->lists > 1) {
    const int64_t lists = whole.lists->lists;
    HostArray<int64_t> offsets(lists + 1, "the lists' offsets", resources);
    std::fill(offsets.begin(), offsets.end(), int64_t{0});
    for (const Run& run : runs) {
      if (run.rows == 0) continue;
      ListSizes sizes(*run.file, run.rows, stream_bytes(1, resources), resources);
      for (int64_t list = 0; list < lists; ++list) offsets[list + 1] += sizes.next();
    }
    for (int64_t list = 0; list < lists; ++list) offsets[list + 1] += offsets[list];
    whole.lists->offsets = std::move(offsets);
    by_list("rows", sizeof(uint32_t), true);
    by_list("codes", whole.lists->codec.format.bytes(), false);
  } else {
    in_order(whole.lists ? "codes" : "flat");
  }
  if (whole.refine) in_order("refine.codes");
  if (ids != nullptr && !ids->plain()) {
    file.sections["ids"] = [&](const ContainerWriter::Put& put) {
      Piece piece(stream_bytes(1, resources), put, resources);
      for (int64_t row = 0; row < rows_; ++row) {
        const int64_t id = ids->id(row);
        piece.add(&id, sizeof(id));
      }
      piece.flush();
    };
  }
  save_parts(whole, file, path, resources);
}

}  // namespace kith
