#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/named_limit.hpp"
#include "core/within_limits.hpp"

#include <kith/host_buffer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kith {
namespace {

Resources with_host_limit(int64_t bytes) {
  ResourceOptions options;
  options.threads = 1;
  options.host_memory_limit = bytes;
  return Resources(options);
}

struct TwoArrays {
  HostArray<float> a;
  HostArray<int64_t> b;
  TwoArrays(int64_t n, const Resources& resources) : a(n, "a", resources), b(2 * n, "b", resources) {}
};

TEST(Footprint, ComposesAsTheWorkDoes) {
  const Footprint a{10, 1};
  const Footprint b{4, 7};
  EXPECT_EQ(a.beside(b), (Footprint{14, 8}));
  EXPECT_EQ(a.then(b), (Footprint{10, 7}));
  EXPECT_EQ(b.times(3), (Footprint{12, 21}));
}

TEST(Footprint, SaysNoLimitWhereTheSumCannotBeCounted) {
  const Footprint huge{kNoLimit - 1, 0};
  EXPECT_EQ(huge.beside({5}).host, kNoLimit);
  EXPECT_EQ(huge.times(2).host, kNoLimit);
}

TEST(Footprint, OfAPartThatMayNeedMoreIsALowerBoundOfTheWhole) {
  const Footprint range{5, 0, true};
  EXPECT_TRUE(Footprint{}.beside(range).at_least);
  EXPECT_TRUE(Footprint{}.then(range).times(2).at_least);
}

TEST(Footprint, OfAClassIsWhatItsConstructorAllocates) {
  const Resources resources;
  EXPECT_EQ(footprint_of<TwoArrays>(resources, int64_t{100}), (Footprint{100 * 4 + 200 * 8}));
}

TEST(Footprint, OfACountedPieceOfWorkIsItsPeakAndTakesNothing) {
  const Resources resources = with_host_limit(1);
  const Footprint peak = counted(resources, [](const Resources& counting) {
    const HostBuffer kept(100, "kept", counting);
    { const HostBuffer first(50, "first", counting); }
    const HostBuffer second(70, "second", counting);
  });
  EXPECT_EQ(peak, (Footprint{170}));
}

TEST(WithinLimits, NamesTheLimitThatWorksAndTheSameOneForAByteLess) {
  const auto call = [](const Resources& resources) {
    return within_limits(
        "the sum", resources, [] { return Footprint{1000}; },
        [&] { return HostBuffer(1000, "numbers", resources).bytes(); });
  };
  for (const int64_t limit : {int64_t{1}, int64_t{999}}) {
    try {
      call(with_host_limit(limit));
      FAIL() << "a limit of " << limit << " did";
    } catch (const NamedLimit& error) {
      EXPECT_EQ(error.bytes_needed(), 1000);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("not enough memory for the sum"));
    }
  }
  EXPECT_EQ(call(with_host_limit(1000)), 1000);
}

TEST(WithinLimits, CountsWhatIsHeldAlready) {
  const Resources resources = with_host_limit(1500);
  const HostBuffer held(600, "held", resources);
  try {
    within_limits(
        "the sum", resources, [] { return Footprint{1000}; }, [] {});
    FAIL() << "the limit did";
  } catch (const NamedLimit& error) {
    EXPECT_EQ(error.bytes_needed(), 1600);
  }
}

TEST(WithinLimits, CountsACallThatMakesRoomForResultsAndCallsAnother) {
  const auto inner = [](const Resources& resources) {
    return within_limits(
        "the sum", resources, [] { return Footprint{300}; }, [] { return 7; });
  };
  bool worked = false;
  const auto outer = [&](const Resources& resources) {
    return within_limits("the whole", resources, [&](const Resources& used) {
      const HostBuffer results(100, "results", used);
      const int value = inner(used);
      worked = true;
      return value;
    });
  };
  try {
    outer(with_host_limit(399));
    FAIL() << "the limit did";
  } catch (const NamedLimit& error) {
    EXPECT_EQ(error.bytes_needed(), 400);
  }
  EXPECT_FALSE(worked);
  EXPECT_EQ(outer(with_host_limit(400)), 7);
}

}  // namespace
}  // namespace kith
