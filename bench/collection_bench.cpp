// Collections beside what bounds them, in the same run and folder: the disk's sequential writing, plain SQLite with the
// same vectors as blobs, an Index of the same rows, exact search.
//
//   collection_bench --folder DIR [--parts writes,searches,segments,filters,tenants,upserts,open] [--rows 1000000]
//                    [--cols 128] [--graph 0|1] [--out FILE]
//
// The folder is filled and emptied. Both sides take turns, and the least of their turns counts: wall time, and the
// processor time of all threads, which a busy machine does not stretch. --rows: of filters, tenants and open; --cols:
// of open; --graph: searches have a graph index, too. A program of its own, since collections are a library of their
// own.
#include <kith/collection.hpp>
#include <kith/index.hpp>
#include <kith/knn.hpp>

#include "driver/benchmark.hpp"
#include "driver/timing.hpp"

#include <sqlite3.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using kith::bench::Seconds;
using kith::bench::seconds_of;

struct Settings {
  std::string folder;
  int64_t rows = 1'000'000;
  int64_t cols = 128;
  bool graph = false;
};

Seconds least_of(const Seconds& a, const Seconds& b) {
  return {std::min(a.wall, b.wall), std::min(a.processor, b.processor)};
}
const Seconds kNotMeasured{HUGE_VAL, HUGE_VAL};

class Bench {
 public:
  Bench(Settings settings, kith::bench::Report& report) : settings_(std::move(settings)), report_(report) {}

  void run(const std::string& parts);

 private:
  void writes() const;
  void searches() const;
  void segments() const;
  void filters() const;
  void tenants() const;
  void upserts() const;
  void open() const;

  // Ours and what it stands beside, in turns.
  void beside(const std::string& what, const std::string& peer, int turns, const std::function<void()>& ours,
              const std::function<void()>& other) const {
    Seconds a = kNotMeasured;
    Seconds b = kNotMeasured;
    for (int i = 0; i < turns; ++i) {
      b = least_of(b, seconds_of(other));
      a = least_of(a, seconds_of(ours));
    }
    report_.row({.name = what + ", beside " + peer,
                 .ms = 1e3 * a.wall,
                 .runs = turns,
                 .clock = "wall",
                 .peers = {{peer, 1e3 * b.wall}},
                 .figures = {{"ratio", a.wall / b.wall},
                             {"processor_ms", 1e3 * a.processor},
                             {"peer_processor_ms", 1e3 * b.processor},
                             {"processor_ratio", a.processor / b.processor}}});
  }

  Settings settings_;
  kith::bench::Report& report_;
};

std::vector<float> random_rows(int64_t rows, int64_t cols, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> out(static_cast<size_t>(rows * cols));
  for (float& value : out) value = values(random);
  return out;
}

// Plain SQLite: an id and a blob.
class PlainSqlite {
 public:
  explicit PlainSqlite(const std::string& path) {
    sqlite3_open(path.c_str(), &db_);
    run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB)");
    sqlite3_prepare_v2(db_, "INSERT INTO t VALUES(?, ?)", -1, &insert_, nullptr);
  }
  ~PlainSqlite() {
    sqlite3_finalize(insert_);
    sqlite3_close(db_);
  }
  PlainSqlite(const PlainSqlite&) = delete;
  PlainSqlite& operator=(const PlainSqlite&) = delete;

  void add(const float* rows, int64_t count, int64_t cols) {
    run("BEGIN IMMEDIATE");
    for (int64_t i = 0; i < count; ++i) {
      sqlite3_bind_int64(insert_, 1, next_++);
      sqlite3_bind_blob64(insert_, 2, rows + i * cols, static_cast<size_t>(cols) * sizeof(float), SQLITE_STATIC);
      sqlite3_step(insert_);
      sqlite3_reset(insert_);
    }
    run("COMMIT");
  }

 private:
  void run(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db_));
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  int64_t next_ = 0;
};

kith::Collection made(const std::string& path, int64_t dimension, const std::string& index = "Flat", bool part = false,
                      kith::SyncMode sync = kith::SyncMode::now) {
  kith::CollectionParams params;
  params.dimension = dimension;
  params.metric = kith::Metric::sqeuclidean;
  params.index = index;
  if (part) params.columns = {{"part", kith::ColumnType::integer, true}};
  kith::OpenParams open;
  open.sync = sync;
  return kith::Collection::create(path, params, open);
}

// `parts`: the column is the row modulo it; 0: there is no column.
void add(kith::Collection& c, const float* rows, int64_t count, int64_t cols, int64_t first = 0, int64_t parts = 0) {
  kith::Items items;
  items.vectors = kith::MatrixView(rows, count, cols);
  if (parts > 0) {
    items.columns = {{"part", {}}};
    for (int64_t i = 0; i < count; ++i) items.columns[0].values.emplace_back((first + i) % parts);
  }
  c.add(items);
}

void Bench::writes() const {
  {
    constexpr int64_t kCols = 768;
    constexpr int64_t kRows = 34'000;  // 104 MB
    const std::vector<float> rows = random_rows(kRows, kCols);
    kith::Collection c = made(settings_.folder + "/large", kCols);
    beside("add 104 MB, rows of 3 KB", "write + fsync", 5, [&] { add(c, rows.data(), kRows, kCols); }, [&] {
      const std::string path = settings_.folder + "/sequential";
      const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
      const auto size = static_cast<ssize_t>(rows.size() * sizeof(float));
      if (::write(file, rows.data(), static_cast<size_t>(size)) != size || ::fsync(file) != 0)
        throw std::runtime_error("write");
      ::close(file);
    });
  }
  constexpr int64_t kCols = 384;
  const std::vector<float> rows = random_rows(10'000, kCols);
  kith::Collection one = made(settings_.folder + "/one", kCols);
  PlainSqlite plain(settings_.folder + "/one.sqlite");
  beside("100 rows, one a call, 384 f32, synced", "plain SQLite", 5, [&] {
    for (int64_t i = 0; i < 100; ++i) add(one, &rows[static_cast<size_t>(i * kCols)], 1, kCols);
  }, [&] {
    for (int64_t i = 0; i < 100; ++i) plain.add(&rows[static_cast<size_t>(i * kCols)], 1, kCols);
  });
  kith::Collection many = made(settings_.folder + "/many", kCols);
  PlainSqlite plain_many(settings_.folder + "/many.sqlite");
  beside("10,000 rows, 1,000 a call, 384 f32, synced", "plain SQLite", 5, [&] {
    for (int64_t i = 0; i < 10'000; i += 1000) add(many, &rows[static_cast<size_t>(i * kCols)], 1000, kCols);
  }, [&] {
    for (int64_t i = 0; i < 10'000; i += 1000) plain_many.add(&rows[static_cast<size_t>(i * kCols)], 1000, kCols);
  });
}

void Bench::searches() const {
  constexpr int64_t kCols = 128;
  constexpr int64_t kPart = 65536;
  constexpr int64_t kRows = 8 * kPart;
  const std::vector<float> data = random_rows(kRows, kCols);
  const std::vector<float> queries = random_rows(100, kCols, 2);
  const kith::MatrixView base(data.data(), kRows, kCols);
  const kith::MatrixView asked(queries.data(), 100, kCols);
  const kith::MatrixView one(queries.data(), 1, kCols);
  kith::IndexParams index_params;
  index_params.metric = kith::Metric::sqeuclidean;
  for (const char* factory : {"IVF1024,SQ8", "IVF1024,Flat", "Graph16"}) {
    if (std::string(factory) == "Graph16" && !settings_.graph) continue;
    const std::string path = settings_.folder + "/" + factory;
    {
      kith::Collection c = made(path, kCols, factory);
      add(c, data.data(), kRows, kCols);
      c.compact();
    }
    const kith::Collection c = kith::Collection::open(path, {.mode = kith::OpenMode::read});
    // The same Index, with the same training: from its file into memory.
    const kith::Index index = kith::Index::load(path + "/" + c.info().segments[0].index_file);
    const std::string name = std::string("compacted, ") + factory;
    beside(
        name + ", 100 queries", "the same Index in memory", 9, [&] { (void)c.search(asked); },
        [&] { (void)index.search(asked); });
    beside(
        name + ", one query", "the same Index in memory", 21, [&] { (void)c.search(one); },
        [&] { (void)index.search(one); });
  }
}

void Bench::segments() const {
  constexpr int64_t kCols = 384;  // so that a part is 100 MB, and a segment at once
  constexpr int64_t kPart = 65536;
  constexpr int64_t kParts = 8;
  const std::vector<float> data = random_rows(kParts * kPart, kCols);
  const std::vector<float> queries = random_rows(100, kCols, 2);
  const kith::MatrixView asked(queries.data(), 100, kCols);
  const kith::MatrixView one(queries.data(), 1, kCols);
  kith::Collection segments = made(settings_.folder + "/segments", kCols);
  for (int64_t p = 0; p < kParts; ++p)
    add(segments, &data[static_cast<size_t>(p * kPart * kCols)], kPart, kCols, p * kPart);
  report_.note(std::to_string(segments.info().segments.size()) + " segments");
  kith::Index flat("Flat", kith::IndexParams{.metric = kith::Metric::sqeuclidean});
  flat.add(kith::MatrixView(data.data(), kParts * kPart, kCols));
  beside(
      "exact, no index, 100 queries", "Flat of these rows", 9, [&] { (void)segments.search(asked); },
      [&] { (void)flat.search(asked); });
  beside(
      "exact, no index, one query", "Flat of these rows", 21, [&] { (void)segments.search(one); },
      [&] { (void)flat.search(one); });
}

void Bench::filters() const {
  constexpr int64_t kCols = 384;
  constexpr int64_t kParts = 10'000;
  const int64_t rows = settings_.rows;
  constexpr int64_t kBatch = 100'000;
  kith::Collection c = made(settings_.folder + "/filters", kCols, "Flat", true);
  for (int64_t first = 0; first < rows; first += kBatch) {
    const std::vector<float> data = random_rows(std::min(kBatch, rows - first), kCols, static_cast<uint64_t>(first));
    add(c, data.data(), static_cast<int64_t>(data.size()) / kCols, kCols, first, kParts);
  }
  c.compact();
  const std::vector<float> query = random_rows(1, kCols, 2);
  const kith::MatrixView one(query.data(), 1, kCols);
  for (int i = 0; i < 20; ++i) (void)c.search(one);  // until it has its copy
  int used = 0;
  for (const auto& [keeps, bound] : {std::pair{"10 %", 1000}, std::pair{"1 %", 100}, std::pair{"0.01 %", 1}}) {
    kith::CollectionSearchParams params;
    params.filter.where = "part < ?";
    const std::string name = std::string("where keeping ") + keeps;
    beside(name + ", first use, one query", "exact search of all", 9, [&] {
      // Parameters that were not used before: nothing is kept for them.
      params.filter.params = {static_cast<double>(bound) - 0.5 + ++used * 1e-6};
      (void)c.search(one, params);
    }, [&] { (void)c.search(one); });
    kith::ItemFilter kept;
    kept.where = params.filter.where;
    kept.params = params.filter.params;
    const kith::ItemIds ids = c.ids(kept);
    kith::CollectionSearchParams by_ids;
    by_ids.filter.ids = ids;
    beside(
        name + ", repeated, one query", "ids=", 9, [&] { (void)c.search(one, params); },
        [&] { (void)c.search(one, by_ids); });
  }
}

void Bench::tenants() const {
  constexpr int64_t kCols = 128;
  constexpr int64_t kTenants = 1000;
  const int64_t rows = settings_.rows;
  kith::Collection c = made(settings_.folder + "/tenants", kCols, "Flat", true);
  constexpr int64_t kBatch = 250'000;
  for (int64_t first = 0; first < rows; first += kBatch) {
    const std::vector<float> data = random_rows(std::min(kBatch, rows - first), kCols, static_cast<uint64_t>(first));
    add(c, data.data(), static_cast<int64_t>(data.size()) / kCols, kCols, first, kTenants);
  }
  c.compact();
  const std::vector<float> queries = random_rows(kTenants, kCols, 2);
  const kith::MatrixView asked(queries.data(), kTenants, kCols);
  const kith::MatrixView one(queries.data(), 1, kCols);
  for (int i = 0; i < 20; ++i) (void)c.search(one);
  kith::CollectionSearchParams each;
  each.filter.where = "part = ?";
  for (int64_t q = 0; q < kTenants; ++q) each.filter.params_of_queries.push_back({q});
  kith::CollectionSearchParams same = each;
  same.filter.params_of_queries.assign(static_cast<size_t>(kTenants), {int64_t{5}});
  beside(
      "1,000 queries of 1,000 tenants", "of one tenant", 5, [&] { (void)c.search(asked, each); },
      [&] { (void)c.search(asked, same); });
  // What bounds it: all rows come from memory once, in no order that a processor foresees.
  const std::vector<float> all = random_rows(rows, kCols);
  float sum = 0;
  const auto look_at = [&](int64_t row) {
    const float* const values = &all[static_cast<size_t>(row * kCols)];
    for (int64_t i = 0; i < kCols; i += 16) sum += values[i];  // a value of each line
  };
  beside(
      "1,000 queries of 1,000 tenants", "their rows read once, a tenant at a time", 5,
      [&] { (void)c.search(asked, each); },
      [&] {
        constexpr int64_t kAhead = 8;
        for (int64_t q = 0; q < kTenants; ++q) {
          for (int64_t row = q; row < rows; row += kTenants) {
            const int64_t next = std::min(row + kAhead * kTenants, rows - 1);
            for (int64_t i = 0; i < kCols; i += 16) __builtin_prefetch(&all[static_cast<size_t>(next * kCols + i)]);
            look_at(row);
          }
        }
      });
  beside(
      "1,000 queries of 1,000 tenants", "their rows read once, in their order", 5, [&] { (void)c.search(asked, each); },
      [&] {
        for (int64_t row = 0; row < rows; ++row) look_at(row);
      });
  if (sum == 0.5f) report_.note("a sum of one half");  // so that they are read
  kith::CollectionSearchParams loop;
  loop.filter.where = each.filter.where;
  beside("1,000 queries of 1,000 tenants", "1,000 calls of one query", 3, [&] { (void)c.search(asked, each); }, [&] {
    for (int64_t q = 0; q < kTenants; ++q) {
      loop.filter.params = {q};
      (void)c.search(asked.slice(q, 1), loop);
    }
  });
}

int64_t disk_bytes(const std::string& folder) {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::error_code gone;
    if (entry.is_regular_file(gone)) bytes += static_cast<int64_t>(entry.file_size(gone));
  }
  return bytes;
}

void Bench::upserts() const {
  constexpr int64_t kCols = 128;
  constexpr int64_t kIds = 100'000;
  constexpr int64_t kUpserts = 1'000'000;
  const std::vector<float> rows = random_rows(1000, kCols);
  const std::string path = settings_.folder + "/upserts";
  kith::Collection c = made(path, kCols, "Flat", false, kith::SyncMode::later);
  std::mt19937_64 random(3);
  std::set<int64_t> known;
  double worst = 0;
  int64_t most = 0;
  const Seconds all = seconds_of([&] {
    for (int64_t i = 0; i < kUpserts; ++i) {
      kith::Items items;
      items.vectors = kith::MatrixView(&rows[static_cast<size_t>(i % 1000 * kCols)], 1, kCols);
      items.ids = {static_cast<int64_t>(random() % kIds)};
      c.upsert(items);
      if (i % 5000 != 4999) continue;
      const int64_t bytes = disk_bytes(path);
      most = std::max(most, bytes);
      if (c.size() > kIds * 9 / 10)
        worst = std::max(worst, static_cast<double>(bytes) / static_cast<double>(c.size() * kCols * 4));
    }
  });
  const int64_t live = c.size() * (kCols * 4 + 8);
  const int64_t before = disk_bytes(path);
  c.compact();
  const int64_t after = disk_bytes(path);
  const auto megabytes = [](int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  report_.row({.name = "1M upserts of 100,000 ids",
               .shape = std::to_string(kUpserts) + " x " + std::to_string(kCols),
               .ms = 1e3 * all.wall,
               .runs = 1,
               .clock = "wall",
               .figures = {{"us_each", 1e6 * all.wall / static_cast<double>(kUpserts)},
                           {"processor_us_each", 1e6 * all.processor / static_cast<double>(kUpserts)},
                           {"most_disk_mb", megabytes(most)},
                           {"most_over_live_vectors", worst},
                           {"disk_mb", megabytes(before)},
                           {"compacted_mb", megabytes(after)},
                           {"compacted_over_live", static_cast<double>(after) / static_cast<double>(live)}}});
}

void Bench::open() const {
  const int64_t rows = settings_.rows;
  const int64_t cols = settings_.cols;
  const std::string path = settings_.folder + "/open";
  {
    kith::Collection c = made(path, cols, "IVF1024,SQ8");
    const int64_t batch = 250'000;
    for (int64_t first = 0; first < rows; first += batch) {
      const std::vector<float> data = random_rows(std::min(batch, rows - first), cols, static_cast<uint64_t>(first));
      add(c, data.data(), static_cast<int64_t>(data.size()) / cols, cols, first);
    }
    c.compact();
  }
  const std::vector<float> query = random_rows(1, cols, 2);
  const kith::MatrixView one(query.data(), 1, cols);
  constexpr int kTurns = 9;
  Seconds opened = kNotMeasured;
  Seconds searched = kNotMeasured;
  for (int i = 0; i < kTurns; ++i) {
    std::optional<kith::Collection> c;
    opened = least_of(
        opened, seconds_of([&] { c = kith::Collection::open(path, {.mode = kith::OpenMode::read}); }));
    searched = least_of(searched, seconds_of([&] { (void)c->search(one); }));
  }
  const std::string shape = std::to_string(rows) + " x " + std::to_string(cols);
  for (const auto& [name, took] : {std::pair{"open", opened}, std::pair{"first search", searched}}) {
    report_.row({.name = std::string("IVF1024,SQ8, ") + name,
                 .shape = shape,
                 .ms = 1e3 * took.wall,
                 .runs = kTurns,
                 .clock = "wall",
                 .figures = {{"processor_ms", 1e3 * took.processor}}});
  }
}

void Bench::run(const std::string& wanted) {
  const std::vector<std::pair<std::string, void (Bench::*)() const>> parts{
      {"writes", &Bench::writes},   {"searches", &Bench::searches}, {"segments", &Bench::segments},
      {"filters", &Bench::filters}, {"tenants", &Bench::tenants},   {"upserts", &Bench::upserts},
      {"open", &Bench::open}};
  settings_.folder += "/kith-collection-bench";
  for (const auto& [name, part] : parts) {
    if (!wanted.empty() && ("," + wanted + ",").find("," + name + ",") == std::string::npos) continue;
    std::filesystem::remove_all(settings_.folder);
    std::filesystem::create_directories(settings_.folder);
    (this->*part)();
    std::filesystem::remove_all(settings_.folder);
  }
}

void run(const kith::bench::Options& options, kith::bench::Report& report) {
  Settings settings;
  settings.folder = options.text("--folder");
  if (settings.folder.empty()) throw kith::InvalidArgument("--folder DIR says where collections are made");
  settings.rows = options.number("--rows", settings.rows);
  settings.cols = options.number("--cols", settings.cols);
  settings.graph = options.number("--graph", 0) != 0;
  Bench(settings, report).run(options.text("--parts"));
}

const kith::bench::Registered known({
    .name = "collection",
    .about = "collections beside what bounds them",
    .options = {"--folder", "--parts", "--rows", "--cols", "--graph"},
    .run = run,
});

}  // namespace
