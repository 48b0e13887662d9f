// Eight threads search while one adds and removes. Every answer must be that of a version which was published: what the
// same changes give when nothing else runs, and no thread may see an older version after a newer one.
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

constexpr int64_t kSharedCols = 8;
constexpr int64_t kStep = 60;  // rows of an add
constexpr int kReaders = 8;

// What a search found, all of it.
std::string answer(const Index& index, const MatrixView& queries) {
  const Neighbors found =
      index.search(queries, taken_by(index, {.k = 5, .probes = 3, .refine = 2}), on_cpu(kNoLimit, 1));
  const auto count = static_cast<size_t>(found.queries() * found.k());
  std::string bytes(reinterpret_cast<const char*>(found.ids()), count * sizeof(int64_t));
  return bytes.append(reinterpret_cast<const char*>(found.distances()), count * sizeof(float));
}

// Adds three times, then removes every third of the rows added first.
void change(Index& index, const MatrixView& rows, int64_t step) {
  if (step % 4 < 3) {
    const int64_t first = step * 37 % (rows.rows() - kStep);
    index.add(rows.slice(first, kStep), Ownership::copy, on_cpu(kNoLimit, 1));
    return;
  }
  std::vector<int64_t> gone;
  for (int64_t id = step * kStep / 4; id < step * kStep; id += 3) gone.push_back(id);
  index.remove(view(gone), on_cpu(kNoLimit, 1));
}

void search_while_it_changes(const char* factory, int64_t steps) {
  SCOPED_TRACE(factory);
  const auto rows = make_floats(Shape::gaussian, 2000, kSharedCols, 1);
  const auto queries = make_floats(Shape::gaussian, 6, kSharedCols, 2);
  Index trained(factory);
  trained.train(rows.view(), on_cpu());
  trained.add(rows.view().slice(0, kStep), Ownership::copy, on_cpu());

  std::vector<std::string> versions;
  Index alone = trained.to(Device::automatic());
  versions.push_back(answer(alone, queries.view()));
  for (int64_t step = 0; step < steps; ++step) {
    change(alone, rows.view(), step);
    versions.push_back(answer(alone, queries.view()));
  }

  Index shared = trained.to(Device::automatic());
  std::atomic<bool> over{false};
  std::atomic<int64_t> searches{0};
  std::atomic<int> unknown{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&] {
      size_t oldest = 0;  // that this thread may still see
      for (bool last = false; !last;) {
        last = over.load();
        const std::string found = answer(shared, queries.view());
        while (oldest < versions.size() && versions[oldest] != found) ++oldest;
        ++searches;
        if (oldest == versions.size()) {
          ++unknown;
          return;
        }
      }
    });
  }
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t before = searches.load();
    change(shared, rows.view(), step);
    while (searches.load() == before && unknown.load() == 0) std::this_thread::yield();
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(unknown.load(), 0) << "answers of no version, or of one that was gone";
  EXPECT_EQ(answer(shared, queries.view()), versions.back());
}

TEST(IndexConcurrency, EveryAnswerIsThatOfAVersion) {
  for (const char* const factory : {"Flat", "IVF8,PQ4x4", "RR,IVF8,SQ8,RFlat"}) search_while_it_changes(factory, 12);
}

TEST(SlowIndexConcurrency, EveryAnswerIsThatOfAVersion) {
  for (const char* const factory : {"Flat", "IVF8,Flat", "IVF8,PQ4x4", "PQ4", "PCA4,Flat", "RR,IVF8,SQ8,RFlat"}) {
    search_while_it_changes(factory, 150);
  }
}

// Searches, saving, info and copies beside a writer, as a service has them.
TEST(IndexConcurrency, EverythingThatReadsMayRunBesideAWriter) {
  const auto rows = make_floats(Shape::gaussian, 2000, kSharedCols, 1);
  Index index("IVF8,SQ8");
  index.train(rows.view(), on_cpu());
  index.add(rows.view().slice(0, kStep), Ownership::copy, on_cpu());
  Index other = index.to(Device::automatic());
  std::atomic<bool> over{false};
  std::vector<std::thread> readers;
  const auto until_over = [&](auto call) {
    readers.emplace_back([&over, call] {
      do call();
      while (!over.load());
    });
  };
  until_over([&] { EXPECT_GE(index.info().size, kStep); });
  until_over([&] { EXPECT_EQ(index.to(Device::cpu()).dimension(), kSharedCols); });
  until_over([&] { EXPECT_EQ(reconstructed(index, {0}).size(), static_cast<size_t>(kSharedCols)); });
  until_over([&] { EXPECT_GE(index.range_search(rows.view().slice(0, 2), {.radius = 1.0F}, on_cpu()).size(), 1); });
  for (int64_t i = 0; i < 8; ++i) {
    index.add(rows.view().slice(i * kStep, kStep), Ownership::copy, on_cpu());
    index.merge(other, {.shift_ids = true}, on_cpu());
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(index.size(), 17 * kStep);
}

}  // namespace
}  // namespace kith
