// Indexes by several ranks: the file, and the results, of one process.
#include <kith/distributed.hpp>
#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "cluster/fitted.hpp"
#include "io/temporary_directory.hpp"
#include "ranks/shared_calls.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;

IndexParams params_for(int64_t rows) {
  IndexParams params;
  params.expected_rows = rows;
  return params;
}

TEST(IndexOnRanks, WritesTheFileOfOneProcess) {
  const testing::TemporaryDirectory folder;
  for (const int64_t count : {3, 900}) {
    const auto rows = make_floats(Shape::near_duplicates, count, 16, 1);
    const auto training = make_floats(Shape::near_duplicates, 800, 16, 2);
    write_vectors(folder.path("rows.npy"), rows.view());
    write_vectors(folder.path("training.npy"), training.view());
    const VectorFile base(folder.path("rows.npy"));
    const VectorFile learned(folder.path("training.npy"));
    for (const char* factory : {"Flat", "IVF20,PQ4x4", "OPQ4,IVF16,SQ8"}) {
      for (const bool named : {false, true}) {
        std::vector<int64_t> ids(static_cast<size_t>(named ? count : 0));
        for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(7 * i + 3);
        const VectorView<const int64_t> given{ids.data(), static_cast<int64_t>(ids.size()), {}};
        Index plain(factory, params_for(count));
        plain.train(learned, cpu_resources(2));
        plain.add(base, given, cpu_resources(2));
        plain.save(folder.path("plain.kith"));
        for (const int size : {1, 4}) {
          run_ranks(size, [&](Communicator& ranks) {
            Index index(factory, params_for(count));
            build_index(index, ranks, {base, given, &learned}, folder.path("shared.kith"), cpu_resources(1));
          });
          EXPECT_EQ(folder.read("shared.kith"), folder.read("plain.kith"))
              << factory << ", " << count << " rows, " << size << " ranks" << (named ? ", ids" : "");
        }
      }
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(""))) {
    EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr(".part")));
  }
}

// Two adds, of arrays and of a file: the second one of fewer rows than ranks.
TEST(IndexOnRanks, AddsGiveTheIndexOfOneProcess) {
  const testing::TemporaryDirectory folder;
  const auto rows = make_floats(Shape::near_duplicates, 700, 16, 1);
  write_vectors(folder.path("few.npy"), rows.view().slice(600, 3));
  const VectorFile few(folder.path("few.npy"));
  std::vector<int64_t> numbers(603);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(5 * ((i * 7) % 603) + 2);
  for (const char* factory : {"Flat", "PQ4x4", "OPQ4,IVF16,SQ8", "IVF20,Flat", "IVF20,PQ4x4,RFlat", "Graph16"}) {
    for (const bool named : {false, true}) {
      const auto ids_of = [&](int64_t first, int64_t count) {
        return VectorView<const int64_t>{named ? numbers.data() + first : nullptr, named ? count : 0, {}};
      };
      Index trained(factory, params_for(700));
      trained.train(rows.view(), cpu_resources(2));
      Index plain = trained.clone();
      plain.add(rows.view().slice(0, 600), ids_of(0, 600), Ownership::copy, cpu_resources(2));
      plain.add(few, ids_of(600, 3), cpu_resources(2));
      plain.save(folder.path("plain.kith"));
      for (const int size : {1, 2, 4}) {
        run_ranks(size, [&](Communicator& ranks) {
          Index index = trained.clone();
          add(index, ranks, rows.view().slice(0, 600), ids_of(0, 600), cpu_resources(1));
          add(index, ranks, few, ids_of(600, 3), cpu_resources(1));
          const std::string path = folder.path("rank-" + std::to_string(ranks.rank()) + ".kith");
          index.save(path);
          EXPECT_EQ(folder.read(std::filesystem::path(path).filename().string()), folder.read("plain.kith"))
              << factory << ", rank " << ranks.rank() << " of " << size << (named ? ", ids" : "");
        });
      }
    }
  }
}

TEST(IndexOnRanks, AnAddThatOneRankRefusesAddsNothing) {
  auto rows = make_floats(Shape::gaussian, 90, 8, 1);
  Index trained("IVF4,SQ8");
  trained.train(rows.view());
  rows.values[8 * 70 + 1] = NAN;
  std::vector<int64_t> ids(90);
  std::iota(ids.begin(), ids.end(), 0);
  const auto message = [&](const MatrixView& added, VectorView<const int64_t> names, bool same) {
    std::string text = "none";
    run_ranks(3, [&](Communicator& ranks) {
      Index index = trained.clone();
      try {
        add(index, ranks, same || ranks.rank() < 2 ? added : added.slice(0, 5), names, cpu_resources(1));
      } catch (const Error& error) {
        if (ranks.rank() == 1) text = error.what();
      }
      EXPECT_EQ(index.size(), 0);
    });
    return text;
  };
  EXPECT_THAT(message(rows.view(), {}, true), AllOf(HasSubstr("rank 2 on "), HasSubstr("70")));
  EXPECT_THAT(message(rows.view().slice(0, 50), {}, false), HasSubstr("all ranks must be given the same"));
  ids[40] = 3;
  EXPECT_THAT(message(rows.view().slice(0, 50), {ids.data(), 50, {}}, true), HasSubstr("id 3 is given to two rows"));
  run_ranks(2, [&](Communicator& ranks) {
    Index untrained("IVF4,SQ8");
    EXPECT_THROW(add(untrained, ranks, rows.view().slice(0, 50)), InvalidState);
  });
}

TEST(IndexOnRanks, SearchesShareTheQueries) {
  const auto rows = make_floats(Shape::near_duplicates, 1500, 16, 1);
  const auto asked = make_floats(Shape::near_duplicates, 23, 16, 2);
  for (const char* factory : {"Flat", "IVF20,PQ4x4"}) {
    Index index(factory);
    index.train(rows.view(), cpu_resources(2));
    index.add(rows.view(), Ownership::copy, cpu_resources(2));
    for (const int64_t count : {1, 23}) {
      const MatrixView queries = asked.view().slice(0, count);
      const shared::Found expected = shared::found_in(index.search(queries, {.k = 9}, cpu_resources(2)));
      for (const int size : {1, 2, 4}) {
        run_ranks(size, [&](Communicator& ranks) {
          EXPECT_EQ(shared::found_in(search(index, ranks, queries, {.k = 9}, cpu_resources(1))), expected)
              << factory << ", " << count << " queries, rank " << ranks.rank() << " of " << size;
        });
      }
    }
  }
}

TEST(IndexOnRanks, WhatOneThrowsAllThrow) {
  const testing::TemporaryDirectory folder;
  auto rows = make_floats(Shape::gaussian, 900, 8, 1);
  write_vectors(folder.path("good.npy"), rows.view());
  rows.values[8 * 700 + 1] = NAN;
  write_vectors(folder.path("bad.npy"), rows.view());
  const VectorFile good(folder.path("good.npy"));
  const VectorFile bad(folder.path("bad.npy"));
  const auto message = [&](const std::string& factory, const VectorFile& base, bool same) {
    try {
      run_ranks(3, [&](Communicator& ranks) {
        IndexParams params;
        if (!same && ranks.rank() == 2) params.seed = 5;
        Index index(factory, params);
        build_index(index, ranks, {base, {}, &good}, folder.path("none.kith"), cpu_resources(1));
      });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(message("IVF4,SQ8", bad, true), AllOf(HasSubstr("rank 2 on "), HasSubstr("700")));
  EXPECT_THAT(message("IVF4,SQ8", good, false), HasSubstr("all ranks must be given the same"));
  EXPECT_THAT(message("Graph16", good, true), HasSubstr("one process builds"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("none.kith")));
  Index filled("Flat");
  filled.add(rows.view().slice(0, 10));
  run_ranks(2, [&](Communicator& ranks) {
    Index own = filled.clone();
    EXPECT_THROW(build_index(own, ranks, {good}, folder.path("none.kith")), InvalidState);
  });
}

}  // namespace
}  // namespace kith
