// Cells from disk on the GPU: the bytes of the CPU in memory, with blocks and chunks of any size, begun on one device
// and ended on the other.
#include "graph/build/cells_on_disk/cells_on_disk.hpp"

#include <kith/graph_folder.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/vector_file.hpp>

#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "graph/build/ggm/ggm_on_disk.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/kept_graph.hpp"
#include "io/simulated_disk.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kith {
namespace {

using reference::Shape;
using testing::KeptGraph;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;

class CudaCellsOnDisk : public OnCuda {};

KnnGraphParams disk_cells(int64_t k, int64_t cells, Metric metric = Metric::l2) {
  return {.k = k, .metric = metric, .method = GraphMethod::cells, .cells = cells};
}

void expect_bytes_of_the_cpu(const MatrixView& rows, const KnnGraphParams& params) {
  SCOPED_TRACE(::testing::Message() << rows.rows() << " x " << rows.cols() << " " << name_of(rows.dtype()) << ", k "
                                    << params.k << ", " << name_of(params.metric));
  const TemporaryDirectory directory;
  write_vectors(directory.path("x.npy"), rows);
  const VectorFile x(directory.path("x.npy"));
  const KnnGraph truth = knn_graph(rows, params, on_cpu());
  const CellsParams cells = cells_params(x.rows(), params);
  for (const int64_t most_rows : {int64_t{100}, int64_t{900}, int64_t{INT64_MAX}}) {
    SCOPED_TRACE(most_rows);
    SimulatedDisk disk;
    KeptGraph found;
    const auto report = cells_on_disk(x, cells, true, {disk, "w", false, most_rows}, found, on_cuda());
    found.expect(truth);
    EXPECT_EQ(report->recall->recall, truth.report().recall->recall);
  }
}

TEST_F(CudaCellsOnDisk, GivesTheBytesOfTheCpu) {
  const auto rows = reference::make_floats(Shape::gaussian, 3000, 24, 1);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    expect_bytes_of_the_cpu(rows.view(), disk_cells(7, 40, metric));
  }
  expect_bytes_of_the_cpu(reference::make_bytes(4000, 96, 1, 200).view(), disk_cells(10, 25));
}

TEST_F(CudaCellsOnDisk, GivesTheBytesOfTheCpuForHardData) {
  for (const Shape shape : {Shape::near_duplicates, Shape::all_equal}) {
    expect_bytes_of_the_cpu(reference::make_floats(shape, 2000, 17, 1).view(), disk_cells(5, 20));
  }
  expect_bytes_of_the_cpu(reference::make_bytes(2500, 19, 1, 3).view(), disk_cells(4, 30));  // with many ties
  expect_bytes_of_the_cpu(reference::make_floats(Shape::gaussian, 2500, 16, 2).view(), disk_cells(6, 1));
  expect_bytes_of_the_cpu(reference::make_floats(Shape::gaussian, 2500, 16, 2).view(), disk_cells(40, 2));
  expect_bytes_of_the_cpu(reference::make_floats(Shape::gaussian, 30, 5, 2).view(), disk_cells(6, 12));
}

class CudaCellsOnDiskSmall : public OnCuda {};

TEST_F(CudaCellsOnDiskSmall, FewRows) {
  const auto rows = reference::make_bytes(200, 20, 1, 200);
  const KnnGraphParams params = disk_cells(5, 6);
  const KnnGraph truth = knn_graph(rows.view(), params, on_cpu());
  const TemporaryDirectory directory;
  write_vectors(directory.path("x.npy"), rows.view());
  const VectorFile x(directory.path("x.npy"));
  SimulatedDisk disk;
  KeptGraph found;
  (void)cells_on_disk(x, cells_params(x.rows(), params), true, {disk, "w", false, 90}, found, on_cuda());
  found.expect(truth);
}

class CudaGgmOnDisk : public OnCuda {};

// Shards are built and merged on the GPU, one or two at a time.
TEST_F(CudaGgmOnDisk, GivesTheBytesOfMemory) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 6000, 16, 3);
  write_vectors(directory.path("x.npy"), rows.view());
  const VectorFile x(directory.path("x.npy"));
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    const KnnGraphParams params{
        .k = 6, .metric = metric, .method = GraphMethod::ggm, .recall = 0.9, .list_length = 16, .shards = 3};
    const KnnGraph truth = knn_graph(rows.view(), params, on_cuda());
    const Footprint least = merge_on_disk_footprint(ggm_work(x, params), on_cuda());
    ASSERT_GT(least.device, 0);
    ResourceOptions options = cuda_options();
    options.device_memory_limit = least.device;
    for (const Resources& resources : {on_cuda(), Resources(options)}) {
      SimulatedDisk disk;
      KeptGraph found;
      (void)merge_on_disk(ggm_work(x, params), {.disk = disk, .folder = "w"}, found, resources);
      found.expect(truth);
    }
  }
}

// Every device in turn does a block.
TEST_F(CudaCellsOnDisk, BeginsOnOneDeviceAndEndsOnTheOther) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 3000, 24, 1);
  write_vectors(directory.path("x.npy"), rows.view());
  const VectorFile x(directory.path("x.npy"));
  const KnnGraphParams params = disk_cells(7, 40);
  const KnnGraph truth = knn_graph(rows.view(), params, on_cpu());
  SimulatedDisk disk;
  KeptGraph found;
  bool done = false;
  int turns = 0;
  for (; !done && turns < 200; ++turns) {
    disk.set_fault({.at = 3, .code = 0, .kind = testing::DiskCall::rename});
    try {
      (void)cells_on_disk(x, cells_params(x.rows(), params), true, {disk, "w", false, 400}, found,
                          turns % 2 == 0 ? on_cuda() : on_cpu());
      done = true;
    } catch (const testing::Crash&) {
      disk.crash(testing::Loss::all_that_is_not_synced);
    }
  }
  EXPECT_TRUE(done);
  EXPECT_GT(turns, 3);
  found.expect(truth);
}

// Numbers of the second's cells take three bytes.
void expect_bytes_of_memory(int64_t count, int64_t cells) {
  SCOPED_TRACE(cells);
  const auto rows = reference::make_floats(Shape::gaussian, count, 8, 4);
  KnnGraphParams params = disk_cells(5, cells);
  params.recall = 0.5;
  const TemporaryDirectory directory;
  write_vectors(directory.path("x.npy"), rows.view());
  const VectorFile x(directory.path("x.npy"));
  const KnnGraph truth = knn_graph(rows.view(), params, on_cuda());
  for (const bool ids_only : {false, true}) {
    for (const int64_t most_rows : {count / 5, int64_t{INT64_MAX}}) {
      SimulatedDisk disk;
      KeptGraph found(ids_only);
      const auto report =
          cells_on_disk(x, cells_params(x.rows(), params), true, {disk, "w", false, most_rows}, found, on_cuda());
      found.expect(truth);
      EXPECT_EQ(report->recall->recall, truth.report().recall->recall);
    }
  }
}

TEST_F(CudaCellsOnDisk, MoreCellsThanAreRanked) {
  expect_bytes_of_memory(20'000, 16'400);
  expect_bytes_of_memory(70'000, 66'000);
}

TEST_F(CudaCellsOnDisk, AFolderUnderADeviceLimit) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_bytes(200'000, 96, 1, 255);
  write_vectors(directory.path("x.npy"), rows.view());
  const VectorFile x(directory.path("x.npy"));
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::automatic}) {
    KnnGraphParams params{.k = 10, .method = method};
    params.recall = 0.5;
    const KnnGraph truth = knn_graph(rows.view(), params, on_cuda());
    ResourceOptions options;
    options.device = Device::cuda(0);
    options.device_memory_limit = int64_t{96} << 20;
    const Resources limited(options);
    const GraphReport report = knn_graph_folder(x, directory.path("g"), params, limited);
    EXPECT_LE(report.peak_device_bytes, options.device_memory_limit);
    EXPECT_EQ(report.method, truth.report().method);
    expect_same_bytes(truth, load_graph_folder(directory.path("g"), on_cpu()));
  }
}

}  // namespace
}  // namespace kith
