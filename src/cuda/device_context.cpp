// The pools and idle streams of a process, for each device. They are never destroyed: at exit the driver is gone before
// static objects are. A forked child, which cannot use its parent's, begins with none.
#include "cuda/device_context.hpp"

#include "cuda/device_guard.hpp"

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
  cudaStream_t freeing = nullptr;
};

struct Cache {
  std::mutex mutex;
  pid_t process = getpid();
  std::map<int, DeviceCache> devices;

  // Under the mutex.
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
  (void)cudaStreamSynchronize(own_->get());  // nothing it copies outlives the memory copied
  constexpr size_t kMostIdle = 16;
  Cache& shared = cache();
  const std::lock_guard lock(shared.mutex);
  DeviceCache& mine = shared.of(device_);
  if (mine.pool.get() == pool_ && mine.idle.size() < kMostIdle) mine.idle.push_back(std::move(own_));
}

std::shared_ptr<const DeviceContext> freeing_context(int device) {
  cudaStream_t stream = nullptr;
  {
    Cache& shared = cache();
    const std::lock_guard lock(shared.mutex);
    DeviceCache& mine = shared.of(device);
    if (mine.freeing == nullptr) {
      const DeviceGuard guard(device);
      // What waits here must not hold up the default stream, as a blocking stream would.
      KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&mine.freeing, cudaStreamNonBlocking));
    }
    stream = mine.freeing;
  }
  return std::make_shared<DeviceContext>(device, stream);
}

int64_t idle_pool_bytes(int device) {
  Cache& shared = cache();
  const std::lock_guard lock(shared.mutex);
  const DeviceCache& mine = shared.of(device);
  return mine.pool == nullptr ? 0 : mine.pool->idle_bytes();
}

}  // namespace kith
