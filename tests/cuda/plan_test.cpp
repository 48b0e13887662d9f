// Plans for a GPU, made and tested where there is none.
#include "exact/knn_plan_cuda.hpp"
#include "exact/search_workspace_cuda.hpp"

#include <kith/error.hpp>
#include <kith/resources.hpp>

#include "cuda/plans.hpp"
#include "kernels/rerank/coarse_plan.hpp"
#include "kernels/select/select_plan.hpp"
#include "reference/h200.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kith {
namespace {

TEST(CudaPlan, AllQueriesOfAMillionRowsAreOneBatchOnAnH200) {
  const KnnCudaPlan plan = plan_within(million(), 138 * kGiB);
  expect_sound(million(), plan);
  EXPECT_EQ(plan.engine(), CudaEngine::product);
  EXPECT_EQ(plan.product->engine, ProductEngine::wgmma);
  EXPECT_EQ(plan.query_batch, 10000);
  EXPECT_EQ(plan.product->queries, 10000);
  EXPECT_EQ(plan.product->rows, 1000000);
  EXPECT_EQ(plan.query_tile, 1024);
  EXPECT_EQ(plan.row_tile, 16384);
  EXPECT_EQ(plan.base_chunk, 1000000);
  EXPECT_LT(plan.device_bytes, 2 * kGiB);
  EXPECT_EQ(plan.host_bytes, 10000 * 10 * 8 + plan.pinned_bytes);
  EXPECT_GT(plan.pinned_bytes, 0);
}

TEST(CudaPlan, PinnedMemoryIsForLargeBasesOnTheHost) {
  SearchTask problem = million();
  problem.shape.base_space = MemorySpace::cuda(0);
  EXPECT_EQ(plan_within(problem, 138 * kGiB).pinned_bytes, 0);
  problem = million();
  problem.prepared = true;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).pinned_bytes, 0);
  problem = million();
  problem.shape.rows = problem.rows = 5000;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).pinned_bytes, 0);
  EXPECT_EQ(plan_within(million(), 138 * kGiB, int64_t{1} << 20).pinned_bytes, 0);  // the host limit leaves no room
}

TEST(CudaPlan, FitsEveryBudgetDownToTheSmallest) {
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    for (const int64_t k : {1, 10, 1000, 2048, 8192, 1000000}) {
      SearchTask problem = million();
      problem.shape.metric = metric;
      problem.k = problem.request.k = k;
      const int64_t smallest = plan_within(problem, 0).device_bytes;
      EXPECT_GT(smallest, k * 8);
      for (int64_t budget = 138 * kGiB; budget >= smallest; budget = budget * 2 / 3) {
        const KnnCudaPlan plan = plan_within(problem, budget);
        expect_sound(problem, plan);
        EXPECT_LE(plan.device_bytes, budget);
      }
      EXPECT_EQ(plan_within(problem, smallest).device_bytes, smallest);
      EXPECT_EQ(plan_within(problem, smallest - 1).device_bytes, smallest);
    }
  }
}

// However little memory there is: else a search that fits would take as long as its launches.
TEST(CudaPlan, TheSmallestTakesSomeRowsAndQueriesAtATime) {
  SearchTask problem = million();
  problem.shape.cols = 16;
  problem.shape.base_in_memory = problem.shape.queries_in_memory = false;
  const KnnCudaPlan short_of_device = plan_within(problem, 0);
  EXPECT_EQ(short_of_device.query_batch, 16);
  EXPECT_EQ(short_of_device.row_tile, 128);
  EXPECT_LT(short_of_device.device_bytes, 32 << 10);
  const KnnCudaPlan short_of_host = plan_within(problem, 138 * kGiB, 0);
  EXPECT_EQ(short_of_host.query_batch, 16);
  EXPECT_EQ(short_of_host.base_chunk, 128);
  EXPECT_LT(short_of_host.host_bytes, 32 << 10);
  problem.shape.cols = 100'000;  // unless they are wide
  EXPECT_EQ(plan_within(problem, 0).query_batch, 1);
  EXPECT_EQ(plan_within(problem, 138 * kGiB, 0).base_chunk, 1);
  problem.shape.queries = 3;
  problem.shape.rows = problem.rows = 5;
  problem.shape.cols = 16;
  EXPECT_EQ(plan_within(problem, 0).query_batch, 3);
  EXPECT_EQ(plan_within(problem, 0).row_tile, 5);
}

TEST(CudaPlan, AVeryLargeKFitsOrSaysSo) {
  for (const int64_t queries : {1, 1000}) {
    for (const int64_t k : {int64_t{1} << 20, int64_t{1} << 28, int64_t{2147483647}}) {
      for (const int64_t room : {kGiB, 138 * kGiB}) {
        SearchTask problem = million();
        problem.shape.queries = queries;
        problem.shape.rows = problem.rows = 2147483647;
        problem.k = problem.request.k = k;
        SCOPED_TRACE(::testing::Message() << queries << " queries, k = " << k << " in " << room);
        const KnnCudaPlan plan = plan_within(problem, room);
        if (plan.device_bytes <= room) {
          expect_sound(problem, plan);
        } else {
          EXPECT_EQ(plan_within(problem, 0).device_bytes, plan.device_bytes);
        }
      }
    }
  }
}

TEST(CudaPlan, APreparedBaseNeedsNoRoomForRows) {
  for (const CudaEngine engine : {CudaEngine::direct, CudaEngine::product}) {
    SearchTask problem = million();
    const auto plan_it = [&] { return plan_knn_cuda(problem, h200(), {kNoLimit, 138 * kGiB, 2}, {engine}); };
    const int64_t staged = plan_it().device_bytes;
    problem.prepared = true;
    const KnnCudaPlan plan = plan_it();
    expect_sound(problem, plan);
    EXPECT_EQ(plan.engine(), engine);
    const int64_t rows = engine == CudaEngine::direct ? plan.row_tile : plan.product->rows;
    EXPECT_LE(plan.device_bytes, staged - rows * 128 * (engine == CudaEngine::direct ? 4 : 6));
    EXPECT_EQ(plan.product && plan.product->operands_ready, engine == CudaEngine::product);
  }
}

TEST(CudaPlan, OperandsOfAnotherTypeAreNotReady) {
  SearchTask problem = million();
  problem.prepared = true;
  problem.shape.base_dtype = DType::u8;
  problem.shape.query_dtype = DType::u8;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).product->operands, OperandType::bytes);
  EXPECT_TRUE(plan_within(problem, 138 * kGiB).product->operands_ready);
  problem.shape.query_dtype = DType::f32;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).product->operands, OperandType::half);
  EXPECT_FALSE(plan_within(problem, 138 * kGiB).product->operands_ready);
}

TEST(CudaPlan, ProductsWhereTheySuit) {
  const auto engine = [](const SearchTask& problem) { return plan_within(problem, 138 * kGiB).engine(); };
  SearchTask problem = million();
  EXPECT_EQ(engine(problem), CudaEngine::product);
  problem.shape.metric = Metric::l1;
  EXPECT_EQ(engine(problem), CudaEngine::direct);
  problem = million();
  problem.shape.rows = problem.rows = 300;
  EXPECT_EQ(engine(problem), CudaEngine::direct);
  problem.shape.rows = problem.rows = 1000;
  EXPECT_EQ(engine(problem), CudaEngine::product);
  problem.shape.queries = 100;
  EXPECT_EQ(engine(problem), CudaEngine::direct);
  problem = million();
  problem.shape.cols = 100000;
  EXPECT_EQ(engine(problem), CudaEngine::direct);
  DeviceInfo old = h200();
  old.compute_capability = 75;
  EXPECT_EQ(plan_knn_cuda(million(), old, {kNoLimit, 138 * kGiB, 2}).engine(), CudaEngine::direct);
  old.compute_capability = 86;
  EXPECT_EQ(plan_knn_cuda(million(), old, {kNoLimit, 138 * kGiB, 2}).product->engine, ProductEngine::mma);
}

TEST(CudaPlan, FewQueriesOfRowsOnTheDeviceNeedNoOperands) {
  SearchTask problem = million();
  problem.shape.queries = 64;
  problem.shape.base_space = MemorySpace::cuda(0);
  const auto engine = [&](int compute_capability = 90) {
    DeviceInfo device = h200();
    device.compute_capability = compute_capability;
    const KnnCudaPlan plan = plan_knn_cuda(problem, device, {kNoLimit, 138 * kGiB, 2});
    expect_sound(problem, plan, device);
    return plan.engine();
  };
  EXPECT_EQ(engine(), CudaEngine::direct);
  EXPECT_EQ(engine(80), CudaEngine::product);  // its matrix units multiply no tiles of doubles
  EXPECT_EQ(engine(89), CudaEngine::product);  // few double-precision units
  problem.shape.queries = 65;
  EXPECT_EQ(engine(), CudaEngine::product);
  problem.shape.queries = 1;
  problem.prepared = true;  // an index has the operands
  EXPECT_EQ(engine(), CudaEngine::product);
  problem.prepared = false;
  problem.shape.base_space = {};  // the copy takes longer than either
  EXPECT_EQ(engine(), CudaEngine::product);
}

TEST(CudaPlan, FewQueriesOfARangeThatStaysOnTheDeviceNeedNoOperands) {
  SearchTask problem = million();
  problem.request.what = Wanted::within;
  problem.k = 256;
  problem.request.k = 0;
  problem.shape.queries = 16;
  problem.shape.base_space = MemorySpace::cuda(0);
  EXPECT_EQ(plan_within(problem, 138 * kGiB).engine(), CudaEngine::product);  // for the host
  problem.request.result_space = MemorySpace::cuda(0);
  const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
  EXPECT_EQ(plan.engine(), CudaEngine::direct);
  EXPECT_EQ(plan.row_tile, problem.rows);  // one tile, so that nothing is put together
  EXPECT_EQ(plan.device_bytes, RangeWorkspace(problem, plan).bytes);
  problem.shape.queries = 65;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).engine(), CudaEngine::product);
}

TEST(CudaPlan, VeryWideRowsHaveRoomForMoreCandidates) {
  SearchTask problem = million();
  problem.shape.rows = problem.rows = 20000;
  problem.shape.cols = 8192;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).engine(), CudaEngine::product);
  EXPECT_EQ(second_of(plan_within(problem, 138 * kGiB)).candidates.capacity, 1024);
  problem.shape.query_dtype = problem.shape.base_dtype = DType::u8;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).product->operands, OperandType::half);  // sums of bytes would not fit
  problem.shape.cols = 8000;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).product->operands, OperandType::bytes);
  problem.shape.cols = 16385;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).engine(), CudaEngine::direct);
}

TEST(CudaPlan, FewQueriesOfWideRowsAreMultipliedAsTheyLie) {
  SearchTask problem = million();
  problem.shape.cols = 768;
  problem.shape.queries = 100;
  const auto streams = [&] { return plan_within(problem, 138 * kGiB).product->streams(); };
  EXPECT_TRUE(streams());
  for (int64_t budget = 138 * kGiB; budget >= kGiB / 16; budget = budget * 2 / 3) {
    const KnnCudaPlan plan = plan_within(problem, budget);
    expect_sound(problem, plan);
    EXPECT_LE(plan.device_bytes, budget);
  }
  problem.shape.queries = 129;
  EXPECT_FALSE(streams());
  problem.shape.queries = 100;
  problem.shape.base_dtype = DType::u8;
  EXPECT_FALSE(streams());
  problem.shape.base_dtype = DType::f16;
  EXPECT_TRUE(streams());
  problem.shape.cols = 128;
  EXPECT_FALSE(streams());
  problem.shape.cols = 768;
  problem.prepared = true;  // its operands are there
  EXPECT_FALSE(streams());
}

TEST(CudaPlan, DistancesOnTheDeviceAreWrittenInPlace) {
  SearchTask problem = million();
  problem.request.what = Wanted::all_keys;
  problem.request.k = problem.k = 0;
  problem.shape.base_space = problem.shape.query_space = MemorySpace::cuda(0);
  const KnnCudaPlan staged = plan_within(problem, 138 * kGiB);
  problem.request.result_space = MemorySpace::cuda(0);
  const KnnCudaPlan in_place = plan_within(problem, 138 * kGiB);
  expect_sound(problem, in_place);
  EXPECT_EQ(in_place.row_tile, problem.shape.rows);
  EXPECT_EQ(in_place.query_tile, problem.shape.queries);
  EXPECT_LE(in_place.device_bytes, staged.device_bytes - staged.query_tile * staged.row_tile * 4);
}

TEST(CudaPlan, SmallKTakesWholeGroupsAndLargeKASecondProduct) {
  SearchTask problem = million();
  const KnnCudaPlan small = plan_within(problem, 138 * kGiB);
  EXPECT_GT(std::get<GroupedProduct>(small.product->way).selected.count, 10);
  problem.k = problem.request.k = 100;
  EXPECT_EQ(second_of(plan_within(problem, 138 * kGiB)).candidates.capacity, 328);
  EXPECT_EQ(second_of(plan_within(problem, 138 * kGiB)).selected->count, 100);
  problem.k = problem.request.k = 1000;
  EXPECT_GE(second_of(plan_within(problem, 138 * kGiB)).candidates.capacity, 2000);
  EXPECT_FALSE(second_of(plan_within(problem, 138 * kGiB)).selected);
}

TEST(CudaPlan, FewRowsAndManyQueriesTakeTheCoarsePath) {
  const auto plan_of = [](int64_t queries, int64_t rows, int64_t k) {
    SearchTask problem = million();
    problem.shape.queries = queries;
    problem.shape.rows = problem.rows = rows;
    problem.k = problem.request.k = k;
    const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
    expect_sound(problem, plan);
    return plan;
  };
  for (const int64_t rows : {1000, 1024, 4096, 16384, 65536}) {
    for (const int64_t k : {1, 10, 32, 100, 128}) {
      const KnnCudaPlan plan = plan_of(10000, rows, k);
      SCOPED_TRACE(::testing::Message() << rows << " rows, k " << k);
      EXPECT_EQ(plan.engine(), CudaEngine::product);
      EXPECT_EQ(plan.product->queries, 10000);
      ASSERT_TRUE(is_coarse(plan));
      const int64_t minima = part_count(rows, coarse_of(plan).rows_per_minimum);
      EXPECT_LE(minima, kCoarseMostMinima);
      EXPECT_LE(rows_below_kth(k, minima), 1.16 * static_cast<double>(k) + 4);
      EXPECT_GE(static_cast<double>(coarse_of(plan).room), 1.2 * rows_below_kth(k, minima));
      EXPECT_GT(plan.product->retry.capacity, 0);
    }
  }
  EXPECT_EQ(coarse_of(plan_of(10000, 4096, 128)).rows_per_minimum, 8);
  EXPECT_EQ(coarse_of(plan_of(10000, 1024, 128)).rows_per_minimum, 2);
  EXPECT_EQ(coarse_of(plan_of(10000, 65536, 10)).rows_per_minimum, 64);
  EXPECT_FALSE(is_coarse(plan_of(10000, 70000, 10)));
  EXPECT_FALSE(is_coarse(plan_of(100, 65536, 10)));
  EXPECT_EQ(plan_of(10000, 4096, 2000).engine(), CudaEngine::direct);  // half of all: as quick to compute every key
  EXPECT_EQ(plan_of(10000, 4096, 4096).engine(), CudaEngine::direct);
}

TEST(CudaPlan, CandidatesAreReRankedByTilesOfRowsWhereEachHasSome) {
  const auto by_tiles = [](int64_t queries, int64_t rows, int64_t k, int64_t cols = 128, DType dtype = DType::f32) {
    SearchTask problem = million();
    problem.shape.queries = queries;
    problem.shape.rows = problem.rows = rows;
    problem.shape.cols = cols;
    problem.shape.query_dtype = problem.shape.base_dtype = dtype;
    problem.k = problem.request.k = k;
    const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
    expect_sound(problem, plan);
    EXPECT_TRUE(is_coarse(plan));
    return coarse_of(plan).row_tile_bytes.has_value();
  };
  for (const int64_t k : {60, 100, 128}) {
    EXPECT_TRUE(by_tiles(10000, 1024, k)) << k;
    EXPECT_TRUE(by_tiles(10000, 4096, k)) << k;
    EXPECT_FALSE(by_tiles(10000, 4096, k, 129)) << k;
    EXPECT_FALSE(by_tiles(10000, 4096, k, 128, DType::f16)) << k;
    EXPECT_FALSE(by_tiles(1000, 4096, k)) << k;
  }
  EXPECT_FALSE(by_tiles(10000, 4096, 1));
  EXPECT_FALSE(by_tiles(10000, 4096, 300));  // too many for a warp to sort
  EXPECT_FALSE(by_tiles(10000, 65536, 128));
}

TEST(CudaPlan, TheCoarsePathFitsSmallBudgets) {
  SearchTask problem = million();
  problem.shape.queries = 700;
  problem.shape.rows = problem.rows = 20000;
  problem.shape.cols = 32;
  problem.k = problem.request.k = 25;
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    problem.shape.metric = metric;
    for (const int64_t budget : {int64_t{12} << 20, int64_t{24} << 20, int64_t{96} << 20}) {
      const KnnCudaPlan plan = plan_within(problem, budget);
      expect_sound(problem, plan);
      EXPECT_LE(plan.device_bytes, budget);
      EXPECT_TRUE(is_coarse(plan));
    }
  }
}

TEST(CudaPlan, ProductsForLargeKWhereGroupsAndSharedMemorySuffice) {
  const auto engine = [](int64_t k, int64_t rows, int compute_capability = 90, int64_t cols = 128) {
    SearchTask problem = million();
    problem.k = problem.request.k = k;
    problem.shape.rows = problem.rows = rows;
    problem.shape.cols = cols;
    DeviceInfo device = h200();
    device.compute_capability = compute_capability;
    const KnnCudaPlan plan = plan_knn_cuda(problem, device, {kNoLimit, 138 * kGiB, 2});
    expect_sound(problem, plan, device);
    return plan.engine();
  };
  for (const int64_t k : {1024, 1025, 2048, 4096, 8192, 16384}) EXPECT_EQ(engine(k, 1000000), CudaEngine::product) << k;
  EXPECT_EQ(engine(30000, 100000000), CudaEngine::direct);  // no block can sort so many
  EXPECT_EQ(engine(2048, 100000), CudaEngine::product);
  EXPECT_EQ(engine(2048, 90000), CudaEngine::product);   // three groups for two neighbours: smaller ones
  EXPECT_EQ(engine(8192, 90000), CudaEngine::direct);    // three of the smallest for two neighbours
  EXPECT_EQ(engine(24000, 400000), CudaEngine::direct);  // more of the smallest than a block looks at
  EXPECT_EQ(engine(8192, 1000000, 89), CudaEngine::product);
  EXPECT_EQ(engine(16384, 1000000, 89), CudaEngine::direct);
  EXPECT_EQ(engine(8192, 1000000, 89, 8000), CudaEngine::direct);  // the query takes most of the memory
  EXPECT_EQ(engine(1024, 1000000, 89, 8000), CudaEngine::product);
}

TEST(CudaPlan, SmallerGroupsWhereKIsLargeBesideTheRows) {
  SearchTask problem = million();
  problem.shape.queries = 2000;
  problem.shape.rows = problem.rows = 100000;
  const auto planned = [&](int64_t k) {
    problem.k = problem.request.k = k;
    const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
    expect_sound(problem, plan);
    return plan;
  };
  EXPECT_GE(rows_per_minimum(planned(1000)), 32);
  EXPECT_GE(rows_per_minimum(planned(2048)), 32);
  const KnnCudaPlan many = planned(5000);
  EXPECT_EQ(many.engine(), CudaEngine::product);
  EXPECT_EQ(rows_per_minimum(many), 8);
  EXPECT_GT(static_cast<double>(second_of(many).candidates.room), 1.2 * rows_below_kth(5000, part_count(100000, 8)));
  problem.shape.queries = 64;
  EXPECT_EQ(planned(5000).engine(), CudaEngine::direct);  // every key is soon computed
}

TEST(CudaPlan, TwoBlocksShareAMultiprocessorWhereThatIsEnough) {
  SearchTask problem = million();
  problem.k = problem.request.k = 8192;
  const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
  const CandidateRoom candidates = second_of(plan).candidates;
  EXPECT_GT(candidates.capacity, 16384);
  EXPECT_LE(2 * (rerank_bytes(candidates.room, 128) + 1024), 228 << 10);
  EXPECT_GT(candidates.room, 1.2 * rows_below_kth(8192, group_count(1000000, 1)));
  EXPECT_GT(plan.product->retry.room, 28000);
  problem.k = problem.request.k = 2048;
  EXPECT_EQ(second_of(plan_within(problem, 138 * kGiB)).candidates.room, 2 * 2048 + 128);
  problem.k = problem.request.k = 16384;
  EXPECT_GT(second_of(plan_within(problem, 138 * kGiB)).candidates.room, 28000);
}

TEST(CudaPlan, PiecesAreEqualSoThatNoneHasTooFewGroups) {
  for (const int64_t rows : {1048577, 1100000, 2500000, 5000000}) {
    SearchTask problem = million();
    problem.shape.rows = problem.rows = rows;
    problem.k = problem.request.k = 4096;
    const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
    expect_sound(problem, plan);
    EXPECT_EQ(plan.engine(), CudaEngine::product);
    const int64_t pieces = divide_up(rows, plan.product->rows);
    EXPECT_EQ(pieces, divide_up(rows, int64_t{1} << 20));
    EXPECT_GE(rows - (pieces - 1) * plan.product->rows, plan.product->rows * 9 / 10) << "the last piece";
  }
}

TEST(CudaPlan, ChunksOfAFileHaveGroupsForALargeK) {
  SearchTask problem = million();
  problem.shape.base_in_memory = false;
  EXPECT_LE(plan_within(problem, 138 * kGiB).base_chunk * 128 * 4, int64_t{64} << 20);
  problem.k = problem.request.k = 8192;
  const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
  EXPECT_EQ(plan.engine(), CudaEngine::product);
  EXPECT_GE(group_count(plan.base_chunk, 1), 3 * problem.k / 2);
  EXPECT_EQ(plan.base_chunk, 500000);
  const int64_t limit = plan.host_bytes / 2;  // which comes before
  EXPECT_LE(plan_within(problem, 138 * kGiB, limit).host_bytes, limit);
}

TEST(CudaPlan, ListsOfVeryManyQueriesLeaveRoomForProducts) {
  SearchTask problem = million();
  problem.shape.queries = 1000000;
  problem.k = problem.request.k = 4096;
  const KnnCudaPlan plan = plan_within(problem, 20 * kGiB);  // the lists alone would take 30.5
  expect_sound(problem, plan);
  EXPECT_LE(plan.device_bytes, 20 * kGiB);
  EXPECT_GE(plan.product->queries, 2048);
  EXPECT_EQ(plan.product->rows, 1000000);
}

TEST(CudaPlan, FilesAreReadInChunksWithinTheHostLimit) {
  SearchTask problem = million();
  problem.shape.queries_in_memory = false;
  problem.shape.base_in_memory = false;
  problem.request.results_in_memory = false;
  for (const int64_t limit : {int64_t{256} << 20, int64_t{16} << 20, int64_t{1} << 20, int64_t{36} << 10}) {
    const KnnCudaPlan plan = plan_within(problem, 138 * kGiB, limit);
    expect_sound(problem, plan);
    EXPECT_LE(plan.host_bytes, limit);
    EXPECT_GE(plan.host_bytes, plan.base_chunk * 128 * 4 + plan.query_batch * (128 * 4 + 10 * 20));
  }
  EXPECT_GT(plan_within(problem, 138 * kGiB, 100).host_bytes, 100);
}

TEST(CudaPlan, ExtremeShapes) {
  for (const int64_t queries : {int64_t{0}, int64_t{1}, int64_t{100000000}}) {
    for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{2147483647}}) {
      for (const int64_t cols : {int64_t{1}, int64_t{1000000}}) {
        SearchTask problem;
        problem.shape.queries = queries;
        problem.shape.rows = problem.rows = rows;
        problem.shape.cols = cols;
        problem.k = problem.request.k = 100;
        problem.shape.query_dtype = DType::u8;
        SCOPED_TRACE(::testing::Message() << queries << " x " << rows << " x " << cols);
        const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
        expect_sound(problem, plan);
        EXPECT_LE(plan.device_bytes, 138 * kGiB);
      }
    }
  }
}

TEST(CudaPlan, RangesFitEveryBudgetDownToTheSmallest) {
  for (const Metric metric : {Metric::cosine, Metric::l1}) {
    SearchTask problem = million();
    problem.shape.metric = metric;
    problem.request.what = Wanted::within;
    problem.k = 256;
    problem.request.k = 0;
    const int64_t smallest = plan_within(problem, 0).device_bytes;
    for (int64_t budget = 138 * kGiB; budget >= smallest; budget = budget * 2 / 3) {
      const KnnCudaPlan plan = plan_within(problem, budget);
      EXPECT_EQ(plan.device_bytes, RangeWorkspace(problem, plan).bytes);
      EXPECT_LE(plan.device_bytes, budget);
      EXPECT_GE(plan.hits, plan.row_tile);  // all of one query's
      if (plan.product) {
        EXPECT_GE(plan.hits, std::get<RangeProduct>(plan.product->way).candidates.capacity);
      }
    }
    EXPECT_EQ(plan_within(problem, smallest).device_bytes, smallest);
    EXPECT_LT(plan_within(problem, 138 * kGiB).device_bytes, 2 * kGiB);
    EXPECT_EQ(plan_within(problem, 138 * kGiB).engine(),
              metric == Metric::cosine ? CudaEngine::product : CudaEngine::direct);
  }
}

TEST(CudaPlan, ACustomMetricIsComputedDirectly) {
  SearchTask problem = million();
  problem.request.what = Wanted::all_keys;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).engine(), CudaEngine::direct);
}

}  // namespace
}  // namespace kith
