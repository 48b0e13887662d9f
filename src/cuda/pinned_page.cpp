#include "cuda/pinned_page.hpp"

#include "cuda/error.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Pages that no call uses; a forked child begins with none. Never destroyed: at exit the driver is gone before static
// objects are.
struct IdlePages {
  std::mutex mutex;
  pid_t process = getpid();
  std::vector<PinnedPage::Memory> pages;

  // Under the mutex.
  void leave_parents_pages() {
    if (process == getpid()) return;
    for (PinnedPage::Memory& page : pages) (void)page.release();
    pages.clear();
    process = getpid();
  }
};

IdlePages& idle_pages() {
  static IdlePages* const instance = new IdlePages;
  return *instance;
}

}  // namespace

void PinnedPage::Free::operator()(std::byte* memory) const noexcept { (void)cudaFreeHost(memory); }

PinnedPage::PinnedPage() {
  IdlePages& idle = idle_pages();
  {
    const std::lock_guard lock(idle.mutex);
    idle.leave_parents_pages();
    if (!idle.pages.empty()) {
      memory_ = std::move(idle.pages.back());
      idle.pages.pop_back();
      return;
    }
  }
  void* memory = nullptr;
  KITH_CUDA_CHECK(cudaHostAlloc(&memory, static_cast<size_t>(kUpBytes + kDownBytes), cudaHostAllocPortable));
  memory_.reset(static_cast<std::byte*>(memory));
}

PinnedPage::~PinnedPage() {
  if (user_ != nullptr) (void)cudaStreamSynchronize(user_);
  constexpr size_t kMostIdle = 16;
  IdlePages& idle = idle_pages();
  const std::lock_guard lock(idle.mutex);
  idle.leave_parents_pages();
  if (idle.pages.size() < kMostIdle) idle.pages.push_back(std::move(memory_));
}

}  // namespace kith
