// Plans are pure, and what they say goes together: more memory needs no more blocks, more rows no less time.
#include <kith/error.hpp>
#include <kith/work_plan.hpp>

#include "core/cpu_model.hpp"
#include "core/cpu_target.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kith {
namespace {

PlanQuestion billion() {
  return {.rows = 1'000'000'000, .cols = 96, .dtype = DType::u8, .host_memory_limit = int64_t{16} << 30, .gpu = true};
}

TEST(WorkPlan, ABillionRowsAreCutIntoBlocks) {
  const WorkPlan plan = plan_work(billion());
  EXPECT_EQ(plan.method, "cells");
  EXPECT_TRUE(plan.from_disk);
  EXPECT_EQ(plan.result_bytes, int64_t{1'000'000'000} * 10 * 12);
  EXPECT_EQ(plan.phases.size(), 6u);
  EXPECT_GT(plan.phases[4].blocks, 4);
  EXPECT_LE(plan.host_bytes(), int64_t{16} << 30);
  EXPECT_LE(plan.device_bytes(), int64_t{140} << 30);  // of an H200, where no limit is set
  EXPECT_FALSE(plan.advice.empty());
  double sum = 0;
  for (const PlanPhase& phase : plan.phases) sum += phase.seconds;
  EXPECT_EQ(sum, plan.seconds());
}

TEST(WorkPlan, MemoryAndDisksHelp) {
  PlanQuestion question = billion();
  question.device_memory_limit = int64_t{16} << 30;
  const WorkPlan little = plan_work(question);
  question.device_memory_limit *= 4;
  const WorkPlan more = plan_work(question);
  EXPECT_LT(more.phases[4].blocks, little.phases[4].blocks);
  EXPECT_LE(more.seconds(), little.seconds());
  question.disk_read /= 100;
  EXPECT_GT(plan_work(question).seconds(), more.seconds());
  EXPECT_EQ(plan_work(question).phases[4].bound, "reading");
}

TEST(WorkPlan, IdsAloneTakeLessDisk) {
  PlanQuestion question = billion();
  question.probes = 5;
  const WorkPlan whole = plan_work(question);
  question.ids_only = true;
  const WorkPlan plan = plan_work(question);
  EXPECT_EQ(plan.result_bytes, question.rows * 10 * 8);
  EXPECT_EQ(whole.phases[4].disk_bytes - plan.phases[4].disk_bytes, question.rows * 10 * 4);
  EXPECT_LT(plan.disk_bytes(), whole.disk_bytes());
  question.int32_ids = true;
  EXPECT_EQ(plan_work(question).result_bytes, question.rows * 10 * 4);
}

TEST(WorkPlan, ALimitOfTheGpuCutsItsGraphIntoBlocks) {
  PlanQuestion question{.rows = 100'000'000, .cols = 96, .dtype = DType::u8, .recall = 0.95, .probes = 6, .gpu = true};
  EXPECT_FALSE(plan_work(question).from_disk);
  question.device_memory_limit = int64_t{16} << 30;
  const WorkPlan plan = plan_work(question);
  EXPECT_TRUE(plan.from_disk);
  EXPECT_GE(plan.phases[4].blocks, 3);
  EXPECT_LE(plan.phases[4].blocks, 8);
  EXPECT_LE(plan.device_bytes(), int64_t{16} << 30);
  question.probes = 60;
  EXPECT_GT(plan_work(question).phases[4].seconds, plan.phases[4].seconds);
}

// bench/results/h200/graph_from_disk.jsonl: what the RAM disk moved, hashes included, was some 4 and 2.5 GB a second.
TEST(WorkPlan, RunsThatWereMeasuredAreForetold) {
  PlanQuestion question{.rows = 100'000'000, .cols = 96, .dtype = DType::u8, .recall = 0.95, .probes = 5, .gpu = true};
  question.device_memory_limit = int64_t{16} << 30;
  question.disk_read = 4e9;
  question.disk_write = 2.5e9;
  EXPECT_NEAR(plan_work(question).seconds(), 36.65, 0.3 * 36.65);
  question.rows = 10'000'000;
  question.probes = 3;
  question.device_memory_limit = int64_t{2} << 30;
  EXPECT_NEAR(plan_work(question).seconds(), 3.25, 0.3 * 3.25);
}

TEST(WorkPlan, WhatFitsIsInMemory) {
  const WorkPlan plan = plan_work({.rows = 100'000, .cols = 32, .threads = 2});
  EXPECT_FALSE(plan.from_disk);
  EXPECT_EQ(plan.phases.size(), 3u);
  EXPECT_GE(plan.host_bytes(), 100'000 * 32 * 4);
  const WorkPlan exact = plan_work({.rows = 10'000'000, .cols = 32, .recall = 1, .host_memory_limit = 1 << 28});
  EXPECT_EQ(exact.method, "exact");
  EXPECT_TRUE(exact.from_disk);
  EXPECT_GT(exact.phases[0].blocks, 1);
}

TEST(WorkPlan, IndexesGoThroughTheDiskUnderALimit) {
  PlanQuestion question{.rows = 10'000'000, .cols = 128, .factory = "IVF4096,PQ32", .threads = 2};
  const WorkPlan plain = plan_work(question);
  EXPECT_FALSE(plain.from_disk);
  EXPECT_NEAR(static_cast<double>(plain.result_bytes), 362e6, 2e6);
  question.host_memory_limit = int64_t{256} << 20;
  const WorkPlan limited = plan_work(question);
  EXPECT_TRUE(limited.from_disk);
  EXPECT_EQ(limited.phases.back().name, "join");
  EXPECT_EQ(limited.phases[1].blocks, 6);
  EXPECT_LE(limited.host_bytes(), int64_t{256} << 20);
}

// The same question has the same times wherever it is asked: it names the processor.
TEST(WorkPlan, TimesAreThoseOfTheProcessorThatTheQuestionNames) {
  PlanQuestion question{.rows = 10'000'000, .cols = 128, .dtype = DType::u8, .host_memory_limit = int64_t{256} << 20};
  std::vector<double> seconds;
  for (const std::string& target : cpu_targets()) {
    force_cpu_target(target);
    seconds.push_back(plan_work(question).seconds());
  }
  force_cpu_target("");
  EXPECT_EQ(std::vector<double>(seconds.size(), seconds.front()), seconds);
  question.instruction_set = "VNNI";
  EXPECT_LT(plan_work(question).seconds(), seconds.front());
  question.instruction_set = "NEON";
  EXPECT_EQ(plan_work(question).seconds(), seconds.front());
  for (const std::string& target : built_cpu_targets()) EXPECT_TRUE(is_instruction_set(target)) << target;
  question.instruction_set = "vnni";
  EXPECT_THROW(plan_work(question), InvalidArgument);
}

TEST(WorkPlan, RefusesWhatMakesNoSense) {
  EXPECT_THROW(plan_work({.rows = 0, .cols = 3}), InvalidArgument);
  EXPECT_THROW(plan_work({.rows = 10, .cols = 3, .k = 10}), InvalidArgument);
  EXPECT_THROW(plan_work({.rows = 1000, .cols = 3, .factory = "IVFQ"}), InvalidArgument);
  EXPECT_THROW(plan_work({.rows = int64_t{1} << 32, .cols = 3, .factory = "SQ8"}), InvalidArgument);
  EXPECT_THROW(plan_work({.rows = 1000, .cols = 3, .host_memory_limit = 0}), InvalidArgument);
}

}  // namespace
}  // namespace kith
