// Parts of one GPU share a call and have the bytes of one device; and what changes devices is asked for its owner.
#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/vector_file.hpp>

#include "cluster/kmeans_fit.hpp"
#include "cluster/shared/kmeans_devices.hpp"
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "io/temporary_directory.hpp"
#include "ranks/parts.hpp"
#include "ranks/shared_calls.hpp"
#include "ranks/transfer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kith::shared {
namespace {

using reference::make_floats;
using reference::Shape;

// By all parts, also of rows that the first could keep by itself.
Fitted fitted_by_all(const Resources& resources, const MatrixView& rows, const KMeansParams& params,
                     const KMeansInput& input = {}) {
  KMeansModel model;
  const MutualReads reads(resources.parts());
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const KMeansSharedByDevices sharing(ranks, reads, rows.space().host_readable());
    KMeansModel own = fit_kmeans(params, rows_of(rows), input, part, &sharing);
    if (ranks.rank() == 0) model = std::move(own);
  });
  KMeansSnapshot snapshot;
  snapshot.centres = model.centres.view();
  snapshot.counts = {model.counts.data(), model.counts.size(), {}};
  snapshot.labels = {model.labels.data(), model.labels.size(), {}};
  snapshot.objective = model.objective;
  snapshot.history = model.history;
  snapshot.iterations = model.iterations;
  return taken(snapshot);
}

class CudaParts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << "no GPU";
  }
};

TEST_F(CudaParts, ExactSearchHasTheBytesOfOneDevice) {
  for (const char* parts : {"cuda:0/3", "cuda:0/5", "cpu,cuda:0/2", "cuda:all"}) expect_knn(on("cpu"), on(parts));
}

TEST_F(CudaParts, KMeansAndEncodingHaveTheBytesOfOneDevice) {
  expect_kmeans(on("cpu"), on("cuda:0/3"));
  expect_encoding(on("cpu"), on("cuda:0/3"));
}

TEST_F(CudaParts, EveryKindOfKMeansHasTheBytesOfOneDevice) {
  for (const char* parts : {"cuda:0/3", "cuda:0/2"}) {
    expect_kinds_of_kmeans(on("cpu"), [&](const MatrixView& rows, const KMeansParams& params, const KMeansInput& input) {
      return fitted_by_all(on(parts), rows, params, input);
    });
  }
}

// Small, for memcheck.
TEST_F(CudaParts, SmallKMeans) {
  const auto rows = make_floats(Shape::gaussian, 2600, 8, 4);
  KMeansParams params;
  params.clusters = 9;
  params.iterations = 3;
  EXPECT_EQ(fitted_by_all(on("cuda:0/3"), rows.view(), params), fitted_on(on("cpu"), rows.view(), params));
}

// Rows that do not fit stay on the host, and come twice in a pass; rows in the GPU's memory are read there.
TEST_F(CudaParts, KMeansWhereverItsRowsAre) {
  const auto rows = make_floats(Shape::gaussian, 60000, 32, 4);
  KMeansParams params;
  params.clusters = 70;
  params.iterations = 3;
  const Fitted expected = fitted_on(on("cuda:0"), rows.view(), params);
  EXPECT_EQ(fitted_on(on("cpu"), rows.view(), params), expected);
  const DeviceMatrix there(rows.view());
  EXPECT_EQ(fitted_by_all(on("cuda:0/3"), there.view(), params), expected);
  ResourceOptions options;
  options.devices = parse_devices("cuda:0/3");
  options.device_memory_limit = int64_t{9} << 20;  // less than the rows and their operands
  EXPECT_EQ(fitted_on(Resources(options), rows.view(), params), expected);
  auto broken = make_floats(Shape::gaussian, 60000, 32, 4);
  broken.row(55555)[3] = NAN;
  for (const double tol : {0.0, 1e-4}) {
    params.tol = tol;
    try {
      (void)fitted_by_all(on("cuda:0/3"), broken.view(), params);
      ADD_FAILURE() << "nothing was refused";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("55555"));
    }
  }
}

TEST_F(CudaParts, ListsAreRankedOnceForManyQueries) {
  expect_many_queries(on("cpu"), parse_devices("cuda:0/3"));
  const auto rows = make_floats(Shape::gaussian, 4000, 16, 1);
  const auto asked = make_floats(Shape::gaussian, 200, 16, 2);
  Index index("IVF20,PQ4x4");
  index.train(rows.view(), on("cpu"));
  index.add(rows.view(), Ownership::copy, on("cpu"));
  const Found expected = found_in(index.search(asked.view(), {.k = 5, .probes = 3}, on("cpu")));
  const DeviceMatrix queries(asked.view());
  const DeviceResult result(200, 5);
  index.to({parse_devices("cuda:0/3"), 1}).search(queries.view(), result.view, {.k = 5, .probes = 3});
  std::vector<int64_t> ids(1000);
  std::vector<float> distances(1000);
  result.ids.read(ids.data());
  result.distances.read(distances.data());
  EXPECT_EQ(found_in(ids.data(), distances.data(), 1000), expected);
}

// An index that fits no part of the limit as a whole.
TEST_F(CudaParts, ShardsNeedNotFitOnePart) {
  const auto rows = make_floats(Shape::gaussian, 100000, 32, 1);
  const auto asked = make_floats(Shape::gaussian, 20, 32, 2);
  Index index("IVF16,Flat");
  index.train(rows.view().slice(0, 5000), on("cpu"));
  index.add(rows.view(), Ownership::copy, on("cpu"));
  const SearchParams params{.k = 5, .probes = 4};
  const Found expected = found_in(index.search(asked.view(), params, on("cpu")));
  ResourceOptions options;
  options.device_memory_limit = int64_t{40} << 20;  // the rows take 12.8 MB and as much again to search
  const Index shards = index.to({parse_devices("cuda:0/2"), 1});
  EXPECT_EQ(found_in(shards.search(asked.view(), params, Resources(options))), expected);
}

TEST_F(CudaParts, GraphsInFoldersShareTheWork) {
  const kith::testing::TemporaryDirectory folder;
  const auto rows = make_floats(Shape::near_duplicates, 5000, 16, 3);
  write_vectors(folder.path("rows.npy"), rows.view());
  const VectorFile file(folder.path("rows.npy"));
  KnnGraphParams params;
  params.k = 6;
  params.method = GraphMethod::cells;
  const GraphHashes expected = hash_graph(knn_graph(rows.view(), params, on("cpu")));
  for (const char* parts : {"cuda:0", "cuda:0/3", "cuda:0,cpu"}) {
    const std::string name = folder.path("graph");
    (void)knn_graph_folder(file, name, params, on(parts));
    EXPECT_EQ(graph_folder_info(name).hashes, expected) << parts;
    std::filesystem::remove_all(name);
  }
}

TEST_F(CudaParts, IndexesHaveTheBytesOfOneDevice) {
  for (const char* factory : {"Flat", "IVF20,Flat", "PQ4x4", "OPQ4,IVF20,PQ4x4,RFlat"}) {
    expect_index(factory, on("cpu"), on("cuda:0/3"));
  }
  expect_index("IVF20,SQ8", on("cpu"), on("cuda:0/4"));
}

// Queries, rows and results in the GPU's memory, searched by its parts and by a CPU beside them.
TEST_F(CudaParts, DataOnTheDevice) {
  const auto base = make_floats(Shape::near_duplicates, 3000, 12, 1);
  const auto asked = make_floats(Shape::near_duplicates, 50, 12, 2);
  const DeviceMatrix there(base.view());
  const DeviceMatrix queries(asked.view());
  for (const char* parts : {"cuda:0/3", "cuda:0,cpu/2"}) {
    for (const int64_t count : {1, 50}) {
      const Found expected = found_in(knn(asked.view().slice(0, count), base.view(), {.k = 7}, on("cpu")));
      const DeviceResult result(count, 7);
      knn(queries.view().slice(0, count), there.view(), result.view, {.k = 7}, on(parts));
      std::vector<int64_t> ids(static_cast<size_t>(count) * 7);
      std::vector<float> distances(ids.size());
      result.ids.read(ids.data());
      result.distances.read(distances.data());
      EXPECT_EQ(found_in(ids.data(), distances.data(), count * 7), expected) << parts << ", " << count << " queries";
    }
  }
}

TEST_F(CudaParts, EveryBufferHasItsOwner) {
  const auto rows = make_floats(Shape::gaussian, 20, 6, 1);
  const DeviceMatrix there(rows.view());
  check_owner(there.view().data(), MemorySpace::cuda(0), "rows");
  EXPECT_THROW(check_owner(there.view().data(), MemorySpace::cuda(1), "rows"), InvalidArgument);
  EXPECT_THROW(check_owner(rows.view().data(), MemorySpace::cuda(0), "rows"), InvalidArgument);
  const Resources cpu = on("cpu");
  const RowsOnPart here(there.view(), cpu);
  EXPECT_TRUE(here.view().space().host_readable());
  EXPECT_EQ(std::memcmp(here.view().data(), rows.view().data(), 20 * 6 * sizeof(float)), 0);
  const RowsOnPart same(there.view(), on("cuda:0"));
  EXPECT_EQ(same.view().data(), there.view().data());
}

// A GPU's limit is that of all its parts.
TEST_F(CudaParts, ALimitOfTheDeviceIsShared) {
  const auto base = make_floats(Shape::gaussian, 20000, 32, 1);
  const auto asked = make_floats(Shape::gaussian, 64, 32, 2);
  const Found expected = found_in(knn(asked.view(), base.view(), {.k = 5}, on("cpu")));
  ResourceOptions options;
  options.devices = parse_devices("cuda:0/3");
  options.device_memory_limit = 1 << 10;
  for (int tries = 0; tries < 6; ++tries) {
    try {
      EXPECT_EQ(found_in(knn(asked.view(), base.view(), {.k = 5}, Resources(options))), expected);
      EXPECT_GT(tries, 0);
      return;
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("memory limit"));
      options.device_memory_limit = std::max(error.bytes_needed(), options.device_memory_limit + 1);
    }
  }
  ADD_FAILURE() << "limits that errors name do not do";
}

}  // namespace
}  // namespace kith::shared
