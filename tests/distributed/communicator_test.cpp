#include <kith/communicator.hpp>

#include <kith/error.hpp>

#include "ranks/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using ::testing::HasSubstr;

constexpr int kSizes[] = {1, 2, 3, 4, 5};

std::vector<int32_t> numbers(int64_t count, int32_t first) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Each rank has a part of its own length, one of them none.
std::vector<int64_t> part_bytes(int size) {
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < size; ++rank) bytes.push_back(rank == 1 ? 0 : 4 * (7 + 3 * rank));
  return bytes;
}

TEST(Communicator, SendsMessagesInPiecesAroundARing) {
  for (const int size : kSizes) {
    for (const int64_t piece : {int64_t{1}, int64_t{3}, int64_t{64}, Communicator::kPieceBytes}) {
      run_ranks(
          size,
          [&](Communicator& ranks) {
            const std::vector<int32_t> own = numbers(50, 100 * ranks.rank());
            std::vector<int32_t> other(50);
            const int before = (ranks.rank() + size - 1) % size;
            ranks.send((ranks.rank() + 1) % size, own.data(), 200);
            ranks.receive(before, other.data(), 200);
            EXPECT_EQ(other, numbers(50, 100 * before));
            ranks.barrier();
          },
          piece);
    }
  }
}

TEST(Communicator, BroadcastsAndGathersPartsOfAnyLength) {
  for (const int size : kSizes) {
    for (const int root : {0, size - 1}) {
      run_ranks(
          size,
          [&](Communicator& ranks) {
            std::vector<int32_t> all = numbers(9, ranks.rank() == root ? 5 : 0);
            ranks.broadcast(root, all.data(), 36);
            EXPECT_EQ(all, numbers(9, 5));

            const std::vector<int64_t> bytes = part_bytes(size);
            std::vector<int32_t> expected;
            for (int rank = 0; rank < size; ++rank) {
              const std::vector<int32_t> part = numbers(bytes[static_cast<size_t>(rank)] / 4, 1000 * rank);
              expected.insert(expected.end(), part.begin(), part.end());
            }
            const std::vector<int32_t> own = numbers(bytes[static_cast<size_t>(ranks.rank())] / 4, 1000 * ranks.rank());
            std::vector<int32_t> gathered(expected.size());
            ranks.gather(root, own.data(), bytes, gathered.data());
            if (ranks.rank() == root) {
              EXPECT_EQ(gathered, expected);
            }
            std::vector<int32_t> everywhere(expected.size());
            ranks.all_gather(own.data(), bytes, everywhere.data());
            EXPECT_EQ(everywhere, expected);
          },
          5);
    }
  }
}

TEST(Communicator, GathersLargePartsInPlace) {
  run_ranks(3, [&](Communicator& ranks) {
    constexpr int64_t kCount = 20000;
    std::vector<int32_t> all(3 * kCount);
    const std::vector<int32_t> own = numbers(kCount, ranks.rank() * static_cast<int32_t>(kCount));
    std::copy(own.begin(), own.end(), all.begin() + ranks.rank() * kCount);
    ranks.all_gather(all.data() + ranks.rank() * kCount, std::vector<int64_t>(3, kCount * 4), all.data());
    EXPECT_EQ(all, numbers(3 * kCount, 0));
  });
}

TEST(Communicator, DealsOutEveryStepOnce) {
  for (const int size : kSizes) {
    for (const int64_t steps : {0, 1, 3, 40}) {
      std::mutex mutex;
      std::multiset<int64_t> done;
      run_ranks(size, [&](Communicator& ranks) {
        for (int round = 0; round < 2; ++round) {
          ranks.begin_steps(steps);
          for (int64_t step = ranks.next_step(); step >= 0; step = ranks.next_step()) {
            const std::lock_guard lock(mutex);
            done.insert(step);
          }
        }
      });
      ASSERT_EQ(done.size(), static_cast<size_t>(2 * steps));
      for (int64_t step = 0; step < steps; ++step) EXPECT_EQ(done.count(step), 2u) << step;
    }
  }
}

TEST(Communicator, RefusesPiecesOfNothingAndNoRanks) {
  const auto nothing = [](Communicator&) {};
  EXPECT_THROW(run_ranks(0, nothing), InvalidArgument);
  EXPECT_THROW(run_ranks(2, nothing, 0), InvalidArgument);
}

// The others wait for a message, for a barrier and for a step that never comes.
TEST(Communicator, ARankThatThrowsEndsAll) {
  for (const int thrower : {0, 2}) {
    std::atomic<int> left = 0;
    const auto work = [&](Communicator& ranks) {
      struct Leaves {
        std::atomic<int>& left;
        ~Leaves() { ++left; }
      } const leaves{left};
      if (ranks.rank() == thrower) throw IoError("the disk is gone", "x", 5);
      int32_t value = 0;
      if (ranks.rank() == 1) ranks.receive(thrower, &value, 4);
      ranks.barrier();
    };
    EXPECT_THROW(run_ranks(4, work), IoError);
    EXPECT_EQ(left, 4);
  }
}

TEST(Agreement, AllThrowTheFirstRanksErrorWithItsTypeRankAndHost) {
  for (const int size : {2, 3, 5}) {
    run_ranks(size, [&](Communicator& ranks) {
      const auto work = [&] {
        if (ranks.rank() == 1) throw OutOfMemory("no room", 123);
        if (ranks.rank() > 1) throw InvalidArgument("a later one");
      };
      try {
        together(ranks, work);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const OutOfMemory& error) {
        EXPECT_EQ(error.bytes_needed(), 123);
        EXPECT_EQ(error.what(), "rank 1 on " + ranks.host() + ": no room");
      }
      EXPECT_EQ(together(ranks, [&] { return 3; }), 3);  // and they can go on
      EXPECT_THROW(together(ranks,
                            [&] {
                              if (ranks.rank() == 0) throw CorruptFile("bad", "a.npy", 7);
                            }),
                   CorruptFile);
      EXPECT_THROW(together(ranks, [&] { throw Cancelled(); }), Cancelled);
      EXPECT_THROW(together(ranks, [&] { throw std::runtime_error("else"); }), Error);
    });
  }
}

TEST(Agreement, OneRankThrowsItsErrorAsItIs) {
  run_ranks(1, [&](Communicator& ranks) {
    try {
      together(ranks, [] { throw IoError("as it is", "p", 2); });
    } catch (const IoError& error) {
      EXPECT_STREQ(error.what(), "as it is");
    }
  });
}

TEST(Agreement, RefusesRanksThatWereAskedForDifferentThings) {
  run_ranks(3, [&](Communicator& ranks) {
    check_same_request(ranks, "k = 10");
    try {
      check_same_request(ranks, ranks.rank() == 2 ? "k = 100" : "k = 10");
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 2 on "));
      EXPECT_THAT(error.what(), HasSubstr("k = 100'"));
      EXPECT_THAT(error.what(), HasSubstr("all ranks must be given the same"));
    }
  });
}

TEST(Agreement, PartsAreWholeUnitsAndCoverEverything) {
  for (const int64_t total : {0, 1, 5, 1023, 1024, 1025, 100000}) {
    for (const int64_t unit : {1, 1024}) {
      for (const int size : kSizes) {
        int64_t next = 0;
        for (int rank = 0; rank < size; ++rank) {
          const RankPart part = part_of(total, unit, rank, size);
          EXPECT_EQ(part.first, next);
          EXPECT_TRUE(part.first % unit == 0 || part.count == 0);
          EXPECT_LE(part.count, total / size + 2 * unit);
          next = part.end();
        }
        EXPECT_EQ(next, total);
      }
    }
  }
}

}  // namespace
}  // namespace kith
