// Parts of one GPU share a call and have the bytes of one device; and what changes devices is asked for its owner.
#include <kith/error.hpp>

#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "ranks/shared_calls.hpp"
#include "ranks/transfer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kith::shared {
namespace {

using reference::make_floats;
using reference::Shape;

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

TEST_F(CudaParts, GraphsHaveTheBytesOfOneDevice) { expect_graphs(on("cpu"), on("cuda:0/3")); }

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
