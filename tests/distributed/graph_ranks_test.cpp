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

#include <filesystem>
#include <string>

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
  EXPECT_THAT(message([&](Communicator& ranks) {
                knn_graph_folder(ranks, rows(), folder_.path("none"), params_, GraphWork(), cpu_resources(1));
              }),
              HasSubstr("by the method cells alone, not by ggm"));
  // The next run goes on.
  params_.method = GraphMethod::cells;
  run_ranks(2, [&](Communicator& ranks) {
    knn_graph_folder(ranks, rows(), folder_.path("later"), params_, GraphWork(), cpu_resources(1));
  });
  EXPECT_EQ(hashes("later"), expected_);
}

}  // namespace
}  // namespace kith
