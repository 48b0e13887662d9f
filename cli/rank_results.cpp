#include "rank_results.hpp"

#include <kith/communicator.hpp>
#include <kith/error.hpp>
#include <kith/file_info.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace kith::cli {
namespace {

[[noreturn]] void fail(const char* action, const std::string& path) {
  const int code = errno;
  throw IoError(fmt::format("cannot {} '{}': {}", action, path, std::strerror(code)), path, code);
}

}  // namespace

RankResults::RankResults(const NeighborPaths& paths, int64_t queries, int64_t k, Communicator& ranks)
    : ranks_(ranks), name_(file_of(paths.ids.empty() ? paths.distances : paths.ids)), k_(k) {
  if (ranks.rank() == 0) {
    results_.emplace(paths, queries, k);
    return;
  }
  part_.reset(std::fopen(part_path(ranks.rank()).c_str(), "wb"));
  if (part_ == nullptr) fail("write", part_path(ranks.rank()));
  has_part_ = true;
}

RankResults::~RankResults() {
  std::error_code ignored;
  if (has_part_) std::filesystem::remove(part_path(ranks_.rank()), ignored);
}

std::string RankResults::part_path(int rank) const { return fmt::format("{}.rank-{}.part", name_, rank); }

void RankResults::append(const NeighborsView& part) {
  if (results_) return results_->append(part);
  const auto values = static_cast<size_t>(part.queries * k_);
  std::FILE* const file = part_.get();
  if (std::fwrite(&part.queries, sizeof(part.queries), 1, file) != 1 ||
      std::fwrite(part.ids, sizeof(*part.ids), values, file) != values ||
      std::fwrite(part.distances, sizeof(*part.distances), values, file) != values) {
    fail("write", part_path(ranks_.rank()));
  }
}

// Appends the results of another rank.
void RankResults::collect(int rank) {
  const std::string path = part_path(rank);
  const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) fail("read what another rank has found in", path);
  int64_t queries = 0;
  std::vector<int64_t> ids;
  std::vector<float> distances;
  while (std::fread(&queries, sizeof(queries), 1, file.get()) == 1) {
    ids.resize(static_cast<size_t>(queries * k_));
    distances.resize(ids.size());
    if (std::fread(ids.data(), sizeof(ids[0]), ids.size(), file.get()) != ids.size() ||
        std::fread(distances.data(), sizeof(distances[0]), ids.size(), file.get()) != ids.size()) {
      if (std::ferror(file.get()) == 0) throw IoError(fmt::format("cannot read '{}': it ends early", path), path, 0);
      fail("read", path);
    }
    results_->append({ids.data(), distances.data(), queries, k_, {}});
  }
  if (std::ferror(file.get()) != 0) fail("read", path);
}

void RankResults::commit() {
  together(ranks_, [&] {
    // Network file systems show a file to other machines only after it is closed.
    if (part_ != nullptr && std::fclose(part_.release()) != 0) fail("write", part_path(ranks_.rank()));
  });
  // Each rank removes its file once rank 0 has read all.
  together(ranks_, [&] {
    for (int rank = 1; results_ && rank < ranks_.size(); ++rank) collect(rank);
    if (results_) results_->commit();
  });
}

}  // namespace kith::cli
