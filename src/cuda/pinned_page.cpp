#include "cuda/pinned_page.hpp"

#include "cuda/error.hpp"

#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Pages that no call uses, of each device; a forked child begins with none. Never destroyed: at exit the driver is gone
// before static objects are.
struct IdlePages {
  std::mutex mutex;
  pid_t process = getpid();
  std::map<int, std::vector<std::unique_ptr<PinnedPage::Memory>>> pages;

  // Under the mutex.
  std::vector<std::unique_ptr<PinnedPage::Memory>>& of(int device) {
    if (process != getpid()) {
      for (auto& [number, some] : pages) {
        for (auto& page : some) (void)page.release();  // the parent's
      }
      pages.clear();
      process = getpid();
    }
    return pages[device];
  }
};

IdlePages& idle_pages() {
  static IdlePages* const instance = new IdlePages;
  return *instance;
}

std::unique_ptr<PinnedPage::Memory> make_page() {
  constexpr auto kBytes = static_cast<size_t>(PinnedPage::kUpBytes + PinnedPage::kDownBytes);
  auto made = std::make_unique<PinnedPage::Memory>();
  void* memory = nullptr;
  KITH_CUDA_CHECK(cudaHostAlloc(&memory, kBytes, cudaHostAllocPortable));
  made->host = static_cast<std::byte*>(memory);
  KITH_CUDA_CHECK(cudaMalloc(&memory, sizeof(PinnedPage::Words)));
  made->words = static_cast<PinnedPage::Words*>(memory);
  KITH_CUDA_CHECK(cudaMemset(memory, 0xFF, sizeof(PinnedPage::Words)));
  KITH_CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));  // streams of callers' may not wait for it
  return made;
}

}  // namespace

PinnedPage::Memory::~Memory() {
  if (words != nullptr) (void)cudaFree(words);
  if (host != nullptr) (void)cudaFreeHost(host);
}

PinnedPage::PinnedPage(int device) : device_(device) {
  IdlePages& idle = idle_pages();
  {
    const std::lock_guard lock(idle.mutex);
    auto& pages = idle.of(device);
    if (!pages.empty()) {
      memory_ = std::move(pages.back());
      pages.pop_back();
      return;
    }
  }
  memory_ = make_page();
}

PinnedPage::~PinnedPage() {
  if (user_ != nullptr) (void)cudaStreamSynchronize(user_);
  constexpr size_t kMostIdle = 16;
  IdlePages& idle = idle_pages();
  const std::lock_guard lock(idle.mutex);
  auto& pages = idle.of(device_);
  if (pages.size() < kMostIdle) pages.push_back(std::move(memory_));
}

}  // namespace kith
