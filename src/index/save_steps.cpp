#include "index/save_steps.hpp"

#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/exact_on_disk/row_blocks.hpp"
#include "index/factory.hpp"
#include "index/index_access.hpp"
#include "index/index_file.hpp"
#include "index/index_impl.hpp"
#include "index/index_runs.hpp"
#include "io/container/xxh3.hpp"
#include "io/work_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace kith {
namespace {

constexpr std::string_view kSurvey = "survey";
constexpr std::string_view kTrainingSurvey = "survey-train";
constexpr std::string_view kTrained = "trained";

// Keeps the hash of a container's head, which has those of all that is in it, and nothing else.
class HashedFile final : public DiskFile {
 public:
  HashedFile() : DiskFile("") {}

  uint64_t head_hash() const { return hash_; }
  int64_t size() const override { return size_; }
  void reserve(int64_t) override {}
  void sync() override {}
  std::shared_ptr<const std::byte> map() const override { return nullptr; }

 protected:
  int64_t read_some(int64_t, void*, int64_t) const override { return 0; }
  int64_t write_some(int64_t offset, const void* data, int64_t bytes) override {
    if (offset == 0) hash_ = xxh3({static_cast<const std::byte*>(data), static_cast<size_t>(bytes)});
    size_ = std::max(size_, offset + bytes);
    return bytes;
  }

 private:
  int64_t size_ = 0;
  uint64_t hash_ = 0;
};

bool trains(const SaveTask& task, const IndexWork& work) { return !task.index.trained() && work.train != nullptr; }
bool trains_on_others(const SaveTask& task, const IndexWork& work) {
  return trains(task, work) && work.train != &task.rows;
}

WorkManifest manifest_of(const SaveTask& task, const IndexWork& work, const Resources& resources) {
  const IndexParams& params = task.index.params();
  WorkManifest manifest;
  manifest.set("work", "an index");
  put_source(task.rows, manifest);
  manifest.set("factory", task.index.factory());
  manifest.set("metric", name_of(params.metric));
  manifest.set("seed", fmt::format("{}", params.seed));
  manifest.set("expected rows", params.expected_rows);
  manifest.set("finite values", params.check_finite ? "checked" : "not checked");
  if (trains(task, work)) {
    manifest.set("index", "to be trained");
    if (trains_on_others(task, work)) put_source(*work.train, manifest, " of the training");
  } else {
    manifest.set("index", IndexAccess::fingerprint(task.index, resources));
  }
  manifest.set("ids", task.ids.size == 0 ? std::string("row numbers")
                                         : fmt::format("{}, with the hash {:016x}", task.ids.size,
                                                       xxh3(std::as_bytes(std::span(
                                                           task.ids.data, static_cast<size_t>(task.ids.size))))));
  return manifest;
}

void survey(const VectorFile& x, std::string_view what, bool check_finite, WorkFolder& folder, std::string_view step,
            const Resources& resources) {
  const auto least = [&] {
    return counted(resources, [&](const Resources& counting) { count_survey(x, check_finite, counting); });
  };
  within_limits("the hashes of the vectors", resources, least,
                [&] { (void)survey_rows(x, what, check_finite, folder, std::string(step), resources); });
}

Index trained(const SaveTask& task, const IndexWork& work, WorkFolder& folder, const Resources& resources) {
  const std::string name(kTrained);
  if (const std::optional<StepFile> step = folder.find(name)) {
    try {
      return IndexAccess::from_parts(load_parts(step->as_file(), resources), resources);
    } catch (const CorruptFile& damaged) {
      throw DamagedStep(damaged, name);
    }
  }
  // Another device may train other codebooks: rows that were coded before do not go with them.
  for (const StepRows& rows : IndexRuns::find_steps(folder)) folder.remove(rows.name());
  Index index = task.index.clone(resources);
  index.train(*work.train, resources);
  const IndexParts parts = IndexAccess::parts(index, resources);
  StepWriter writer(folder, name);
  writer.add_file([&](DiskFile& file) { save_parts(parts, ProducedFile{.into = &file}, name, resources); });
  writer.commit();
  return index;
}

}  // namespace

std::string IndexAccess::fingerprint(const Index& index, const Resources& resources) {
  std::string text;
  for (const std::string& path : index.impl_->files) {
    text += fmt::format("{}{:016x}", text.empty() ? "" : " ", ContainerFile(path).head_hash());
  }
  if (!text.empty()) return text;
  HashedFile file;
  save_parts(parts(index, resources), ProducedFile{.into = &file}, "", resources);
  return fmt::format("{:016x}", file.head_hash());
}

void save_in_steps(const SaveTask& task, const IndexWork& work, Disk& disk, int64_t step_rows,
                   const Resources& resources) {
  if (parse_factory(task.index.factory()).degree > 0) {
    throw Unsupported(fmt::format("'{}' is a graph index, which is built in memory and has no steps; leave the work "
                                  "folder out",
                                  task.index.factory()));
  }
  WorkFolder folder(disk, work.folder, manifest_of(task, work, resources), resources);
  const bool check_finite = task.index.params().check_finite;
  repairing(folder, [&] {
    survey(task.rows, "added", check_finite, folder, kSurvey, resources);
    if (trains_on_others(task, work)) {
      survey(*work.train, "training", check_finite, folder, kTrainingSurvey, resources);
    }
    const auto save = [&](const Index& index) {
      IndexAccess::save_added(index, task.rows, task.ids, task.path, &folder, step_rows, resources);
    };
    trains(task, work) ? save(trained(task, work, folder, resources)) : save(task.index);
    folder.finish({}, work.keep);
  });
}

void save_added(const Index& index, const VectorFile& rows, VectorView<const int64_t> ids, const std::string& path,
                const IndexWork& work, const Resources& resources) {
  if (!work.folder.empty()) return save_in_steps({index, rows, ids, path}, work, real_disk(), 0, resources);
  if (index.trained() || work.train == nullptr) return index.save_added(rows, ids, path, resources);
  Index made = index.clone(resources);
  made.train(*work.train, resources);
  made.save_added(rows, ids, path, resources);
}

}  // namespace kith
