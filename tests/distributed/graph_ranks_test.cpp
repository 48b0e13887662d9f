// Graphs by several ranks, threads here, and by devices of one process: the bytes of one.
#include <kith/distributed.hpp>
#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/vector_file.hpp>

#include "cluster/fitted.hpp"
#include "io/temporary_directory.hpp"
#include "ranks/shared_calls.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;

class GraphOnRanks : public ::testing::Test {
 protected:
  GraphOnRanks() {
    const auto rows = make_floats(Shape::near_duplicates, 3000, 10, 3);
    write_vectors(folder_.path("rows.npy"), rows.view());
    params_.k = 7;
    params_.method = GraphMethod::cells;
    const KnnGraph graph = knn_graph(rows.view(), params_, cpu_resources(2));
    expected_ = hash_graph(graph);
  }
  VectorFile rows() const { return VectorFile(folder_.path("rows.npy")); }
  GraphHashes hashes(const std::string& name) const { return graph_folder_info(folder_.path(name)).hashes; }

  const testing::TemporaryDirectory folder_;
  KnnGraphParams params_;
  GraphHashes expected_;
};

TEST_F(GraphOnRanks, AnyNumberOfRanksHasTheBytesOfOne) {
  for (const int size : {1, 2, 4}) {
    const std::string name = "graph" + std::to_string(size);
    run_ranks(size, [&](Communicator& ranks) {
      const GraphReport report =
          knn_graph_folder(ranks, rows(), folder_.path(name), params_, GraphWork(), cpu_resources(1));
      EXPECT_EQ(report.method, "cells");
    });
    EXPECT_EQ(hashes(name), expected_) << size << " ranks";
    EXPECT_FALSE(std::filesystem::exists(folder_.path(name) + "/work")) << size << " ranks";
  }
}

TEST_F(GraphOnRanks, DevicesShareTheWorkOfAFolder) {
  for (const char* parts : {"cpu/2", "cpu/3"}) {
    const GraphReport report = knn_graph_folder(rows(), folder_.path("graph"), params_, shared::on(parts));
    EXPECT_EQ(report.method, "cells");
    EXPECT_EQ(hashes("graph"), expected_) << parts;
    std::filesystem::remove_all(folder_.path("graph"));
  }
  params_.method = GraphMethod::exact;  // by the first device
  const GraphReport report = knn_graph_folder(rows(), folder_.path("exact"), params_, shared::on("cpu/2"));
  EXPECT_EQ(report.method, "exact");
}

// By other methods than cells rank 0 writes what all have in memory.
TEST_F(GraphOnRanks, OtherMethodsAreWrittenByTheFirst) {
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::ggm}) {
    params_.method = method;
    const GraphHashes alone = hash_graph(knn_graph(rows(), params_, cpu_resources(2)));
    const std::string name(name_of(method));
    run_ranks(3, [&](Communicator& ranks) {
      const GraphReport report = knn_graph_folder(ranks, rows(), folder_.path(name), params_, {}, cpu_resources(1));
      EXPECT_EQ(report.method, name);
    });
    EXPECT_EQ(hashes(name), alone) << name;
  }
}

TEST_F(GraphOnRanks, WhatOneThrowsAllThrow) {
  const auto message = [&](const auto& call) {
    try {
      run_ranks(3, call);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  // Its file is another: the others wait for its steps when it fails.
  const auto short_file = make_floats(Shape::gaussian, 3000, 10, 4);
  auto broken = short_file;
  broken.values[10 * 2900 + 4] = NAN;
  write_vectors(folder_.path("broken.npy"), broken.view());
  EXPECT_THAT(message([&](Communicator& ranks) {
                const VectorFile own = ranks.rank() == 2 ? VectorFile(folder_.path("broken.npy")) : rows();
                knn_graph_folder(ranks, own, folder_.path("none"), params_, GraphWork(), cpu_resources(1));
              }),
              HasSubstr("rank 2 on "));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("none/report.json")));
  EXPECT_THAT(message([&](Communicator& ranks) {
                KnnGraphParams other = params_;
                if (ranks.rank() == 1) other.k = 8;
                knn_graph_folder(ranks, rows(), folder_.path("none"), other, GraphWork(), cpu_resources(1));
              }),
              AllOf(HasSubstr("k = 8"), HasSubstr("all ranks must be given the same")));
  params_.method = GraphMethod::ggm;
  GraphWork kept;
  kept.keep = true;
  EXPECT_THAT(message([&](Communicator& ranks) {
                knn_graph_folder(ranks, rows(), folder_.path("none"), params_, kept, cpu_resources(1));
              }),
              HasSubstr("by the method cells alone, not by ggm"));
  // The next run goes on.
  params_.method = GraphMethod::cells;
  run_ranks(2, [&](Communicator& ranks) {
    knn_graph_folder(ranks, rows(), folder_.path("later"), params_, GraphWork(), cpu_resources(1));
  });
  EXPECT_EQ(hashes("later"), expected_);
}

void expect_same_in_memory(const MatrixView& rows, const KnnGraphParams& params, std::initializer_list<int> sizes) {
  const KnnGraph expected = knn_graph(rows, params, cpu_resources(2));
  const int64_t found = rows.rows() * params.k;
  for (const int size : sizes) {
    run_ranks(size, [&](Communicator& ranks) {
      const KnnGraph graph = knn_graph(ranks, rows, params, cpu_resources(1));
      EXPECT_EQ(shared::found_in(graph.ids(), graph.distances(), found),
                shared::found_in(expected.ids(), expected.distances(), found))
          << name_of(params.method) << ", " << name_of(params.metric) << ", " << rows.rows() << " rows, rank "
          << ranks.rank() << " of " << size;
      EXPECT_EQ(graph.report().method, expected.report().method);
      EXPECT_EQ(shared::told_by(graph.report()), shared::told_by(expected.report())) << name_of(params.method) << ", " << size;
    });
  }
}

TEST(GraphInMemoryOnRanks, HasTheBytesOfOne) {
  for (const Shape shape : {Shape::near_duplicates, Shape::all_equal}) {
    for (const int64_t count : {3, 40, 2500}) {
      const auto rows = make_floats(shape, count, 10, 3);
      for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
        for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells, GraphMethod::automatic}) {
          expect_same_in_memory(rows.view(), {.k = 6, .metric = metric, .method = method}, {1, 2, 5});
        }
      }
    }
  }
}

TEST(GraphInMemoryOnRanks, OtherMethodsAndBytes) {
  const auto rows = make_floats(Shape::gaussian, 700, 8, 3);
  expect_same_in_memory(rows.view(), {.k = 6, .method = GraphMethod::nn_descent}, {3});
  expect_same_in_memory(rows.view(), {.k = 6, .method = GraphMethod::nn_descent, .start = GraphStart::random}, {3});
  expect_same_in_memory(rows.view(), {.k = 6, .method = GraphMethod::ggm, .shards = 3}, {3});
  const auto bytes = reference::make_bytes(2000, 24, 5, 9);
  expect_same_in_memory(bytes.view(), {.k = 6, .method = GraphMethod::cells}, {4});
  expect_same_in_memory(bytes.view(), {.k = 6, .method = GraphMethod::cells, .probes = 3}, {2});
}

// More cells than a row ranks: it ranks those near its own.
TEST(SlowGraphInMemoryOnRanks, ManyCells) {
  const auto rows = make_floats(Shape::gaussian, 17500, 2, 3);
  expect_same_in_memory(rows.view(), {.k = 3, .method = GraphMethod::cells, .recall = 0.9, .cells = 17000}, {2});
}

TEST(GraphInMemoryOnRanks, WhatOneThrowsAllThrow) {
  auto rows = make_floats(Shape::gaussian, 900, 8, 1);
  const auto message = [&](const KnnGraphParams& params, int other) {
    try {
      run_ranks(3, [&](Communicator& ranks) {
        auto own = rows;
        if (ranks.rank() == other) own.values[8 * 700 + 1] = NAN;
        knn_graph(ranks, own.view(), params, cpu_resources(1));
      });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells}) {
    EXPECT_THAT(message({.k = 4, .method = method}, 1), AllOf(HasSubstr("rank 1 on "), HasSubstr("700")));
  }
  // Cancelled by one of them, at any time.
  for (const int times : {0, 5, 50, 200}) {
    run_ranks(2, [&](Communicator& ranks) {
      std::atomic<int> asked{0};
      Resources resources = cpu_resources(1);
      if (ranks.rank() == 1) resources = resources.with_cancel({}, [&] { return ++asked > times; });
      try {
        knn_graph(ranks, rows.view(), {.k = 4, .method = GraphMethod::cells}, resources);
        EXPECT_GT(times, 5);
      } catch (const Cancelled&) {
      }
    });
  }
  // A limit that one rank alone has: the others wait for its lists when it is refused.
  EXPECT_THROW(run_ranks(2, [&](Communicator& ranks) {
                 ResourceOptions options;
                 options.threads = 1;
                 if (ranks.rank() == 1) options.host_memory_limit = 1000;
                 knn_graph(ranks, rows.view(), {.k = 4, .method = GraphMethod::cells}, Resources(options));
               }),
               OutOfMemory);
}

}  // namespace
}  // namespace kith
