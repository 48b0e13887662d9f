#include "cuda/row_upload.hpp"

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "cuda/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

// Two halves of pinned memory.
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

}  // namespace

bool wants_pinned(MemorySpace space, int64_t bytes, const Resources& resources) {
  return space.kind == MemoryKind::host && bytes >= kPinnedBytes && !only_counts(resources) &&
         resources.host_memory()->available() > 2 * kPinnedBytes;
}

RowUpload::RowUpload(bool pinned, const Resources& resources, int64_t gather_bytes)
    : resources_(resources), gathered_(pinned ? 0 : gather_bytes, "rows on their way to a GPU", resources) {
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
  for (const std::optional<Event>& copied : copied_) {
    if (copied) copied->wait_quietly();  // the stage is free for others
  }
  resources_.host_memory()->release(kPinnedBytes);
  keep_stage(std::move(stage_));
}

void RowUpload::copy(const MatrixView& rows, std::byte* target, cudaStream_t stream, ProgressMeter& meter) {
  if (rows.empty() || is_counted_only(stream)) return;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const bool staged = stage_ != nullptr && rows.space().kind == MemoryKind::host &&
                      row_bytes <= PinnedStage::kHalfBytes && rows.rows() * row_bytes >= PinnedStage::kHalfBytes / 4;
  if (staged) {
    copy_staged(rows, {nullptr, 0, rows.rows()}, target, stream, meter);
  } else {
    copy_plain(rows, target, stream);
  }
}

void RowUpload::copy(const MatrixView& rows, const RowPicks& picks, std::byte* target, cudaStream_t stream,
                     ProgressMeter& meter) {
  if (is_counted_only(stream)) return;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  if (stage_ != nullptr && row_bytes <= PinnedStage::kHalfBytes) {
    return copy_staged(rows, picks, target, stream, meter);
  }
  const int64_t most = gathered_.bytes() / row_bytes;
  for (int64_t first = 0; first < picks.count;) {
    const int64_t count = most > 0 ? std::min(most, picks.count - first) : 1;
    const void* from = rows.row(picks.list[first] - picks.first_listed);  // one row goes as it is
    if (count > 1) {
      fill(rows, {picks.list + first, picks.first_listed, count}, gathered_.data(), meter);
      from = gathered_.data();
    }
    // From ordinary memory: what is copied has been read when this returns.
    KITH_CUDA_CHECK(cudaMemcpyAsync(target + first * row_bytes, from, static_cast<size_t>(count * row_bytes),
                                    cudaMemcpyHostToDevice, stream));
    first += count;
  }
}

// Puts the picked rows one after the other, with all threads.
void RowUpload::fill(const MatrixView& rows, const RowPicks& picks, std::byte* target, ProgressMeter& meter) const {
  constexpr int64_t kTaskBytes = 1 << 20;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const int64_t task_rows = std::max<int64_t>(kTaskBytes / row_bytes, 1);
  const bool whole = picks.list == nullptr && rows.row_stride() == rows.cols();
  parallel_for(divide_up(picks.count, task_rows), meter, resources_, [&](int64_t task, int) {
    const int64_t begin = task * task_rows;
    const int64_t end = std::min(begin + task_rows, picks.count);
    if (whole) {
      std::memcpy(target + begin * row_bytes, rows.row(begin), static_cast<size_t>((end - begin) * row_bytes));
      return;
    }
    const bool packed = rows.row_stride() == rows.cols();
    for (int64_t i = begin; i < end;) {
      const int64_t row = picks.list == nullptr ? i : picks.list[i] - picks.first_listed;
      int64_t run = 1;  // of rows that lie one after the other
      if (packed)
        while (i + run < end && picks.list[i + run] == picks.list[i] + run) ++run;
      std::memcpy(target + i * row_bytes, rows.row(row), static_cast<size_t>(run * row_bytes));
      i += run;
    }
  });
}

void RowUpload::copy_staged(const MatrixView& rows, const RowPicks& picks, std::byte* target, cudaStream_t stream,
                            ProgressMeter& meter) {
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const int64_t half_rows = PinnedStage::kHalfBytes / row_bytes;
  for (int64_t first = 0; first < picks.count; first += half_rows, turn_ ^= 1) {
    const int64_t count = std::min(half_rows, picks.count - first);
    std::byte* const half = stage_->half(turn_);
    if (!copied_[turn_]) copied_[turn_].emplace();
    copied_[turn_]->wait();
    if (picks.list == nullptr) {
      fill(rows.slice(first, count), {nullptr, 0, count}, half, meter);
    } else {
      fill(rows, {picks.list + first, picks.first_listed, count}, half, meter);
    }
    KITH_CUDA_CHECK(cudaMemcpyAsync(target + first * row_bytes, half, static_cast<size_t>(count * row_bytes),
                                    cudaMemcpyHostToDevice, stream));
    copied_[turn_]->record(stream);
  }
}

}  // namespace kith
