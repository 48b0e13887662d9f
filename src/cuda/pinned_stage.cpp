#include "cuda/pinned_stage.hpp"

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_copy.hpp"
#include "core/within_limits.hpp"
#include "cuda/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

class PinnedStage::Memory {
 public:
  Memory() { KITH_CUDA_CHECK(cudaHostAlloc(&memory_, static_cast<size_t>(kPinnedBytes), cudaHostAllocPortable)); }
  ~Memory() { (void)cudaFreeHost(memory_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* half(int i) const { return static_cast<std::byte*>(memory_) + i * kHalfBytes; }

 private:
  void* memory_ = nullptr;
};

namespace {

using StageMemory = std::unique_ptr<PinnedStage::Memory>;

// Idle stages, kept for later calls; a forked child begins with none. Never destroyed: at exit the driver is unloaded
// before static objects.
struct IdleStages {
  std::mutex mutex;
  pid_t process = getpid();
  std::vector<StageMemory> stages;

  // Requires the mutex.
  void leave_parent() {
    if (process == getpid()) return;
    for (auto& stage : stages) (void)stage.release();  // the parent's
    stages.clear();
    process = getpid();
  }
};

IdleStages& idle_stages() {
  static IdleStages* const instance = new IdleStages;
  return *instance;
}

StageMemory take_stage() {
  IdleStages& idle = idle_stages();
  {
    const std::lock_guard lock(idle.mutex);
    idle.leave_parent();
    if (!idle.stages.empty()) {
      StageMemory stage = std::move(idle.stages.back());
      idle.stages.pop_back();
      return stage;
    }
  }
  return std::make_unique<PinnedStage::Memory>();
}

void keep_stage(StageMemory stage) {
  constexpr size_t kMostIdle = 8;  // one for each of several devices or parts that work at the same time
  IdleStages& idle = idle_stages();
  const std::lock_guard lock(idle.mutex);
  idle.leave_parent();
  if (idle.stages.size() < kMostIdle) idle.stages.push_back(std::move(stage));
}

}  // namespace

bool wants_pinned(MemorySpace space, int64_t bytes, const Resources& resources) {
  return space.kind == MemoryKind::host && bytes >= kPinnedBytes && !counts_only(resources) &&
         resources.host_memory()->available() > 2 * kPinnedBytes;
}

PinnedStage::PinnedStage(const Resources& resources) : resources_(resources) {
  resources_.host_memory()->reserve(kPinnedBytes, "pinned memory for copies to a GPU");
  try {
    memory_ = take_stage();
  } catch (...) {
    resources_.host_memory()->release(kPinnedBytes);
    throw;
  }
}

PinnedStage::~PinnedStage() {
  for (const std::optional<Event>& copied : copied_) {
    if (copied) copied->wait_quietly();  // the stage is free for others
  }
  resources_.host_memory()->release(kPinnedBytes);
  keep_stage(std::move(memory_));
}

std::byte* PinnedStage::half(int i) const { return memory_->half(i); }

void PinnedStage::wait_for(int i) const {
  if (copied_[i]) copied_[i]->wait();
}

void PinnedStage::used_by(cudaStream_t stream, int i) {
  if (!copied_[i]) copied_[i].emplace();
  copied_[i]->record(stream);
}

void copy_to_host_staged(void* to, const void* from, int64_t bytes, const DeviceContext& context,
                         const Resources& resources) {
  if (bytes == 0 || context.counts_only()) return;
  if (!wants_pinned(MemorySpace::host(), bytes, resources)) {
    context.copy(to, from, bytes);
    return context.synchronize();
  }
  constexpr int64_t kHalf = PinnedStage::kHalfBytes;
  const Resources quiet = resources.with_progress({});
  PinnedStage stage(quiet);
  const auto piece = [&](int64_t i) { return std::min(kHalf, bytes - i * kHalf); };
  const auto fetch = [&](int64_t i) {
    const auto turn = static_cast<int>(i % 2);
    context.copy(stage.half(turn), static_cast<const std::byte*>(from) + i * kHalf, piece(i));
    stage.used_by(context.stream(), turn);
  };
  const int64_t pieces = divide_up(bytes, kHalf);
  fetch(0);
  for (int64_t i = 0; i < pieces; ++i) {
    if (i + 1 < pieces) fetch(i + 1);
    const auto turn = static_cast<int>(i % 2);
    stage.wait_for(turn);
    copy_bytes(static_cast<std::byte*>(to) + i * kHalf, stage.half(turn), piece(i), quiet);
  }
}

}  // namespace kith
