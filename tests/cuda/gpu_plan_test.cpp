// When a plan asks the driver what is free, and with how much it plans.
#include "cuda/gpu_plan.hpp"

#include "cuda/parity.hpp"

#include <kith/knn.hpp>

#include <vector>

namespace kith {
namespace {

class CudaGpuPlan : public OnCuda {
 protected:
  struct Plan {
    int64_t host_bytes = 0;
    int64_t device_bytes = 0;
  };

  // What a plan of so many bytes is asked to fit in, in turn.
  static std::vector<int64_t> budgets(int64_t bytes, int64_t limit = INT64_MAX) {
    std::vector<int64_t> seen;
    (void)plan_on_gpu(Device::cuda(0), {INT64_MAX, limit}, [&](const DeviceInfo& gpu, const PlanBudget& budget) {
      EXPECT_EQ(gpu.device, Device::cuda(0));
      seen.push_back(budget.device);
      return Plan{0, bytes};
    });
    return seen;
  }
};

TEST_F(CudaGpuPlan, DevicesAreDescribedWithAndWithoutWhatIsFree) {
  const DeviceInfo now = usable_gpu(Device::cuda(0));
  const DeviceInfo idle = usable_gpu_when_idle(Device::cuda(0));
  EXPECT_EQ(idle.name, now.name);
  EXPECT_EQ(idle.multiprocessors, now.multiprocessors);
  EXPECT_EQ(idle.compute_capability, now.compute_capability);
  EXPECT_EQ(idle.memory_total, now.memory_total);
  EXPECT_EQ(idle.memory_free, idle.memory_total);
  EXPECT_GT(now.memory_free, 0);
  EXPECT_LT(now.memory_free, now.memory_total);  // a context takes some itself
  EXPECT_THROW(usable_gpu_when_idle(Device::cuda(1000)), InvalidArgument);
}

TEST_F(CudaGpuPlan, WhatThePoolHoldsIsNotAskedFor) {
  const Vectors base = random_vectors(DType::f32, 20000, 16, 1);
  (void)knn(base.view().slice(0, 1), base.view(), {.k = 5}, on_cuda());
  EXPECT_GT(idle_pool_bytes(0), 0);  // the workspace of that search
  const int64_t total = usable_gpu_when_idle(Device::cuda(0)).memory_total;
  EXPECT_EQ(budgets(1), (std::vector<int64_t>{total}));
  EXPECT_EQ(budgets(1, 4096), (std::vector<int64_t>{4096}));
}

TEST_F(CudaGpuPlan, MoreIsPlannedWithWhatIsFree) {
  const int64_t total = usable_gpu_when_idle(Device::cuda(0)).memory_total;
  const std::vector<int64_t> asked = budgets(total + 1);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0], total);
  EXPECT_LT(asked[1], total);
  EXPECT_EQ(budgets(total + 1, 4096), (std::vector<int64_t>{4096, 4096}));
}

TEST_F(CudaGpuPlan, WhatFitsNowhereSaysSo) {
  const int64_t total = usable_gpu_when_idle(Device::cuda(0)).memory_total;
  const auto plan_with = [&](const PlanBudget& given) {
    return plan_on_gpu(Device::cuda(0), given, [&](const DeviceInfo&, const PlanBudget&) {
      return Plan{0, total + 1};
    });
  };
  EXPECT_FALSE(plan_fits(plan_with, on_cuda()));
  EXPECT_EQ(least_plan(plan_with, on_cuda()), (Footprint{0, total + 1}));
  EXPECT_THROW(plan_and_reserve<Plan>("a test", plan_with, on_cuda()), OutOfMemory);
}

}  // namespace
}  // namespace kith
