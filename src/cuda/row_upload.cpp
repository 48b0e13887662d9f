#include "cuda/row_upload.hpp"

#include "core/memory_budget.hpp"
#include "cuda/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

// Two halves of pinned memory, and when each has last been copied.
class PinnedStage {
 public:
  static constexpr int64_t kHalfBytes = kPinnedBytes / 2;

  PinnedStage() { KITH_CUDA_CHECK(cudaHostAlloc(&memory_, static_cast<size_t>(kPinnedBytes), cudaHostAllocPortable)); }
  ~PinnedStage() { (void)cudaFreeHost(memory_); }
  PinnedStage(const PinnedStage&) = delete;
  PinnedStage& operator=(const PinnedStage&) = delete;

  std::byte* half(int i) const { return static_cast<std::byte*>(memory_) + i * kHalfBytes; }

 private:
  void* memory_ = nullptr;
};

namespace {

// Stages that no upload uses, kept for the next; a forked child begins with none. Never destroyed: at exit the driver
// is gone before static objects are.
struct IdleStages {
  std::mutex mutex;
  pid_t process = getpid();
  std::vector<std::unique_ptr<PinnedStage>> stages;

  // Under the mutex.
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

std::unique_ptr<PinnedStage> take_stage() {
  IdleStages& idle = idle_stages();
  {
    const std::lock_guard lock(idle.mutex);
    idle.leave_parent();
    if (!idle.stages.empty()) {
      auto stage = std::move(idle.stages.back());
      idle.stages.pop_back();
      return stage;
    }
  }
  return std::make_unique<PinnedStage>();
}

void keep_stage(std::unique_ptr<PinnedStage> stage) {
  constexpr size_t kMostIdle = 2;
  IdleStages& idle = idle_stages();
  const std::lock_guard lock(idle.mutex);
  idle.leave_parent();
  if (idle.stages.size() < kMostIdle) idle.stages.push_back(std::move(stage));
}

void copy_plain(const MatrixView& rows, std::byte* target, cudaStream_t stream) {
  constexpr int64_t kLargestPitch = INT32_MAX;  // what a two-dimensional copy takes
  const int64_t size = size_of(rows.dtype());
  const size_t width = static_cast<size_t>(rows.cols() * size);
  const size_t pitch = static_cast<size_t>(rows.row_stride() * size);
  const size_t count = static_cast<size_t>(rows.rows());
  if (width == pitch) {
    KITH_CUDA_CHECK(cudaMemcpyAsync(target, rows.data(), width * count, cudaMemcpyDefault, stream));
  } else if (rows.row_stride() * size <= kLargestPitch) {
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(target, width, rows.data(), pitch, width, count, cudaMemcpyDefault, stream));
  } else {
    for (size_t i = 0; i < count; ++i) {
      KITH_CUDA_CHECK(
          cudaMemcpyAsync(target + i * width, rows.row(static_cast<int64_t>(i)), width, cudaMemcpyDefault, stream));
    }
  }
}

// When what was enqueued before has been done.
class Event {
 public:
  Event() { KITH_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { KITH_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  void wait() const { KITH_CUDA_CHECK(cudaEventSynchronize(event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

bool wants_pinned(MemorySpace space, int64_t bytes) { return space.kind == MemoryKind::host && bytes >= kPinnedBytes; }

RowUpload::RowUpload(bool pinned, const Resources& resources) : resources_(resources) {
  if (!pinned) return;
  resources_.host_memory()->reserve(kPinnedBytes, "pinned memory for copies to a GPU");
  try {
    stage_ = take_stage();
  } catch (...) {
    resources_.host_memory()->release(kPinnedBytes);
    throw;
  }
}

RowUpload::~RowUpload() {
  if (stage_ == nullptr) return;
  resources_.host_memory()->release(kPinnedBytes);
  keep_stage(std::move(stage_));
}

void RowUpload::copy(const MatrixView& rows, std::byte* target, cudaStream_t stream, ProgressMeter& meter) {
  if (rows.empty()) return;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const bool staged = stage_ != nullptr && rows.space().kind == MemoryKind::host &&
                      row_bytes <= PinnedStage::kHalfBytes && rows.rows() * row_bytes >= PinnedStage::kHalfBytes / 4;
  if (staged) {
    copy_staged(rows, target, stream, meter);
  } else {
    copy_plain(rows, target, stream);
  }
}

void RowUpload::copy_staged(const MatrixView& rows, std::byte* target, cudaStream_t stream, ProgressMeter& meter) {
  constexpr int64_t kTaskBytes = 1 << 20;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const int64_t half_rows = PinnedStage::kHalfBytes / row_bytes;
  const int64_t task_rows = std::max<int64_t>(kTaskBytes / row_bytes, 1);
  Event copied[2];
  int turn = 0;
  for (int64_t first = 0; first < rows.rows(); first += half_rows, turn ^= 1) {
    const MatrixView part = rows.slice(first, std::min(half_rows, rows.rows() - first));
    std::byte* const half = stage_->half(turn);
    if (first >= 2 * half_rows) copied[turn].wait();
    parallel_for((part.rows() + task_rows - 1) / task_rows, meter, resources_, [&](int64_t task, int) {
      const int64_t end = std::min((task + 1) * task_rows, part.rows());
      if (part.row_stride() == part.cols()) {
        const int64_t begin = task * task_rows;
        std::memcpy(half + begin * row_bytes, part.row(begin), static_cast<size_t>((end - begin) * row_bytes));
        return;
      }
      for (int64_t i = task * task_rows; i < end; ++i) {
        std::memcpy(half + i * row_bytes, part.row(i), static_cast<size_t>(row_bytes));
      }
    });
    KITH_CUDA_CHECK(cudaMemcpyAsync(target + first * row_bytes, half, static_cast<size_t>(part.rows() * row_bytes),
                                    cudaMemcpyHostToDevice, stream));
    copied[turn].record(stream);
  }
  copied[0].wait();  // the stage is free for others
  if (rows.rows() > half_rows) copied[1].wait();
}

}  // namespace kith
