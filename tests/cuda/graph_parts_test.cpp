// Graphs in memory on parts of one GPU: the bytes, and the reports, of one device, wherever rows and results lie; what ends
// a build on one part ends it on all.
#include <kith/error.hpp>
#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>

#include "core/memory_budget.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_data.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/parity.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/lists/device_share_cuda.hpp"
#include "ranks/parts.hpp"
#include "ranks/shared_calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace kith::shared {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CudaGraphParts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << "no GPU";
  }
};

KnnGraphParams by(GraphMethod method, int64_t shards = 3) {
  KnnGraphParams params{.k = 5, .method = method};
  if (method == GraphMethod::ggm) params.shards = shards;
  if (method == GraphMethod::nn_descent) params.start = GraphStart::random;
  return params;
}

Resources limited_to(const std::string& devices, int64_t device_bytes) {
  ResourceOptions options;
  options.devices = parse_devices(devices);
  options.threads = 3;
  options.device_memory_limit = device_bytes;
  return Resources(options);
}

TEST_F(CudaGraphParts, HaveTheBytesOfTheCpu) { expect_graphs(on("cpu"), on("cuda:0/3")); }

TEST_F(CudaGraphParts, RoundsHaveTheBytesOfTheCpu) { expect_rounds(on("cpu"), on("cuda:0/3")); }

// Orders of joins are drawn from more rows than this (descent_steps_cuda.cpp).
TEST_F(CudaGraphParts, RoundsTellWhatOneDeviceTells) {
  expect_rounds(on("cuda:0"), on("cuda:0/2"));
  const auto rows = make_floats(Shape::gaussian, 30000, 12, 3);
  for (const char* parts : {"cuda:0/2", "cuda:0/5"}) {
    expect_graph(rows.view(), by(GraphMethod::nn_descent), on("cuda:0"), on(parts));
  }
}

// With the rounds, comparisons and forecasts of one device.
TEST_F(CudaGraphParts, TellWhatOneDeviceTells) {
  const auto rows = make_floats(Shape::gaussian, 30000, 12, 3);
  for (const char* parts : {"cuda:0/2", "cuda:0/5"}) {
    expect_graph(rows.view(), by(GraphMethod::cells), on("cuda:0"), on(parts));
    expect_graph(rows.view(), {.k = 10}, on("cuda:0"), on(parts));
    expect_graph(rows.view(), by(GraphMethod::exact), on("cuda:0"), on(parts));
    expect_graph(rows.view(), {.k = 5, .metric = Metric::inner_product, .method = GraphMethod::cells}, on("cuda:0"),
                 on(parts));
  }
  expect_graph(rows.view(), by(GraphMethod::ggm, 4), on("cuda:0"), on("cuda:0/2"));
  // More cells than a row ranks.
  KnnGraphParams many = by(GraphMethod::cells);
  many.cells = 17000;
  many.probes = 40;
  expect_graph(rows.view(), many, on("cuda:0"), on("cuda:0/3"));
}

// Every part keeps rows and lists of its own; else the first would have done all.
TEST_F(CudaGraphParts, AllTakePart) {
  const auto rows = make_floats(Shape::gaussian, 100000, 32, 3);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    const int64_t one = knn_graph(rows.view(), by(method), on("cuda:0")).report().peak_device_bytes;
    const int64_t three = knn_graph(rows.view(), by(method), on("cuda:0/3")).report().peak_device_bytes;
    EXPECT_GT(three, 2 * one) << name_of(method);
  }
}

TEST_F(CudaGraphParts, ReadAndWriteTheGpusMemory) {
  const auto rows = make_floats(Shape::near_duplicates, 3000, 12, 1);
  const DeviceMatrix there(rows.view());
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells, GraphMethod::nn_descent, GraphMethod::ggm}) {
    const KnnGraph expected = knn_graph(rows.view(), by(method), on("cpu"));
    const Found found = found_in(expected.ids(), expected.distances(), 15000);
    const DeviceResult result(3000, 5);
    knn_graph(there.view(), result.view, by(method), on("cuda:0/3"));
    std::vector<int64_t> ids(15000);
    std::vector<float> distances(15000);
    result.ids.read(ids.data());
    result.distances.read(distances.data());
    EXPECT_EQ(found_in(ids.data(), distances.data(), 15000), found) << name_of(method);
    // Rows of the device, results of the host.
    Neighbors host(3000, 5, on("cpu"));
    knn_graph(there.view(), host.view(), by(method), on("cuda:0/3"));
    EXPECT_EQ(found_in(host), found) << name_of(method);
  }
}

TEST_F(CudaGraphParts, MergePairsAsOneDevice) {
  const auto rows = make_floats(Shape::gaussian, 1500, 8, 3);
  const std::vector<GraphPart> parts = graphs_to_merge(rows.view());
  const KnnGraph expected = merge_graphs(parts, {}, on("cpu"));
  const KnnGraph merged = merge_graphs(parts, {}, on("cuda:0/2"));
  EXPECT_EQ(found_in(merged.ids(), merged.distances(), 9000), found_in(expected.ids(), expected.distances(), 9000));
}

TEST_F(CudaGraphParts, MergeTwoAsOneDevice) {
  expect_merges_of_two(on("cpu"), on("cuda:0/3"));
  expect_merges_of_two(on("cuda:0"), on("cuda:0/2"));
}

TEST_F(CudaGraphParts, MergeTwoInTheGpusMemory) {
  const auto rows = make_floats(Shape::near_duplicates, 1400, 12, 1);
  const KnnGraphParams exact{.k = 5, .method = GraphMethod::exact};
  const MatrixView first = rows.view().slice(0, 800);
  const MatrixView second = rows.view().slice(800, 600);
  const std::vector<GraphPart> parts = {{knn_graph(first, exact, on("cpu")), first},
                                        {knn_graph(second, exact, on("cpu")), second}};
  const KnnGraph expected = merge_graphs(parts, {}, on("cpu"));
  const DeviceMatrix there(rows.view());
  const std::vector<GraphPart> on_gpu = {
      {parts[0].graph.to(MemorySpace::cuda(0), on("cuda:0")), there.view().slice(0, 800)},
      {parts[1].graph.to(MemorySpace::cuda(0), on("cuda:0")), there.view().slice(800, 600)}};
  const KnnGraph merged = merge_graphs(on_gpu, {}, on("cuda:0/3")).to(MemorySpace::host());
  EXPECT_EQ(found_in(merged.ids(), merged.distances(), 7000), found_in(expected.ids(), expected.distances(), 7000));
}

TEST_F(CudaGraphParts, RefusedRowsAreThoseThatOneDeviceNames) { expect_refused_rows(on("cuda:0/3")); }

TEST_F(CudaGraphParts, AreCancelledAtAnyTime) {
  const auto rows = make_floats(Shape::gaussian, 2500, 8, 1);
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells, GraphMethod::nn_descent, GraphMethod::ggm}) {
    bool ended = false;
    for (int times = 0; times < 400 && !ended; times = times * 2 + 1) {
      int asked = 0;
      const Resources resources = limited_to("cuda:0/3", int64_t{4} << 30);
      try {
        (void)knn_graph(rows.view(), by(method), resources.with_cancel({}, [&] { return ++asked > times; }));
        ended = true;
      } catch (const Cancelled&) {
      }
      EXPECT_EQ(resources.device_memory(0)->used(), 0) << name_of(method) << ", after " << times;
    }
  }
}

TEST_F(CudaGraphParts, OutOfMemoryOnOneSaysWhich) {
  const auto rows = make_floats(Shape::gaussian, 2500, 8, 1);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent, GraphMethod::ggm}) {
    const Resources limited = limited_to("cuda:0/3", int64_t{1} << 30);
    int64_t taken = 0;  // by somebody else, while the graph is built
    const Resources resources = limited.with_progress([&](const Progress&) {
      if (taken > 0) return;
      const int64_t all = limited.device_memory(0)->available();
      limited.device_memory(0)->reserve(all, "a test");  // throws where a part has taken some since
      taken = all;
    });
    try {
      (void)knn_graph(rows.view(), by(method, 4), resources);
      ADD_FAILURE() << "there was memory";
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("cuda:0, part "), HasSubstr(" of 3: "))) << name_of(method);
    }
    limited.device_memory(0)->release(taken);
    EXPECT_EQ(limited.device_memory(0)->used(), 0) << name_of(method);
  }
}

// Where parts have no room for rows and lists of their own one does all, within the limit that one device names.
TEST_F(CudaGraphParts, FitTheLimitsOfOneDevice) {
  const auto rows = make_floats(Shape::gaussian, 1200, 16, 1);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent, GraphMethod::ggm}) {
    const KnnGraph expected = knn_graph(rows.view(), by(method), on("cpu"));
    const auto least = [&](const char* devices) {
      try {
        (void)knn_graph(rows.view(), by(method), limited_to(devices, 1 << 10));
      } catch (const OutOfMemory& error) {
        return error.bytes_needed();
      }
      return int64_t{0};
    };
    const int64_t needed = least("cuda:0");
    EXPECT_EQ(least("cuda:0/3"), needed);
    for (const int64_t limit : {needed, 4 * needed}) {
      const KnnGraph graph = knn_graph(rows.view(), by(method), limited_to("cuda:0/3", limit));
      EXPECT_EQ(found_in(graph.ids(), graph.distances(), 6000), found_in(expected.ids(), expected.distances(), 6000));
      EXPECT_LE(graph.report().peak_device_bytes, limit);
    }
  }
}

// What parts hand over is asked for its owner.
TEST_F(CudaGraphParts, HandOverNothingOfAnotherOwner) {
  std::vector<uint64_t> on_host(8);
  const MutualReads reads(2);
  const auto expect_refusal = [&](const auto& hand_over) {
    EXPECT_THROW(run_parts(on("cuda:0/2"),
                           [&](Communicator& ranks, const Resources& part) {
                             const GraphShare share(ranks, 8, &reads);
                             const DeviceGuard guard(0);
                             const auto context = std::make_shared<const DeviceContext>(0);
                             hand_over(share, context, part.with_stream(context->stream()));
                           }),
                 Error);
  };
  expect_refusal([&](const GraphShare& share, const auto& context, const Resources& part) {
    give_on_device(share, {reinterpret_cast<std::byte*>(on_host.data()), 8}, *context, part);
  });
  expect_refusal([&](const GraphShare& share, const auto& context, const Resources& part) {
    gather_offers_on_device(share, on_host.data(), 1, context, part);
  });
}

// Slots have the least of all parts: for the rows of each part, and whatever the order.
TEST_F(CudaGraphParts, SlotsHaveTheLeastOffer) {
  constexpr int64_t kRows = 1000;
  constexpr int64_t kSlots = 5;
  const auto offer = [](int rank, int64_t at) {
    const uint64_t drawn = mixed(static_cast<uint64_t>(at) * 3 + static_cast<uint64_t>(rank));
    return drawn % 4 == 0 ? kPadding : pack_neighbor(static_cast<uint32_t>(drawn >> 40), static_cast<uint32_t>(at % 900));
  };
  const MutualReads reads(3);
  run_parts(on("cuda:0/3"), [&](Communicator& ranks, const Resources& part) {
    const GraphShare share(ranks, kRows, &reads);
    const DeviceGuard guard(0);
    const auto context = std::make_shared<const DeviceContext>(0);
    const Resources there = part.with_stream(context->stream());
    std::vector<uint64_t> offers;
    for (int64_t at = 0; at < kRows * kSlots; ++at) offers.push_back(offer(ranks.rank(), at));
    const DeviceArray<uint64_t> slots(kRows * kSlots, "offers", context, there);
    context->copy_values(slots.data(), offers.data(), slots.size());
    gather_offers_on_device(share, slots.data(), kSlots, context, there);
    context->copy_values(offers.data(), slots.data(), slots.size());
    context->synchronize();
    for (int64_t at = share.rows().first * kSlots; at < share.rows().end() * kSlots; ++at) {
      ASSERT_EQ(offers[static_cast<size_t>(at)], std::min({offer(0, at), offer(1, at), offer(2, at)})) << at;
    }
  });
}

// Small, for memcheck.
TEST_F(CudaGraphParts, Small) {
  const auto rows = make_floats(Shape::gaussian, 700, 8, 4);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::exact, GraphMethod::nn_descent}) {
    expect_graph(rows.view(), by(method), on("cpu"), on("cuda:0/2"));
  }
  const DeviceMatrix there(rows.view());
  const DeviceResult result(700, 5);
  knn_graph(there.view(), result.view, by(GraphMethod::cells), on("cuda:0/2"));
}

}  // namespace
}  // namespace kith::shared
