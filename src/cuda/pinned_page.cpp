#include "cuda/pinned_page.hpp"

#include "cuda/error.hpp"

#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Idle pages, by device and width; a forked child begins with none. Never destroyed: at exit the driver is unloaded
// before static objects.
struct IdlePages {
  std::mutex mutex;
  pid_t process = getpid();
  std::map<std::pair<int, bool>, std::vector<std::unique_ptr<PinnedPage::Memory>>> pages;

  // Requires the mutex.
  std::vector<std::unique_ptr<PinnedPage::Memory>>& of(int device, bool wide) {
    if (process != getpid()) {
      for (auto& [which, some] : pages) {
        for (auto& page : some) (void)page.release();  // the parent's
      }
      pages.clear();
      process = getpid();
    }
    return pages[{device, wide}];
  }
};

IdlePages& idle_pages() {
  static IdlePages* const instance = new IdlePages;
  return *instance;
}

std::unique_ptr<PinnedPage::Memory> make_page(bool wide) {
  // The offset of the room, aligned for any array.
  constexpr int64_t kRoomAt = 256;
  static_assert(sizeof(PinnedPage::Words) <= kRoomAt);
  const int64_t bytes = (wide ? PinnedPage::kWide : 1) * (PinnedPage::kUpBytes + PinnedPage::kDownBytes);
  auto made = std::make_unique<PinnedPage::Memory>();
  void* memory = nullptr;
  KITH_CUDA_CHECK(cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocPortable));
  made->host = static_cast<std::byte*>(memory);
  KITH_CUDA_CHECK(cudaMalloc(&memory, static_cast<size_t>(kRoomAt + PinnedPage::kRoomBytes)));
  made->words = static_cast<PinnedPage::Words*>(memory);
  made->room = static_cast<std::byte*>(memory) + kRoomAt;
  KITH_CUDA_CHECK(cudaMemset(memory, 0xFF, sizeof(PinnedPage::Words)));
  KITH_CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));  // streams of callers' may not wait for it
  return made;
}

}  // namespace

PinnedPage::Memory::~Memory() {
  if (words != nullptr) (void)cudaFree(words);
  if (host != nullptr) (void)cudaFreeHost(host);
}

PinnedPage::PinnedPage(int device, bool wide) : device_(device), wide_(wide) {
  IdlePages& idle = idle_pages();
  {
    const std::lock_guard lock(idle.mutex);
    auto& pages = idle.of(device, wide);
    if (!pages.empty()) {
      memory_ = std::move(pages.back());
      pages.pop_back();
      return;
    }
  }
  memory_ = make_page(wide);
}

PinnedPage::~PinnedPage() {
  if (user_ != nullptr) (void)cudaStreamSynchronize(user_);
  const size_t most_idle = wide_ ? 4 : 16;
  IdlePages& idle = idle_pages();
  const std::lock_guard lock(idle.mutex);
  auto& pages = idle.of(device_, wide_);
  if (pages.size() < most_idle) pages.push_back(std::move(memory_));
}

}  // namespace kith
