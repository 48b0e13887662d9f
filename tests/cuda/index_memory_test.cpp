// An index's memory on a GPU: it goes back after what callers' streams still read, and nobody waits for the others.
#include "core/memory_budget.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_data.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/parity.hpp"
#include "cuda/stream_marks.hpp"

#include <kith/index.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kith {
namespace {

class CallersStream {
 public:
  CallersStream() { KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CallersStream() {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
  CallersStream(const CallersStream&) = delete;
  CallersStream& operator=(const CallersStream&) = delete;

  cudaStream_t get() const { return stream_; }
  Resources resources() const { return on_cuda().with_stream(stream_); }
  void synchronize() const { KITH_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// A stream whose work stands still until it is let go; after half a minute by itself, so that a test that waits for it
// fails rather than hangs.
class StoppedStream {
 public:
  StoppedStream() { KITH_CUDA_CHECK(cudaLaunchHostFunc(stream_.get(), &StoppedStream::wait, this)); }
  ~StoppedStream() { (void)let_go(); }
  StoppedStream(const StoppedStream&) = delete;
  StoppedStream& operator=(const StoppedStream&) = delete;

  const CallersStream& stream() const { return stream_; }
  // False where it went by itself before.
  bool let_go() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
    return !gave_up_;
  }

 private:
  static void wait(void* pointer) {
    auto& self = *static_cast<StoppedStream*>(pointer);
    std::unique_lock lock(self.mutex_);
    self.gave_up_ = !self.opened_.wait_for(lock, std::chrono::seconds(30), [&] { return self.open_; });
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
  bool gave_up_ = false;
  CallersStream stream_;  // the last member: its destructor waits for wait()
};

// The sanitizer's runs take these.
class CudaIndexSmall : public OnCuda {};
class CudaIndexGrowth : public OnCuda {};

TEST_F(CudaIndexSmall, MemoryIsFreedAfterTheStreamsThatAreMarked) {
  constexpr size_t kBytes = 8 << 20;
  std::shared_ptr<std::byte> memory = allocate_for_searches(kBytes, "a test", 0, on_cuda());
  KITH_CUDA_CHECK(cudaMemset(memory.get(), 0x5A, kBytes));
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  const DeviceBytes copy(kBytes);
  StoppedStream stopped;
  KITH_CUDA_CHECK(cudaMemcpyAsync(copy.data(), memory.get(), kBytes, cudaMemcpyDeviceToDevice, stopped.stream().get()));
  {
    StreamMarks marks;
    marks.add(mark_stream(0, stopped.stream().resources()));
    marks.add(mark_stream(0, on_cuda()));  // none
  }
  memory = nullptr;
  std::vector<std::shared_ptr<std::byte>> others;  // one of which would get it
  for (int i = 0; i < 4; ++i) {
    others.push_back(allocate_for_searches(kBytes, "a test", 0, on_cuda()));
    const DeviceGuard guard(0);
    const DeviceContext context(0);
    KITH_CUDA_CHECK(cudaMemsetAsync(others.back().get(), 0xFF, kBytes, context.stream()));
    context.synchronize();
  }
  EXPECT_TRUE(stopped.let_go()) << "freeing or taking memory waited for the stream";
  stopped.stream().synchronize();
  std::vector<uint8_t> bytes(kBytes);
  copy.read(bytes.data());
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0x5A), static_cast<std::ptrdiff_t>(kBytes));
}

// Rows that are all equal leave queries to the direct engine, which is enqueued and not waited for.
TEST_F(CudaIndexSmall, SearchesOnACallersStreamOutliveTheIndexAndItsVersions) {
  const Vectors base = make_vectors(9000, 16, [](int64_t, int64_t j) { return static_cast<float>(j); });
  const Vectors noise = random_vectors(DType::f32, 9000, 16, 1);
  const Vectors queries = random_vectors(DType::f32, 40, 16, 2);
  const Neighbors expected = knn(queries.view(), base.view(), {.k = 10}, on_cpu());
  const DeviceMatrix device_base(base);
  const DeviceMatrix device_noise(noise);
  const DeviceMatrix device_queries(queries);
  const CallersStream stream;
  for (const bool prepare : {true, false}) {
    for (const bool on_host : {false, true}) {
      for (int i = 0; i < 3; ++i) {
        DeviceResult result(40, 10);
        {
          Index index("Flat", {.prepare = prepare});
          index.add(on_host ? base.view() : device_base.view(), Ownership::copy, on_cuda());
          index.search(device_queries.view(), result.view, {.k = 10}, stream.resources());
          // A new version, in which the block just searched has been merged and is gone.
          if (i > 0) index.add(on_host ? noise.view() : device_noise.view(), Ownership::copy, on_cuda());
        }
        Index other("Flat", {.prepare = prepare});  // in memory that has become free
        other.add(device_noise.view(), Ownership::copy, on_cuda());
        stream.synchronize();
        expect_same_bytes(expected, result.on_host());
      }
    }
  }
}

TEST_F(CudaIndexSmall, SaysWhatItHoldsAndGivesItBack) {
  const Vectors base = random_vectors(DType::f32, 3000, 24, 3);
  const DeviceMatrix device_base(base);
  for (const bool prepare : {true, false}) {
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::l1}) {
      const Resources resources = on_cuda();
      {
        Index index("Flat", {.metric = metric, .prepare = prepare});
        index.add(device_base.view(), Ownership::copy, resources);
        EXPECT_EQ(index.device(), Device::cuda(0));
        EXPECT_EQ(index.bytes().device, resources.device_memory()->used());
        EXPECT_GE(index.bytes().device, 3000 * 24 * 4);
        EXPECT_EQ(index.bytes().host, 0);
      }
      EXPECT_EQ(resources.device_memory()->used(), 0);
    }
  }
}

TEST_F(CudaIndexSmall, IsSearchedOnManyStreamsWhileItGrows) {
  const Vectors base = random_vectors(DType::f32, 4000, 16, 4);
  const DeviceMatrix device_base(base);
  Index index("Flat");
  index.add(device_base.view().slice(0, 1000), Ownership::copy, on_cuda());
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      const CallersStream stream;
      DeviceResult result(1000, 3);
      do {
        index.search(device_base.view().slice(0, 1000), result.view, {.k = 3}, stream.resources());
        stream.synchronize();
        const Neighbors found = result.on_host();
        for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(found.ids(i)[0], i);
      } while (!done);
    });
  }
  for (int64_t at = 1000; at < 4000; at += 100) {
    index.add(device_base.view().slice(at, 100), Ownership::copy, on_cuda());
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(index.size(), 4000);
}

// Not under the sanitizer, which may wait by itself.
TEST_F(CudaIndexGrowth, WaitsForNoOtherStream) {
  const Vectors base = random_vectors(DType::f32, 3000, 24, 5);
  const Vectors queries = random_vectors(DType::f32, 20, 24, 6);
  const DeviceMatrix device_base(base);
  const DeviceMatrix device_queries(queries);
  const DeviceResult result(20, 5);
  const CallersStream stream;
  const auto use = [&] {
    Index index("Flat");
    for (int64_t at = 0; at < 3000; at += 300) {  // blocks are merged, and freed
      index.add(device_base.view().slice(at, 300), Ownership::copy, on_cuda());
      index.search(device_queries.view(), result.view, {.k = 5}, stream.resources());
    }
    std::vector<float> row(24);
    copy_to_host(device_base.view().row(7), 24 * 4, 0, row.data());
    EXPECT_EQ(std::memcmp(row.data(), base.view().row(7), 24 * 4), 0);
  };
  use();  // so that kernels and memory are there
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  StoppedStream stopped;
  use();
  EXPECT_TRUE(stopped.let_go()) << "the index was waited for until the other stream gave up";
  stream.synchronize();
  expect_same_bytes(knn(queries.view(), base.view(), {.k = 5}, on_cpu()), result.on_host());
}

}  // namespace
}  // namespace kith
