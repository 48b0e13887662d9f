#include "graph/build/cells_on_disk/source_pass.hpp"

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "rows/row_source.hpp"
#include "rows/threaded_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <future>
#include <string>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kHashedBytes = int64_t{64} << 20;
constexpr int64_t kBatchBytes = int64_t{16} << 20;
constexpr int64_t kBatchRows = 8192;  // or more, where rows are short
constexpr int64_t kThreadBytes = int64_t{1} << 20;  // that are worth a thread

// The names of the rows' files, without folders, which may be moved.
std::string files_of(const VectorFile& x) {
  std::string files;
  for (int64_t row = 0; row < x.rows();) {
    const RowPlace place = x.place_of(row);
    // The first row of another file, by bisection.
    int64_t in = row;
    int64_t out = x.rows();
    while (out - in > 1) {
      const int64_t middle = in + (out - in) / 2;
      (middle - x.place_of(middle).row == row ? in : out) = middle;
    }
    files += fmt::format("{}{} ({} rows)", files.empty() ? "" : ", ",
                         std::filesystem::path(place.path).filename().string(), out - row);
    row = out;
  }
  return files;
}

}  // namespace

void put_source(const VectorFile& x, WorkManifest& manifest, const std::string& whose) {
  manifest.set("rows" + whose, x.rows());
  manifest.set("columns" + whose, x.cols());
  manifest.set("dtype" + whose, name_of(x.dtype()));
  manifest.set("files" + whose, files_of(x));
}

int64_t rows_per_hash(const VectorFile& x) {
  return std::max<int64_t>(1, kHashedBytes / std::max<int64_t>(1, RowsInfo(x).row_bytes()));
}

SourceHasher::SourceHasher(const VectorFile& x) : x_(x), rows_per_hash_(rows_per_hash(x)) {}

void SourceHasher::update(const MatrixView& rows, const std::vector<uint64_t>* known, const Resources& resources) {
  const int64_t row_bytes = RowsInfo(x_).row_bytes();
  const auto bytes_of = [&](int64_t first, int64_t count) {
    return std::span(static_cast<const std::byte*>(rows.row(first)), static_cast<size_t>(count * row_bytes));
  };
  int64_t at = 0;
  if (const int64_t whole = rows.rows() / rows_per_hash_; whole > 1 && row_ % rows_per_hash_ == 0) {
    std::vector<uint64_t> hashes(static_cast<size_t>(whole));
    const Resources quiet = resources.with_progress({}).with_cancel(CancelToken());  // perhaps on a thread beside
    ProgressMeter meter("hash", whole, quiet);
    parallel_for(whole, meter, quiet, [&](int64_t number, int) {
      hashes[static_cast<size_t>(number)] = xxh3(bytes_of(number * rows_per_hash_, rows_per_hash_));
    });
    for (const uint64_t hash : hashes) {
      row_ += rows_per_hash_;
      end_piece(hash, known);
    }
    at = whole * rows_per_hash_;
  }
  while (at < rows.rows()) {
    const int64_t some = std::min(rows.rows() - at, rows_per_hash_ - row_ % rows_per_hash_);
    hash_.update(bytes_of(at, some));
    at += some;
    row_ += some;
    if (row_ % rows_per_hash_ == 0) end_piece(std::exchange(hash_, Xxh3()).digest(), known);
  }
}

std::vector<uint64_t> SourceHasher::finish(const std::vector<uint64_t>* known) {
  if (row_ % rows_per_hash_ != 0) end_piece(std::exchange(hash_, Xxh3()).digest(), known);
  return std::move(hashes_);
}

void SourceHasher::end_piece(uint64_t hash, const std::vector<uint64_t>* known) {
  const size_t number = hashes_.size();
  hashes_.push_back(hash);
  if (known == nullptr || (number < known->size() && (*known)[number] == hashes_.back())) return;
  const int64_t first = static_cast<int64_t>(number) * rows_per_hash_;
  const RowPlace from = x_.place_of(first);
  const RowPlace to = x_.place_of(row_ - 1);
  throw InvalidArgument(
      fmt::format("the vectors have changed since this work began: from row {} of '{}' to "
                  "row {} of '{}'; give the same vectors, or remove the work folder",
                  from.row, from.path, to.row, to.path));
}

int64_t most_pass_rows(const VectorFile& x) {
  return std::max(kBatchRows, kBatchBytes / std::max<int64_t>(1, RowsInfo(x).row_bytes()));
}

int64_t most_hashed_rows(const VectorFile& x, const Resources& resources) {
  constexpr int64_t kMostHashes = 4;
  return std::max(most_pass_rows(x), std::min<int64_t>(resources.threads(), kMostHashes) * rows_per_hash(x));
}

namespace {

// Runs both, on two threads if that is faster. A changed source is reported before any error of `body`.
template <typename Hash, typename Body>
void hash_beside(bool apart, const Hash& hash, const Body& body) {
  if (!apart) {
    hash();
    return body();
  }
  std::future<void> hashed = start_beside(hash);
  std::exception_ptr failed;
  try {
    body();
  } catch (...) {
    failed = std::current_exception();
  }
  hashed.get();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

std::vector<uint64_t> pass_over(const VectorFile& x, std::string_view stage, const PassBatch& batch,
                                const std::vector<uint64_t>* known, const Resources& resources,
                                const std::function<void(int64_t first, const MatrixView& rows)>& body) {
  const ReadMemory memory = x.reserve_memory(resources);
  const VectorFile threaded = read_by_threads(x, resources);
  FileSource source(threaded);
  source.open(batch.most, resources);
  if (counts_only(resources)) return {};
  SourceHasher hasher(x);
  ProgressMeter meter(stage, x.rows(), resources);
  const int64_t row_bytes = RowsInfo(x).row_bytes();
  for (int64_t first = 0; first < x.rows();) {
    const int64_t count = std::min({batch.most, batch.together - first % batch.together, x.rows() - first});
    const MatrixView rows = source.fetch(first, count);
    const bool apart = resources.threads() > 1 && count * row_bytes >= kThreadBytes;
    hash_beside(apart, [&] { hasher.update(rows, known, resources); }, [&] { body(first, rows); });
    first += count;
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  return hasher.finish(known);
}

int64_t pass_bytes(const VectorFile& x, int64_t batch) { return x.memory_bytes() + RowsInfo(x).read_bytes(batch); }

}  // namespace kith
