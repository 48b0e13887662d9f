// Plans of k-means for a GPU, made and tested where there is none.
#include "cluster/steps/kmeans_plan.hpp"

#include <kith/error.hpp>
#include <kith/resources.hpp>

#include "cluster/steps/kmeans_workspace_cuda.hpp"
#include "core/host_array.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/matrix/nearest_rows.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "reference/h200.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kMiB = int64_t{1} << 20;

using reference::h200;

struct Problem {
  KMeansShape shape;
  KMeansRequest request;
};

Problem million() {
  Problem problem;
  problem.shape.rows = 1000000;
  problem.shape.cols = 128;
  problem.shape.clusters = 4096;
  problem.request.passes = 20;
  return problem;
}

KMeansPlan plan_within(const Problem& problem, int64_t device, int64_t host = kNoLimit) {
  const KMeansPlan plan = plan_kmeans_cuda(problem.shape, problem.request, h200(), {host, device, 2});
  EXPECT_EQ(plan.device(), Device::cuda(0));
  EXPECT_LE(plan.device_bytes, device);
  EXPECT_LE(plan.host_bytes, host);
  EXPECT_GE(plan.device_bytes,
            KMeansWorkspace(problem.shape, problem.request, plan).bytes + plan.cuda()->search.exact.device_bytes);
  EXPECT_GE(plan.piece_rows, 1);
  EXPECT_TRUE(plan.piece_rows % kSumBlock == 0) << plan.piece_rows;
  return plan;
}

TEST(KMeansPlanCuda, KeepsRowsAndOperandsWhereTheyFit) {
  const KMeansPlan plan = plan_within(million(), 100 * kGiB);
  EXPECT_TRUE(plan.cuda()->rows_stay);
  EXPECT_TRUE(plan.cuda()->operands_stay);
  EXPECT_GE(plan.piece_rows, 1000000);
  EXPECT_EQ(plan.cuda()->search.engine, ProductEngine::wgmma);
}

// Few centres are compared as they are; not many have rows with several about as near marked.
TEST(KMeansPlanCuda, FewCentresTakeNoOperandsAndNotManyNoExactSearch) {
  Problem problem = million();
  problem.shape.space = MemorySpace::cuda(0);
  problem.shape.cols = problem.shape.clusters = 8;
  const KMeansPlan few = plan_within(problem, 100 * kGiB);
  EXPECT_TRUE(few.cuda()->search.is_few());
  EXPECT_FALSE(few.cuda()->search.has_products());
  EXPECT_LT(few.device_bytes, 40 * problem.shape.rows);
  problem.shape.cols = 784;
  problem.shape.clusters = 100;
  const KMeansPlan not_many = plan_within(problem, 100 * kGiB);
  EXPECT_FALSE(not_many.cuda()->search.is_few());
  EXPECT_TRUE(not_many.cuda()->search.has_products());
  EXPECT_EQ(not_many.cuda()->search.exact.device_bytes, 0);
  problem.shape.clusters = 257;
  EXPECT_GT(plan_within(problem, 100 * kGiB).cuda()->search.exact.device_bytes, 0);
}

TEST(KMeansPlanCuda, RowsOnTheDeviceAreNotCopied) {
  Problem problem = million();
  problem.shape.space = MemorySpace::cuda(0);
  const KMeansPlan plan = plan_within(problem, 100 * kGiB);
  EXPECT_FALSE(plan.cuda()->rows_stay);
  EXPECT_TRUE(plan.cuda()->operands_stay);
  EXPECT_EQ(plan.cuda()->pinned_bytes, 0);
  EXPECT_LT(plan.device_bytes, plan_within(million(), 100 * kGiB).device_bytes - 400 * kMiB);
}

TEST(KMeansPlanCuda, LessMemoryLetsOperandsGoThenRowsThenPieces) {
  int64_t before = INT64_MAX;
  bool operands = true;
  bool rows = true;
  for (int64_t budget = 2 * kGiB; budget >= 64 * kMiB; budget = budget * 7 / 8) {
    const KMeansPlan plan = plan_within(million(), budget);
    EXPECT_LE(plan.cuda()->operands_stay, operands);
    EXPECT_LE(plan.cuda()->rows_stay, rows);
    if (plan.cuda()->rows_stay == rows && plan.cuda()->operands_stay == operands) {
      EXPECT_LE(plan.piece_rows, before);
    }
    before = plan.piece_rows;
    operands = plan.cuda()->operands_stay;
    rows = plan.cuda()->rows_stay;
  }
  EXPECT_FALSE(operands);
  EXPECT_FALSE(rows);
}

TEST(KMeansPlanCuda, RowsThatCannotStayComeAhead) {
  Problem problem = million();
  EXPECT_FALSE(plan_within(problem, 100 * kGiB).cuda()->rows_ahead);
  const KMeansPlan plan = plan_within(problem, 300 * kMiB);
  EXPECT_FALSE(plan.cuda()->rows_stay);
  EXPECT_TRUE(plan.cuda()->rows_ahead);
  const KMeansWorkspace layout(problem.shape, problem.request, plan);
  EXPECT_GE(layout.rows_ahead.offset - layout.rows.offset, plan.piece_rows * problem.shape.cols * 4);
  EXPECT_GE(layout.search.offset - layout.rows_ahead.offset, plan.piece_rows * problem.shape.cols * 4);
  problem.shape.space = MemorySpace::cuda(0);
  EXPECT_FALSE(plan_within(problem, 200 * kMiB).cuda()->rows_ahead);
  problem.shape.space = MemorySpace::host();
  problem.request.moves_centres = false;  // one pass, a piece of which at a time is handed out
  EXPECT_FALSE(plan_within(problem, 300 * kMiB).cuda()->rows_ahead);
}

TEST(KMeansPlanCuda, PlusPlusGoesWhereThereIsRoom) {
  Problem problem = million();
  EXPECT_FALSE(plan_within(problem, 100 * kGiB).cuda()->plus_plus);  // nothing is sampled
  problem.request.sampled_rows = 32 * 4096;
  const KMeansPlan roomy = plan_within(problem, 100 * kGiB);
  EXPECT_TRUE(roomy.cuda()->plus_plus);
  problem.request.sampled_rows = 1000000;
  const KMeansPlan tight = plan_within(problem, 200 * kMiB);
  EXPECT_FALSE(tight.cuda()->plus_plus);
  EXPECT_GT(tight.host_bytes, 1000000 * 128);  // the host chooses instead, from packed rows,
  EXPECT_TRUE(tight.start_stays);
  const KMeansPlan tighter = plan_within(problem, 200 * kMiB, 100 * kMiB);  // or packs them anew for each centre
  EXPECT_FALSE(tighter.start_stays);
  EXPECT_FALSE(tighter.cuda()->plus_plus);
  problem.shape.space = MemorySpace::cuda(0);
  EXPECT_LT(plan_within(problem, 100 * kGiB).host_bytes, 100 * kMiB);
}

TEST(KMeansPlanCuda, TooLittleMemorySaysHowMuchWouldDo) {
  const Problem problem = million();
  const auto smallest = [&](int64_t device, int64_t host = kNoLimit) {
    return plan_kmeans_cuda(problem.shape, problem.request, h200(), {host, device, 2});
  };
  const int64_t needed = smallest(100000).device_bytes;
  EXPECT_GT(needed, 100000);
  EXPECT_LE(plan_within(problem, needed).device_bytes, needed);
  EXPECT_GE(smallest(needed - 1).device_bytes, needed);
  EXPECT_GT(smallest(100 * kGiB, 1000).host_bytes, 1000);
}

TEST(KMeansPlanCuda, OneHundredMillionRowsToManyCentres) {
  Problem problem = million();
  problem.shape.rows = 100000000;
  problem.shape.clusters = 85000;
  problem.shape.dtype = DType::f16;
  problem.shape.space = MemorySpace::cuda(0);
  const KMeansPlan plan = plan_within(problem, 100 * kGiB);
  EXPECT_TRUE(plan.cuda()->operands_stay);
  EXPECT_LE(plan.device_bytes, 50 * kGiB);
}

void expect_all_tiles_once(const ProductSchedule& schedule) {
  std::vector<int> seen(static_cast<size_t>(schedule.query_tiles) * static_cast<size_t>(schedule.base_tiles), 0);
  for (int i = 0; i < schedule.count(); ++i) {
    const ProductItem item = schedule.item(i);
    EXPECT_LT(item.first_tile, item.end_tile);
    for (int tile = item.first_tile; tile < item.end_tile; ++tile) {
      ++seen[static_cast<size_t>(item.query_tile) * static_cast<size_t>(schedule.base_tiles) +
             static_cast<size_t>(tile)];
    }
  }
  EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(seen));
}

TEST(KMeansPlanCuda, EveryPieceHasRoomForItsParts) {
  for (const int64_t rows : {1, 256, 257, 5000, 33000, 65536, 65537, 70000, 1000000}) {
    for (const auto& [clusters, cols] :
         {std::pair<int64_t, int64_t>{9, 128}, {200, 128}, {300, 1536}, {1024, 768}, {4096, 1536}, {85000, 128}}) {
      Problem problem = million();
      problem.shape.rows = rows;
      problem.shape.cols = cols;
      problem.shape.clusters = clusters;
      const KMeansPlan plan = plan_within(problem, 100 * kGiB);
      const KMeansWorkspace workspace(problem.shape, problem.request, plan);
      const CentreSearchLayout layout(workspace.search_shape, plan.cuda()->search);
      for (int64_t piece = rows; piece > 0; piece /= 3) {
        const ProductSchedule schedule = schedule_nearest(piece, clusters, cols, 132);
        const int64_t parts = schedule.items / schedule.query_tiles;
        EXPECT_EQ(schedule.items % schedule.query_tiles, 0);
        EXPECT_EQ(schedule.tiles_per_item % 2, 0);
        EXPECT_LE(schedule.base_tiles, parts * schedule.tiles_per_item);
        EXPECT_LE(parts * operand_tiles(piece) * kOperandTile, layout.candidates.count) << piece << " of " << rows;
        expect_all_tiles_once(schedule);
      }
    }
  }
}

TEST(KMeansPlanCuda, LittleWorkIsDoneDirectlyOnceAndListedInFits) {
  Problem problem = million();
  problem.shape.rows = 2000;
  problem.shape.cols = 90;
  problem.shape.clusters = 60;
  const auto settled = [&] { return plan_within(problem, kGiB); };
  const auto plan = [&] { return *settled().cuda(); };
  EXPECT_TRUE(plan().search.has_products() && plan().lists_rows && plan().search.form != AssignForm::pairs);
  problem.shape.clusters = 257;
  EXPECT_TRUE(!plan().lists_rows);
  problem.shape.clusters = 60;
  problem.request.moves_centres = false;
  problem.request.check_finite = true;
  EXPECT_TRUE(plan().search.form == AssignForm::tiles && !plan().search.has_products() && settled().checks_finite);
  problem.request.spherical = true;
  EXPECT_TRUE(plan().search.form == AssignForm::pairs && plan().search.form != AssignForm::tiles &&
              !plan().search.has_products() && settled().checks_finite);
  problem.shape.rows = 20000;
  EXPECT_TRUE(plan().search.form != AssignForm::pairs && plan().search.has_products());
  problem.request.spherical = false;
  EXPECT_TRUE(plan().search.form == AssignForm::tiles);
  problem.shape.clusters = 513;
  problem.shape.rows = 1000;
  EXPECT_TRUE(plan().search.form != AssignForm::tiles && plan().search.form != AssignForm::pairs &&
              plan().search.has_products());
  problem.shape.clusters = 60;
  problem.shape.rows = 60000;
  EXPECT_TRUE(plan().search.form != AssignForm::tiles && plan().search.has_products());
  problem.shape.clusters = 8;  // a read of the rows
  EXPECT_TRUE(plan().search.is_few() && !plan().search.has_products());
  problem.shape.clusters = 60;
  problem.request.moves_centres = true;
  problem.shape.rows = 200000;
  EXPECT_TRUE(!plan().lists_rows);
}

TEST(KMeansPlanCuda, AnOlderGpuOrLongRowsDoWithoutProducts) {
  DeviceInfo old = h200();
  old.compute_capability = 75;
  Problem problem = million();
  EXPECT_FALSE(plan_kmeans_cuda(problem.shape, problem.request, old, {kNoLimit, kGiB, 2}).cuda()->search.has_products());
  old.compute_capability = 80;
  EXPECT_EQ(plan_kmeans_cuda(problem.shape, problem.request, old, {kNoLimit, 10 * kGiB, 2}).cuda()->search.engine,
            ProductEngine::mma);
  problem.shape.cols = 9000;
  problem.shape.rows = 1000;
  problem.shape.clusters = 10;
  EXPECT_FALSE(plan_within(problem, kGiB).cuda()->search.has_products());
}

// Neither asks what this machine's processor is.
TEST(KMeansPlan, ComesFromItsArgumentsAlone) {
  const Problem problem = million();
  PlanBudget budget{kNoLimit, 100 * kGiB, 2, {}};
  const KMeansPlan plain = plan_kmeans_cpu(problem.shape, problem.request, budget);
  EXPECT_EQ(plain.format, PanelFormat::f32);
  budget.cpu.vnni = true;
  const KMeansPlan vnni = plan_kmeans_cpu(problem.shape, problem.request, budget);
  EXPECT_EQ(vnni.format, PanelFormat::rounded);
  EXPECT_LT(vnni.host_bytes, plain.host_bytes);  // a byte for each value of a centre
  EXPECT_EQ(plan_kmeans_cuda(problem.shape, problem.request, h200(), budget).format, PanelFormat::rounded);
}

TEST(KMeansPlanCuda, TheFirstPassLooksAtValuesWhereProductsAreMade) {
  Problem problem = million();
  EXPECT_FALSE(plan_within(problem, 100 * kGiB).checks_finite);
  problem.request.check_finite = true;
  EXPECT_TRUE(plan_within(problem, 100 * kGiB).checks_finite);
  problem.shape.cols = 9000;
  problem.shape.clusters = 9;
  EXPECT_FALSE(plan_within(problem, 100 * kGiB).checks_finite);
  problem.shape.clusters = 8;  // compared pair by pair
  EXPECT_TRUE(plan_within(problem, 100 * kGiB).checks_finite);
}

TEST(KMeansPlanCuda, AutomaticTakesTheGpuWhereItIsFaster) {
  const std::vector<DeviceInfo> gpus{h200()};
  const Counts work = work_of(million().shape, million().request);
  EXPECT_EQ(faster_device(work, 16, gpus), Device::cuda(0));
  EXPECT_EQ(faster_device(work, 16, {}), Device::cpu());
  Problem small = million();
  small.shape.rows = 10000;
  small.shape.clusters = 10;
  const Counts little = work_of(small.shape, small.request);
  EXPECT_FALSE(worth_a_gpu(little, 2));
  EXPECT_EQ(faster_device(little, 2, gpus), Device::cpu());
}

}  // namespace
}  // namespace kith
