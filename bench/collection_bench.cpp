// Collections beside what bounds them, in the same run and folder: the disk's sequential writing, plain SQLite with the
// same vectors as blobs, an Index of the same rows, exact search.
//
//   collection_bench FOLDER [ROWS]   ROWS (200,000) of 128 columns for the searches; the folder is filled and emptied
#include <kith/collection.hpp>
#include <kith/index.hpp>
#include <kith/knn.hpp>

#include <sqlite3.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The least of some tries: what the work takes when nothing is in its way.
double best_of(int tries, const std::function<void()>& work) {
  double best = 1e300;
  for (int i = 0; i < tries; ++i) best = std::min(best, seconds_of(work));
  return best;
}

std::vector<float> random_rows(int64_t rows, int64_t cols) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> values;
  std::vector<float> out(static_cast<size_t>(rows * cols));
  for (float& value : out) value = values(random);
  return out;
}

void line(const char* what, double ours, double beside, const char* unit, const char* peer) {
  std::printf("%-58s %12.4g %-8s %12.4g %-24s %6.2f\n", what, ours, unit, beside, peer, ours / beside);
  std::fflush(stdout);
}

// Adds of `batch` rows at a time by plain SQLite: an id and a blob. Rows a second.
double plain_sqlite(const std::string& path, const std::vector<float>& rows, int64_t cols, int64_t batch) {
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB)", nullptr,
               nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?, ?)", -1, &insert, nullptr);
  const int64_t count = static_cast<int64_t>(rows.size()) / cols;
  const double seconds = seconds_of([&] {
    for (int64_t i = 0; i < count;) {
      sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
      for (const int64_t end = std::min(count, i + batch); i < end; ++i) {
        sqlite3_bind_int64(insert, 1, i);
        sqlite3_bind_blob64(insert, 2, &rows[static_cast<size_t>(i * cols)], static_cast<size_t>(cols) * sizeof(float), SQLITE_STATIC);
        sqlite3_step(insert);
        sqlite3_reset(insert);
      }
      sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
    }
  });
  sqlite3_finalize(insert);
  sqlite3_close(db);
  return static_cast<double>(count) / seconds;
}

kith::Collection made(const std::string& path, int64_t dimension, const std::string& index = "Flat") {
  kith::CollectionParams params;
  params.dimension = dimension;
  params.metric = kith::Metric::sqeuclidean;
  params.index = index;
  params.columns = {{"part", kith::ColumnType::integer, true}};
  return kith::Collection::create(path, params);
}

void add(kith::Collection& c, const float* rows, int64_t count, int64_t cols, int64_t first = 0) {
  kith::Items items;
  items.vectors = kith::MatrixView(rows, count, cols);
  items.columns = {{"part", {}}};
  for (int64_t i = 0; i < count; ++i) items.columns[0].values.emplace_back((first + i) % 10000);
  c.add(items);
}

double our_adds(const std::string& path, const std::vector<float>& rows, int64_t cols, int64_t batch) {
  kith::Collection c = made(path, cols);
  const int64_t count = static_cast<int64_t>(rows.size()) / cols;
  const double seconds = seconds_of([&] {
    for (int64_t i = 0; i < count; i += batch) add(c, &rows[static_cast<size_t>(i * cols)], std::min(batch, count - i), cols, i);
  });
  return static_cast<double>(count) / seconds;
}

void writes(const std::string& folder) {
  {
    constexpr int64_t kCols = 768;
    constexpr int64_t kRows = 34'000;  // 104 MB
    const std::vector<float> rows = random_rows(kRows, kCols);
    const double bytes = static_cast<double>(rows.size() * sizeof(float));
    const double sequential = best_of(3, [&] {
      const std::string path = folder + "/sequential";
      const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
      const auto size = static_cast<ssize_t>(rows.size() * sizeof(float));
      if (::write(file, rows.data(), static_cast<size_t>(size)) != size || ::fsync(file) != 0) throw std::runtime_error("write");
      ::close(file);
    });
    int tried = 0;
    kith::Collection c = made(folder + "/large", kCols);
    const double ours = best_of(3, [&] { add(c, rows.data(), kRows, kCols, tried++ * kRows); });
    line("batches of 104 MB, rows of 3 KB", bytes / ours / 1e6, bytes / sequential / 1e6, "MB/s", "write + fsync");
  }
  constexpr int64_t kCols = 384;
  const std::vector<float> few = random_rows(300, kCols);
  line("one row a call, 384 f32, synced", our_adds(folder + "/one", few, kCols, 1),
       plain_sqlite(folder + "/one.sqlite", few, kCols, 1), "rows/s", "plain SQLite");
  const std::vector<float> many = random_rows(30'000, kCols);
  line("batches of 1,000 rows", our_adds(folder + "/many", many, kCols, 1000),
       plain_sqlite(folder + "/many.sqlite", many, kCols, 1000), "rows/s", "plain SQLite");
}

void searches(const std::string& folder, int64_t rows) {
  constexpr int64_t kCols = 128;
  const std::vector<float> data = random_rows(rows, kCols);
  const std::vector<float> queries = random_rows(100, kCols);
  const kith::MatrixView base(data.data(), rows, kCols);
  const kith::MatrixView asked(queries.data(), 100, kCols);
  const kith::MatrixView one(queries.data(), 1, kCols);
  kith::CollectionSearchParams params;
  {
    kith::Collection c = made(folder + "/indexed", kCols, "IVF1024,SQ8");
    add(c, data.data(), rows, kCols);
    c.compact();
  }
  kith::IndexParams index_params;
  index_params.metric = kith::Metric::sqeuclidean;
  kith::Index index("IVF1024,SQ8", index_params);
  index.train(base);
  index.add(base);
  const double opened = best_of(5, [&] {
    const kith::Collection c = kith::Collection::open(folder + "/indexed", {.mode = kith::OpenMode::read});
    (void)c.search(one, params);
  });
  std::printf("open to the first search of %lld rows: %.1f ms\n", static_cast<long long>(rows), opened * 1e3);
  const kith::Collection indexed = kith::Collection::open(folder + "/indexed", {.mode = kith::OpenMode::read});
  line("compacted, IVF1024,SQ8, 100 queries", best_of(10, [&] { (void)indexed.search(asked, params); }),
       best_of(10, [&] { (void)index.search(asked); }), "s", "the same Index");

  const int64_t part = 65536;
  const int64_t parts = std::min<int64_t>(8, rows / part);
  kith::Collection segments = made(folder + "/segments", kCols);
  for (int64_t p = 0; p < parts; ++p) {
    add(segments, &data[static_cast<size_t>(p * part * kCols)], part, kCols, p * part);
    segments.fold();
  }
  const kith::MatrixView same(data.data(), parts * part, kCols);
  kith::Index flat("Flat", index_params);
  flat.add(same);
  line("exact, segments without an index, 100 queries", best_of(10, [&] { (void)segments.search(asked, params); }),
       best_of(10, [&] { (void)flat.search(asked); }), "s", "Flat of these rows");

  const double all = best_of(10, [&] { (void)flat.search(one); });
  for (const auto& [keeps, bound] : {std::pair{"10 %", 1000}, std::pair{"1 %", 100}, std::pair{"0.01 %", 1}}) {
    params.filter.where = "part < ?";
    double first = 1e300;
    double again = 1e300;
    for (int i = 0; i < 5; ++i) {
      // Parameters that were not used before: nothing is kept for them.
      params.filter.params = {static_cast<double>(bound) - 0.5 + i * 1e-3};
      first = std::min(first, seconds_of([&] { (void)segments.search(one, params); }));
      again = std::min(again, seconds_of([&] { (void)segments.search(one, params); }));
    }
    const std::string name = std::string("where keeping ") + keeps + ", first use, one query";
    line(name.c_str(), first, all, "s", "exact search of all");
    std::printf("  repeated in a version: %.4g s\n", again);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: collection_bench FOLDER [ROWS]\n");
    return 2;
  }
  const std::string folder = std::string(arguments[1]) + "/kith-collection-bench";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  writes(folder);
  searches(folder, count > 2 ? std::atoll(arguments[2]) : 200'000);
  std::filesystem::remove_all(folder);
}
