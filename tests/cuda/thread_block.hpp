// A block of real threads that runs the cores of kernels on the CPU: what a kernel's threads do between barriers, these
// do, so a wrong index or a missing barrier shows here too (and to ThreadSanitizer).
#pragma once

#include "kernels/select/select_block_cuda.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace kith {

class ThreadBlock {
 public:
  struct Shared {
    explicit Shared(int count) : threads(count), barrier(count), less(count), equal(count), exchanged(count) {}
    int threads;
    std::barrier<> barrier;
    uint32_t histogram[kRadixBins];
    std::vector<int> less;
    std::vector<int> equal;
    std::vector<std::vector<double>> exchanged;
    std::atomic<bool> found{false};
  };

  ThreadBlock(Shared& shared, int thread) : shared_(shared), thread_(thread) {}

  int thread() const { return thread_; }
  int threads() const { return shared_.threads; }
  void sync() const { shared_.barrier.arrive_and_wait(); }
  bool any(bool flag) const {
    if (flag) shared_.found = true;
    sync();
    const bool found = shared_.found;
    sync();
    shared_.found = false;
    sync();
    return found;
  }
  // Swaps the values with the thread whose number differs in that bit.
  template <int kCount>
  void exchange(double (&values)[kCount], int apart) const {
    auto& mine = shared_.exchanged[static_cast<size_t>(thread_)];
    mine.assign(values, values + kCount);
    sync();
    const auto& others = shared_.exchanged[static_cast<size_t>(thread_ ^ apart)];
    std::copy(others.begin(), others.end(), values);
    sync();
  }
  uint32_t* histogram() const { return shared_.histogram; }
  void count(uint32_t bin) const { std::atomic_ref(shared_.histogram[bin]).fetch_add(1); }
  FlagRanks rank(bool less, bool equal) const {
    shared_.less[thread_] = less;
    shared_.equal[thread_] = equal;
    sync();
    FlagRanks ranks{};
    for (int i = 0; i < threads(); ++i) {
      if (i == thread_) {
        ranks.less_before = ranks.less_total;
        ranks.equal_before = ranks.equal_total;
      }
      ranks.less_total += shared_.less[i];
      ranks.equal_total += shared_.equal[i];
    }
    sync();
    return ranks;
  }

 private:
  Shared& shared_;
  int thread_;
};

// Runs body(block) on every thread of one block.
template <typename Body>
void run_block(int threads, const Body& body) {
  ThreadBlock::Shared shared(threads);
  std::vector<std::thread> crew;
  for (int i = 1; i < threads; ++i) {
    crew.emplace_back([&shared, &body, i] {
      ThreadBlock block(shared, i);
      body(block);
    });
  }
  ThreadBlock block(shared, 0);
  body(block);
  for (std::thread& thread : crew) thread.join();
}

}  // namespace kith
