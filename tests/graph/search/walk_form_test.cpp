// How a GPU walks for queries: as many warps each as their number leaves room for, always in a form that the walk has
// room for and the same for the same question.
#include "graph/search/walk/walk_task_cuda.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

constexpr int kMultiprocessors = 132;

WalkTaskCuda task_of(int64_t queries, int width, int degree, int beam = 40) {
  WalkTaskCuda task;
  task.places = 1000000;
  task.stride = 128;
  task.degree = degree;
  task.beam = beam;
  task.width = width;
  task.queries.count = queries;
  return task;
}

TEST(WalkForm, FewQueriesWithWideStepsHaveSixteenWarpsEach) {
  for (const int64_t queries : {1, 10, 100, 132}) {
    for (const int width : {2, 4, 8}) {
      const WalkForm form = walk_form(task_of(queries, width, 32), kMultiprocessors);
      EXPECT_EQ(form.warps, 16) << queries << " queries, width " << width;
      EXPECT_FALSE(form.ahead) << queries << " queries, width " << width;
    }
  }
  EXPECT_EQ(walk_form(task_of(1, 4, 16), kMultiprocessors).warps, 16);
  EXPECT_EQ(walk_form(task_of(1, 1, 64), kMultiprocessors).warps, 16);
  EXPECT_EQ(walk_form(task_of(133, 8, 32), kMultiprocessors).warps, 8);
  EXPECT_EQ(walk_form(task_of(1000, 4, 32), kMultiprocessors).warps, 2);
  EXPECT_TRUE(walk_form(task_of(1000, 4, 32), kMultiprocessors).ahead);
  EXPECT_EQ(walk_form(task_of(10000, 2, 32), kMultiprocessors).warps, 1);
}

TEST(WalkForm, StepsOfFewerThan64EdgesLookAheadWithEightWarps) {
  struct Step {
    int width;
    int degree;
  };
  for (const int64_t queries : {1, 10, 100, 132}) {
    for (const Step step : {Step{2, 16}, Step{3, 16}, Step{1, 32}, Step{1, 48}}) {
      const WalkForm form = walk_form(task_of(queries, step.width, step.degree), kMultiprocessors);
      EXPECT_EQ(form.warps, 8) << queries << " queries, " << step.width << " lists of " << step.degree;
      EXPECT_TRUE(form.ahead) << queries << " queries, " << step.width << " lists of " << step.degree;
    }
  }
}

TEST(WalkForm, HasRoomWhereverAWalkHas) {
  int64_t walked = 0;
  for (const int64_t places : {int64_t{1}, int64_t{5000}, int64_t{1} << 30}) {
    for (const int degree : {16, 32, 128}) {
      for (const int beam : {1, 40, 128, 129, 1000, 2500, 4000, 6000}) {
        for (const int64_t stride : {16, 128, 8192, 32768}) {
          for (const int kept : {0, 100}) {
            if (!suits_walk_cuda(places, beam, kept, degree, stride)) continue;
            for (const int64_t queries : {1, 100, 200, 500, 1000, 100000}) {
              for (const int width : {1, 2, 8, 64}) {
                const uint64_t bits = 0;
                WalkTaskCuda task = task_of(queries, width, degree, beam);
                task.places = places;
                task.stride = stride;
                task.kept = kept;
                task.kept_bits = kept > 0 ? &bits : nullptr;
                const WalkForm form = walk_form(task, kMultiprocessors);
                ASSERT_TRUE(form.suits(task)) << form.warps << " warps, beam " << beam << ", stride " << stride;
                ++walked;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(walked, 1000);
}

}  // namespace
}  // namespace kith
