#include "ranks/shared_calls.hpp"

#include <kith/error.hpp>
#include <kith/graph_merge.hpp>
#include <kith/row_reader.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "ranks/parts.hpp"
#include "reference/taken_params.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

namespace kith::shared {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kParts[] = {"cpu/3", "cpu/5"};

TEST(SharedCalls, ExactSearchHasTheBytesOfOneDevice) {
  for (const char* parts : kParts) expect_knn(on("cpu"), on(parts));
}

TEST(SharedCalls, KMeansHasTheBytesOfOneDevice) {
  for (const char* parts : kParts) expect_kmeans(on("cpu"), on(parts));
}

TEST(SharedCalls, EveryKindOfKMeansHasTheBytesOfOneDevice) {
  expect_kinds_of_kmeans(on("cpu"), [](const MatrixView& rows, const KMeansParams& params, const KMeansInput& input) {
    return fitted_on(on("cpu/3"), rows, params, input);
  });
}

TEST(SharedCalls, ListsAreRankedOnceForManyQueries) { expect_many_queries(on("cpu"), parse_devices("cpu/3")); }

TEST(SharedCalls, EncodingHasTheBytesOfOneDevice) {
  for (const char* parts : kParts) expect_encoding(on("cpu"), on(parts));
}

TEST(SharedCalls, GraphsHaveTheBytesOfOneDevice) {
  for (const char* parts : kParts) expect_graphs(on("cpu"), on(parts));
}

TEST(SharedCalls, RoundsOfNnDescentHaveTheBytesOfOneDevice) {
  for (const char* parts : kParts) expect_rounds(on("cpu"), on(parts));
}

// Every part keeps rows and lists of its own; else the first would have done all.
TEST(SharedCalls, AllPartsTakePartInRounds) {
  const auto rows = make_floats(Shape::gaussian, 3000, 16, 3);
  const KnnGraphParams params{.k = 8, .method = GraphMethod::nn_descent, .start = GraphStart::random};
  const int64_t one = knn_graph(rows.view(), params, on("cpu", 3)).report().peak_host_bytes;
  const int64_t three = knn_graph(rows.view(), params, on("cpu/3", 3)).report().peak_host_bytes;
  EXPECT_GT(three, 2 * one);
}

TEST(SharedCalls, MergedGraphsHaveTheBytesOfOneDevice) {
  const auto rows = make_floats(Shape::gaussian, 1500, 8, 3);
  const std::vector<GraphPart> parts = graphs_to_merge(rows.view());
  const KnnGraph expected = merge_graphs(parts, {}, on("cpu"));
  const KnnGraph merged = merge_graphs(parts, {}, on("cpu/2"));
  EXPECT_EQ(found_in(merged.ids(), merged.distances(), 9000), found_in(expected.ids(), expected.distances(), 9000));
  EXPECT_EQ(told_by(merged.report()), told_by(expected.report()));
}

TEST(SharedCalls, MergesOfTwoHaveTheBytesOfOneDevice) {
  for (const char* parts : kParts) expect_merges_of_two(on("cpu"), on(parts));
}

TEST(SharedCalls, AMergeOfTwoNamesTheRowThatOneDeviceRefuses) {
  auto rows = make_floats(Shape::gaussian, 900, 8, 3);
  const MatrixView first = rows.view().slice(0, 400);
  const MatrixView second = rows.view().slice(400, 500);
  const KnnGraphParams params{.k = 5, .method = GraphMethod::exact};
  const std::vector<GraphPart> parts = {{knn_graph(first, params, on("cpu")), first},
                                        {knn_graph(second, params, on("cpu")), second}};
  rows.values[8 * (400 + 321) + 3] = NAN;
  try {
    (void)merge_graphs(parts, {}, on("cpu/3"));
    ADD_FAILURE() << "nothing was refused";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("x2 row 321"), Not(HasSubstr("part"))));
  }
}

// Every limit that one device works with: several divide the work where each has room.
TEST(SharedCalls, AMergeOfTwoFitsTheLimitsOfOneDevice) {
  const auto rows = make_floats(Shape::gaussian, 1200, 16, 3);
  const MatrixView first = rows.view().slice(0, 700);
  const MatrixView second = rows.view().slice(700, 500);
  const KnnGraphParams params{.k = 5, .method = GraphMethod::exact};
  const std::vector<GraphPart> parts = {{knn_graph(first, params, on("cpu")), first},
                                        {knn_graph(second, params, on("cpu")), second}};
  const KnnGraph expected = merge_graphs(parts, {}, on("cpu"));
  ResourceOptions options;
  options.threads = 3;
  options.host_memory_limit = 1 << 10;
  const auto least = [&](const char* devices) {
    options.devices = parse_devices(devices);
    try {
      (void)merge_graphs(parts, {}, Resources(options));
    } catch (const OutOfMemory& error) {
      return error.bytes_needed();
    }
    return int64_t{0};
  };
  const int64_t needed = least("cpu");
  EXPECT_EQ(least("cpu/3"), needed);
  for (const int64_t limit : {needed, 2 * needed, 4 * needed}) {
    options.host_memory_limit = limit;
    const KnnGraph graph = merge_graphs(parts, {}, Resources(options));
    EXPECT_EQ(found_in(graph.ids(), graph.distances(), 6000), found_in(expected.ids(), expected.distances(), 6000));
    EXPECT_LE(graph.report().peak_host_bytes, limit);
  }
}

TEST(SharedCalls, AGraphOfRowsThatAreRefusedNamesThoseOfOneDevice) { expect_refused_rows(on("cpu/3")); }

// Rounds, waves and steps hear of it, whichever part is told: nobody hangs.
TEST(SharedCalls, AGraphIsCancelledAtAnyTime) {
  const auto rows = make_floats(Shape::gaussian, 2500, 8, 1);
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells, GraphMethod::nn_descent, GraphMethod::ggm}) {
    KnnGraphParams params{.k = 4, .method = method};
    if (method == GraphMethod::ggm) params.shards = 5;
    if (method == GraphMethod::nn_descent) params.start = GraphStart::random;
    bool ended = false;
    for (int times = 0; times < 400 && !ended; times = times * 2 + 1) {
      int asked = 0;
      const Resources resources = on("cpu/3").with_cancel({}, [&] { return ++asked > times; });
      try {
        (void)knn_graph(rows.view(), params, resources);
        ended = true;
      } catch (const Cancelled&) {
      }
    }
  }
}

TEST(SharedCalls, AGraphThatRunsOutOfMemoryOnOnePartSaysWhich) {
  const auto rows = make_floats(Shape::gaussian, 2500, 8, 1);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent, GraphMethod::ggm}) {
    KnnGraphParams params{.k = 4, .method = method};
    if (method == GraphMethod::ggm) params.shards = 4;
    if (method == GraphMethod::nn_descent) params.start = GraphStart::random;
    ResourceOptions options;
    options.devices = parse_devices("cpu/3");
    options.threads = 3;
    options.host_memory_limit = int64_t{1} << 30;
    const Resources limited(options);
    int64_t taken = 0;  // by somebody else, while the graph is built
    const Resources resources = limited.with_progress([&](const Progress&) {
      if (taken > 0) return;
      taken = limited.host_memory()->available();
      limited.host_memory()->reserve(taken, "a test");
    });
    try {
      (void)knn_graph(rows.view(), params, resources);
      ADD_FAILURE() << "there was memory";
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("cpu, part "), HasSubstr(" of 3: "))) << name_of(method);
    }
    limited.host_memory()->release(taken);
    EXPECT_EQ(limited.host_memory()->used(), 0);
  }
}

// Parts keep rows and lists of their own; where a limit has no room for that, one does all.
TEST(SharedCalls, AGraphFitsTheLimitsOfOneDevice) {
  const auto rows = make_floats(Shape::gaussian, 1200, 16, 1);
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent, GraphMethod::ggm}) {
    KnnGraphParams params{.k = 5, .method = method};
    if (method == GraphMethod::ggm) params.shards = 3;
    if (method == GraphMethod::nn_descent) params.start = GraphStart::random;
    const KnnGraph expected = knn_graph(rows.view(), params, on("cpu"));
    ResourceOptions options;
    options.threads = 3;
    options.host_memory_limit = 1 << 10;
    const auto least = [&](const char* devices) {
      options.devices = parse_devices(devices);
      try {
        (void)knn_graph(rows.view(), params, Resources(options));
      } catch (const OutOfMemory& error) {
        return error.bytes_needed();
      }
      return int64_t{0};
    };
    const int64_t needed = least("cpu");
    EXPECT_EQ(least("cpu/3"), needed);
    for (const int64_t limit : {needed, 4 * needed}) {
      options.host_memory_limit = limit;
      const KnnGraph graph = knn_graph(rows.view(), params, Resources(options));
      EXPECT_EQ(found_in(graph.ids(), graph.distances(), 6000), found_in(expected.ids(), expected.distances(), 6000));
      EXPECT_LE(graph.report().peak_host_bytes, limit);
    }
  }
}

TEST(SharedCalls, IndexesHaveTheBytesOfOneDevice) {
  for (const char* factory : {"Flat", "IVF20,Flat", "PQ4x4", "IVF20,SQ8"})
    expect_index(factory, on("cpu"), on("cpu/3"));
  expect_index("OPQ4,IVF20,PQ4x4,RFlat", on("cpu"), on("cpu/5"));
  expect_index("IVF20,SQ8", on("cpu"), on("cpu/4"));  // two copies of two shards
}

TEST(SharedCalls, FilesAreSearchedInParts) {
  const kith::testing::TemporaryDirectory folder;
  const auto base = make_floats(Shape::gaussian, 500, 6, 1);
  const auto asked = make_floats(Shape::gaussian, 70, 6, 2);
  write_vectors(folder.path("base.npy"), base.view());
  write_vectors(folder.path("asked.npy"), asked.view());
  const Found expected = found_in(knn(asked.view(), base.view(), {.k = 4}, on("cpu")));
  Found found;
  const auto sink = [&](int64_t first, const NeighborsView& part) {
    EXPECT_EQ(first * 4, static_cast<int64_t>(found.ids.size()));
    const Found some = found_in(part.ids, part.distances, part.queries * part.k);
    found.ids.insert(found.ids.end(), some.ids.begin(), some.ids.end());
    found.distances.insert(found.distances.end(), some.distances.begin(), some.distances.end());
  };
  knn(VectorFile(folder.path("asked.npy")), VectorFile(folder.path("base.npy")), sink, {.k = 4}, on("cpu/3"));
  EXPECT_EQ(found, expected);
}

TEST(SharedCalls, RefusedRowsAreThoseThatOneDeviceNames) {
  auto base = make_floats(Shape::gaussian, 900, 4, 1);
  auto asked = make_floats(Shape::gaussian, 90, 4, 2);
  const auto text = [&] {
    try {
      (void)knn(asked.view(), base.view(), {.k = 2}, on("cpu/3"));
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  asked.values[4 * 70] = NAN;
  EXPECT_THAT(text(), AllOf(HasSubstr("query row 70"), Not(HasSubstr("part"))));
  asked.values[4 * 70] = 0;
  base.values[4 * 850] = NAN;
  base.values[4 * 400] = NAN;
  EXPECT_THAT(text(), HasSubstr("base row 400"));
}

TEST(SharedCalls, AnErrorOnOneEndsAllAndSaysTheDevice) {
  std::atomic<int> stopped{0};
  const auto text = [&](const auto& fail) {
    try {
      run_parts(on("cpu/3"), [&](Communicator& ranks, const Resources& part) {
        if (ranks.rank() == 1) fail();
        for (;;) {  // until it is told to stop
          try {
            part.check_cancelled();
          } catch (const Cancelled&) {
            ++stopped;
            throw;
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(text([] { throw OutOfMemory("no room", 5); }), "cpu, part 2 of 3: no room");
  EXPECT_EQ(text([] { throw DeviceError("it broke"); }), "cpu, part 2 of 3: it broke");
  EXPECT_EQ(text([] { throw Unsupported("not so"); }), "not so");
  EXPECT_EQ(text([] { throw Cancelled(); }), Cancelled().what());
  EXPECT_EQ(stopped, 8);
  // Ranks that wait for one another are woken.
  EXPECT_THROW(run_parts(on("cpu/3"),
                         [](Communicator& ranks, const Resources&) {
                           if (ranks.rank() == 2) throw DeviceError("it broke");
                           ranks.barrier();
                         }),
               DeviceError);
}

TEST(SharedCalls, CancelReachesAllParts) {
  CancelToken token;
  const Resources resources = on("cpu/3").with_cancel(token);
  std::atomic<int> begun{0};
  const auto wait = [&](Communicator&, const Resources& part) {
    if (++begun == 3) token.request();
    for (;;) {
      part.check_cancelled();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  EXPECT_THROW(run_parts(resources, wait), Cancelled);
  int asked = 0;  // on the calling thread alone
  const std::thread::id caller = std::this_thread::get_id();
  const auto interrupted = [&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    return ++asked > 3;
  };
  EXPECT_THROW(run_parts(on("cpu/3").with_cancel({}, interrupted), wait), Cancelled);
}

TEST(SharedCalls, AnInterruptIsHeardOnceTheFirstPartIsDone) {
  const auto interrupted_after = [](int times) {
    auto asked = std::make_shared<int>(0);
    return [asked, times] { return ++*asked > times; };
  };
  std::atomic<int> stopped{0};
  const auto until_told = [&](const Resources& part) {
    for (;;) {
      try {
        part.check_cancelled();
      } catch (const Cancelled&) {
        ++stopped;
        throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const auto first_returns = [&](Communicator& ranks, const Resources& part) {
    if (ranks.rank() > 0) until_told(part);
  };
  EXPECT_THROW(run_parts(on("cpu/3").with_cancel({}, interrupted_after(2)), first_returns), Cancelled);
  EXPECT_EQ(stopped, 2);
  const auto first_waits = [&](Communicator& ranks, const Resources& part) {
    if (ranks.rank() > 0) until_told(part);
    ranks.barrier();
  };
  EXPECT_THROW(run_parts(on("cpu/3").with_cancel({}, interrupted_after(2)), first_waits), Cancelled);
  EXPECT_EQ(stopped, 4);
  // Heard when all others end by themselves: the call is cancelled none the less.
  const auto others_sleep = [](Communicator& ranks, const Resources&) {
    if (ranks.rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  EXPECT_THROW(run_parts(on("cpu/3").with_cancel({}, interrupted_after(0)), others_sleep), Cancelled);
}

// The device memory of each part of each group, as a list.
std::vector<int64_t> shares_of_groups(const ResourceOptions& options, int groups) {
  const Resources resources(options);
  std::vector<std::vector<int64_t>> shares(static_cast<size_t>(groups));
  run_groups(groups, resources, [&](int group, const Resources& own) {
    for (int i = 0; i < own.parts(); ++i) {
      shares[static_cast<size_t>(group)].push_back(own.part(i).device_memory()->available());
    }
  });
  std::vector<int64_t> all;
  for (const auto& group : shares) all.insert(all.end(), group.begin(), group.end());
  return all;
}

TEST(SharedCalls, PartsOfAGroupHaveTheMemoryThatTheyHaveAlone) {
  using ::testing::ElementsAre;
  const Device first = Device::cuda(0);
  const Device second = Device::cuda(1);
  ResourceOptions options;
  options.threads = 4;
  options.device_memory_limit = 1200;
  options.devices = {{first, 4}};
  EXPECT_THAT(shares_of_groups(options, 2), ElementsAre(300, 300, 300, 300));
  options.devices = {{first, 2}, {second, 2}};
  EXPECT_THAT(shares_of_groups(options, 2), ElementsAre(600, 600, 600, 600));
  options.devices = {{first}, {second}, {Device::cuda(2)}, {Device::cuda(3)}};
  EXPECT_THAT(shares_of_groups(options, 2), ElementsAre(1200, 1200, 1200, 1200));
  options.device_memory_limits = {1000, 2000, 3000, 4000};
  EXPECT_THAT(shares_of_groups(options, 2), ElementsAre(1000, 2000, 3000, 4000));
  const Resources resources(options);
  run_groups(2, resources, [&](int group, const Resources& own) {  // what a part takes counts for the GPU
    if (group == 1) own.part(1).device_memory()->reserve(700, "a test");
  });
  EXPECT_EQ(resources.device_memory(3)->used(), 700);
  EXPECT_EQ(resources.device_memory(2)->used(), 0);
}

TEST(SharedCalls, AShardedIndexCountsTheShareOfEachPart) {
  const auto rows = make_floats(Shape::gaussian, 4000, 16, 1);
  const auto asked = make_floats(Shape::gaussian, 40, 16, 2);
  for (const char* factory : {"Flat", "IVF20,SQ8"}) {
    Index plain(factory);
    plain.train(rows.view(), on("cpu"));
    plain.add(rows.view(), Ownership::copy, on("cpu"));
    const std::vector<uint8_t> keep = [] {
      std::vector<uint8_t> all(4000, 1);
      for (size_t i = 0; i < all.size(); i += 3) all[i] = 0;
      return all;
    }();
    const SearchParams params =
        taken_by(plain, {.k = 6, .filter = RowFilter::mask(keep.data(), 4000), .probes = 5});
    const Found expected = found_in(plain.search(asked.view(), params, on("cpu")));
    const Index shards = plain.to({parse_devices("cpu/3"), 1});
    ResourceOptions options;
    options.threads = 3;
    options.host_memory_limit = 1000;
    bool found = false;
    for (int tries = 0; tries < 12 && !found; ++tries) {
      const Resources limited(options);
      try {
        EXPECT_EQ(found_in(shards.search(asked.view(), params, limited)), expected) << factory;
        EXPECT_GT(tries, 0);
        found = true;
      } catch (const OutOfMemory& error) {
        EXPECT_GT(error.bytes_needed(), options.host_memory_limit);
        options.host_memory_limit = error.bytes_needed();
      }
    }
    EXPECT_TRUE(found) << factory << ": the limits that errors name do not do: " << options.host_memory_limit;
  }
}

TEST(SharedCalls, ALimitIsSharedAndNamedForTheWholeCall) {
  const auto base = make_floats(Shape::gaussian, 3000, 16, 1);
  const auto asked = make_floats(Shape::gaussian, 64, 16, 2);
  const KnnParams params{.k = 5};
  const Found expected = found_in(knn(asked.view(), base.view(), params, on("cpu")));
  ResourceOptions options;
  options.devices = parse_devices("cpu/3");
  options.threads = 3;
  options.host_memory_limit = 1000;
  for (int tries = 0; tries < 4; ++tries) {
    try {
      const Resources limited(options);
      EXPECT_EQ(found_in(knn(asked.view(), base.view(), params, limited)), expected);
      EXPECT_EQ(limited.host_memory()->used(), 0);
      EXPECT_GT(tries, 0);
      return;
    } catch (const OutOfMemory& error) {
      EXPECT_GT(error.bytes_needed(), options.host_memory_limit);
      options.host_memory_limit = error.bytes_needed();
    }
  }
  ADD_FAILURE() << "the limits that errors name do not do: " << options.host_memory_limit;
}

TEST(SharedCalls, PlacementsThatCannotBeAreRefused) {
  Index index("IVF4,Flat");
  const auto refused = [&](const IndexPlacement& placement, const Index& from) {
    try {
      (void)from.to(placement);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(refused({parse_devices("cpu/3"), 2}, index), HasSubstr("copies = 2 on cpu/3 (3 in all)"));
  EXPECT_THAT(refused({parse_devices("cpu/3"), 4}, index), HasSubstr("copies = 4"));
  EXPECT_THAT(refused({parse_devices("cpu/3"), 1}, Index("Graph16")), HasSubstr("give copies = 3"));
  EXPECT_THAT(refused({{{Device::cpu()}, {Device::cpu()}}, 1}, index), HasSubstr("cpu/2"));
  EXPECT_EQ(index.to({parse_devices("cpu/3"), 0}).placement().copies, 3);  // what lies on the host is shared
  EXPECT_EQ(index.to({parse_devices("cpu/3"), 1}).clone().placement().copies, 1);
  EXPECT_EQ(name_of(index.to({parse_devices("cpu/3"), 1}).placement().devices), "cpu/3");
  EXPECT_EQ(index.placement().copies, 1);
}

TEST(SharedCalls, FilesOfAShardedIndexAreThoseOfOneDevice) {
  const kith::testing::TemporaryDirectory folder;
  const auto rows = make_floats(Shape::gaussian, 700, 8, 1);
  Index plain("IVF10,PQ4x4");
  plain.train(rows.view(), on("cpu"));
  Index shards = plain.to({parse_devices("cpu/3"), 1});
  for (Index* index : {&plain, &shards}) index->add(rows.view());
  plain.save(folder.path("plain.kith"));
  shards.save(folder.path("shards.kith"));
  EXPECT_EQ(folder.read("shards.kith"), folder.read("plain.kith"));
  const Index loaded = Index::load(folder.path("shards.kith")).to({parse_devices("cpu/3"), 1});
  const auto asked = make_floats(Shape::gaussian, 9, 8, 2);
  EXPECT_EQ(found_in(loaded.search(asked.view(), {.k = 6})), found_in(plain.search(asked.view(), {.k = 6})));
}

}  // namespace
}  // namespace kith::shared
