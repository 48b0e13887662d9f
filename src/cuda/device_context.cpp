// The pools and idle streams of a process, for each device. They are never destroyed: at exit the driver is unloaded
// before static objects. A forked child cannot use its parent's and begins with none.
#include "cuda/device_context.hpp"

#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"

#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {
namespace {

struct DeviceCache {
  std::unique_ptr<MemoryPool> pool;
  std::vector<std::unique_ptr<Stream>> idle;
  std::shared_ptr<const DeviceContext> allocation;
  std::shared_ptr<const DeviceContext> freeing;
  std::shared_ptr<const DeviceContext> after_default;
};

struct Cache {
  std::mutex mutex;
  pid_t process = getpid();
  std::map<int, DeviceCache> devices;

  // Requires the mutex.
  DeviceCache& of(int device) {
    if (process != getpid()) {
      new std::map<int, DeviceCache>(std::move(devices));  // the parent's: neither used nor destroyed here
      devices.clear();
      process = getpid();
    }
    return devices[device];
  }
};

Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

}  // namespace

DeviceContext::DeviceContext(int device, void* stream) : device_(device), callers_(static_cast<cudaStream_t>(stream)) {
  Cache& shared = cache();
  const std::lock_guard lock(shared.mutex);
  DeviceCache& mine = shared.of(device);
  if (mine.pool == nullptr) mine.pool = std::make_unique<MemoryPool>(device);
  pool_ = mine.pool.get();
  if (callers_ != nullptr) return;
  if (mine.idle.empty()) {
    own_ = std::make_unique<Stream>();
  } else {
    own_ = std::move(mine.idle.back());
    mine.idle.pop_back();
  }
}

DeviceContext::~DeviceContext() {
  if (own_ == nullptr) return;
  if (!finished_) (void)cudaStreamSynchronize(own_->get());  // nothing it copies outlives the memory copied
  constexpr size_t kMostIdle = 16;
  Cache& shared = cache();
  const std::lock_guard lock(shared.mutex);
  DeviceCache& mine = shared.of(device_);
  if (mine.pool.get() == pool_ && mine.idle.size() < kMostIdle) mine.idle.push_back(std::move(own_));
}

namespace {

// A context on a stream that lives as long as the process, since memory may be freed at any time.
std::shared_ptr<const DeviceContext> lasting_context(int device, unsigned flags,
                                                     std::shared_ptr<const DeviceContext> DeviceCache::*kind) {
  Cache& shared = cache();
  {
    const std::lock_guard lock(shared.mutex);
    if (const auto& known = shared.of(device).*kind; known != nullptr) return known;
  }
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, flags));
  auto made = std::make_shared<const DeviceContext>(device, stream);
  const std::lock_guard lock(shared.mutex);
  auto& known = shared.of(device).*kind;
  if (known == nullptr) known = std::move(made);  // else another thread was first
  return known;
}

}  // namespace

std::shared_ptr<const DeviceContext> work_context(int device, const Resources& resources) {
  void* const stream = resources.options().stream;
  return std::make_shared<const DeviceContext>(device, is_counted_only(stream) ? stream : nullptr);
}

std::shared_ptr<const DeviceContext> allocation_context(int device, const Resources& resources) {
  if (is_counted_only(resources.options().stream)) return work_context(device, resources);
  return lasting_context(device, cudaStreamNonBlocking, &DeviceCache::allocation);
}

std::shared_ptr<const DeviceContext> freeing_context(int device) {
  return lasting_context(device, cudaStreamNonBlocking, &DeviceCache::freeing);
}

std::shared_ptr<const DeviceContext> after_default_context(int device) {
  return lasting_context(device, cudaStreamDefault, &DeviceCache::after_default);
}

int64_t idle_pool_bytes(int device) {
  Cache& shared = cache();
  const std::lock_guard lock(shared.mutex);
  const DeviceCache& mine = shared.of(device);
  return mine.pool == nullptr ? 0 : mine.pool->idle_bytes();
}

}  // namespace kith
