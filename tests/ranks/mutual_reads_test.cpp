#include "ranks/mutual_reads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace kith {
namespace {

TEST(MutualReads, APartThatThrowsWaitsForItsReaders) {
  const MutualReads reads(2);
  std::optional<MutualReads::Opened> opened(std::in_place, reads, 0);
  std::atomic<bool> reading{false};
  std::atomic<bool> read{false};
  std::thread reader([&] {
    const MutualReads::Reading held(reads, 0);
    reading = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    read = true;
  });
  while (!reading) std::this_thread::yield();
  opened.reset();
  EXPECT_TRUE(read);
  reader.join();
}

TEST(MutualReads, WhatIsNotOpenIsNotRead) {
  const MutualReads reads(2);
  EXPECT_THROW(MutualReads::Reading(reads, 0), OtherRankThrew);
  {
    const MutualReads::Opened opened(reads, 0);
    const MutualReads::Reading first(reads, 0);
    const MutualReads::Reading second(reads, 0);
    EXPECT_THROW(MutualReads::Reading(reads, 1), OtherRankThrew);
  }
  EXPECT_THROW(MutualReads::Reading(reads, 0), OtherRankThrew);
}

}  // namespace
}  // namespace kith
