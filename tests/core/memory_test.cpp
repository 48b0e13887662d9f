#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/memory_budget.hpp"
#include "core/peak_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

namespace kith {
namespace {

Resources with_limit(int64_t bytes) {
  ResourceOptions options;
  options.threads = 1;
  options.host_memory_limit = bytes;
  return Resources(options);
}

TEST(HostBuffer, CountsAgainstTheLimitUntilItIsGone) {
  const Resources resources = with_limit(10000);
  {
    const HostBuffer a(6000, "a", resources);
    EXPECT_EQ(resources.host_memory()->used(), 6000);
    try {
      HostBuffer(5000, "the second", resources);
      FAIL() << "the limit was passed";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.bytes_needed(), 5000);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("the second"));
    }
    EXPECT_EQ(resources.host_memory()->used(), 6000);
  }
  EXPECT_EQ(resources.host_memory()->used(), 0);
  const HostBuffer whole(10000, "all of it", resources);
}

TEST(HostBuffer, IsAlignedAndOutlivesItsResources) {
  HostBuffer buffer;
  {
    const Resources resources = with_limit(kNoLimit);
    buffer = HostBuffer((2 << 20) + 1, "a large one", resources);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  buffer.data()[2 << 20] = std::byte{1};
  HostBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.data()[2 << 20], std::byte{1});
}

TEST(HostBuffer, SmallOnesAreAlignedAndWhole) {
  const Resources resources = with_limit(kNoLimit);
  std::vector<HostBuffer> buffers;
  for (const int64_t bytes : {0, 1, 63, 64, 65, 1000, 4095, 4096, 4097, 100000}) {
    for (int i = 0; i < 4; ++i) {
      buffers.emplace_back(bytes, "a small one", resources);
      ASSERT_NE(buffers.back().data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back().data()) % 64, 0u);
      std::memset(buffers.back().data(), static_cast<int>(buffers.size()), static_cast<size_t>(bytes));
    }
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const std::byte* const data = buffers[i].data();
    EXPECT_EQ(std::count(data, data + buffers[i].bytes(), static_cast<std::byte>(i + 1)), buffers[i].bytes());
  }
}

TEST(HostBuffer, AnImpossibleSizeIsOutOfMemory) {
  EXPECT_THROW(HostBuffer(int64_t{1} << 60, "too much", with_limit(kNoLimit)), OutOfMemory);
}

TEST(MatrixBuffer, RefusesShapesThatOverflow) {
  EXPECT_THROW(MatrixBuffer(DType::f32, int64_t{1} << 40, int64_t{1} << 40, "m", with_limit(kNoLimit)),
               InvalidArgument);
  EXPECT_THROW(MatrixBuffer(DType::f32, -1, 4, "m", with_limit(kNoLimit)), InvalidArgument);
}

TEST(PeakMemory, CountsOneCallUnderALimitThatIsShared) {
  const Resources resources = with_limit(10000);
  const HostBuffer others(3000, "another call's", resources);
  HostBuffer kept;
  {
    const PeakMemory call(resources);
    {
      const HostBuffer a(4000, "a", call.resources());
      const HostBuffer b(1000, "b", call.resources());
      EXPECT_EQ(resources.host_memory()->used(), 8000);
      EXPECT_EQ(call.resources().host_memory()->available(), 2000);
      EXPECT_THROW(HostBuffer(2001, "too much", call.resources()), OutOfMemory);
      EXPECT_THROW(HostBuffer(2001, "too much", resources), OutOfMemory);
    }
    kept = HostBuffer(2000, "the result", call.resources());
    EXPECT_EQ(call.host_bytes(), 5000);
    EXPECT_EQ(call.device_bytes(), 0);
  }
  EXPECT_EQ(resources.host_memory()->used(), 5000);
  kept = HostBuffer();
  EXPECT_EQ(resources.host_memory()->used(), 3000);
}

TEST(MemoryBudget, ConcurrentReservationsNeverPassTheLimit) {
  MemoryBudget budget("host", 1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        try {
          budget.reserve(300, "x");
        } catch (const OutOfMemory&) {
          continue;
        }
        EXPECT_LE(budget.used(), 1000);
        budget.release(300);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0);
}

}  // namespace
}  // namespace kith
