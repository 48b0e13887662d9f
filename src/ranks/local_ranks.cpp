// Threads as ranks: messages are copied into mailboxes, one for each pair of ranks. Waiting ranks are woken when a rank
// has thrown; the calling thread, which is rank 0, calls `poll` regularly while it waits.
#include "ranks/local_ranks.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};

// What the ranks share.
class LocalGroup {
 public:
  LocalGroup(int size, const std::function<void()>& poll) : size_(size), poll_(poll) {}
  int size() const { return size_; }

  void put(int from, int to, const void* data, int64_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    const std::lock_guard lock(mutex_);
    leave_if_failed();
    mail_[{from, to}].emplace_back(first, first + bytes);
    changed_.notify_all();
  }

  void take(int from, int to, void* data, int64_t bytes) {
    std::unique_lock lock(mutex_);
    std::deque<std::vector<std::byte>>& box = mail_[{from, to}];
    wait(lock, to, [&] { return !box.empty(); });
    const std::vector<std::byte> message = std::move(box.front());
    box.pop_front();
    if (static_cast<int64_t>(message.size()) != bytes) {
      throw InvalidState(
          fmt::format("rank {} waits for {} bytes of rank {}, which has sent {}; ranks must call the "
                      "same functions in the same order",
                      to, bytes, from, message.size()));
    }
    std::memcpy(data, message.data(), message.size());
  }

  void barrier(int rank) {
    std::unique_lock lock(mutex_);
    leave_if_failed();
    const int64_t round = round_;
    if (++waiting_ == size_) {
      waiting_ = 0;
      ++round_;
      changed_.notify_all();
    }
    wait(lock, rank, [&] { return round_ != round; });
  }

  void begin_steps(int rank) {
    barrier(rank);
    {
      const std::lock_guard lock(mutex_);
      next_step_ = 0;
    }
    barrier(rank);
  }
  int64_t take_step(int64_t steps) {
    const std::lock_guard lock(mutex_);
    leave_if_failed();
    return next_step_ < steps ? next_step_++ : -1;
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = std::move(error);
    changed_.notify_all();
  }
  std::exception_ptr failure() const { return failure_; }

  // Declares that a rank's thread has finished.
  void end() {
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }
  // Rank 0 waits until `ranks` ranks have ended. An exception of poll(), which is not called again, makes all leave.
  void await_end(int ranks) {
    std::unique_lock lock(mutex_);
    const auto all_ended = [&] { return ended_ == ranks; };
    while (poll_ && failure_ == nullptr && !changed_.wait_for(lock, kPollInterval, all_ended)) {
      lock.unlock();
      try {
        poll_();
        lock.lock();
      } catch (...) {
        lock.lock();
        if (failure_ == nullptr) failure_ = std::current_exception();
        changed_.notify_all();
      }
    }
    changed_.wait(lock, all_ended);
  }

 private:
  void leave_if_failed() const {
    if (failure_ != nullptr) throw OtherRankThrew();
  }
  template <typename Until>
  void wait(std::unique_lock<std::mutex>& lock, int rank, const Until& until) {
    const auto woken = [&] { return until() || failure_ != nullptr; };
    if (rank != 0 || !poll_) {
      changed_.wait(lock, woken);
    } else {
      while (!changed_.wait_for(lock, kPollInterval, woken)) {
        lock.unlock();
        poll_();
        lock.lock();
      }
    }
    if (!until()) throw OtherRankThrew();
  }

  const int size_;
  const std::function<void()>& poll_;  // or none
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> mail_;
  int waiting_ = 0;
  int64_t round_ = 0;
  int64_t next_step_ = 0;
  int ended_ = 0;
  std::exception_ptr failure_;
};

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(LocalGroup& group, int rank, const std::string& name, int64_t piece_bytes)
      : Communicator(piece_bytes), group_(group), rank_(rank), name_(name) {}

  int rank() const override { return rank_; }
  std::string name() const override { return name_.empty() ? Communicator::name() : name_; }
  int size() const override { return group_.size(); }
  void barrier() override { group_.barrier(rank_); }
  void begin_steps(int64_t count) override {
    steps_ = count;
    group_.begin_steps(rank_);
  }
  int64_t next_step() override { return group_.take_step(steps_); }

 protected:
  void send_piece(int to, const void* data, int64_t bytes) override { group_.put(rank_, to, data, bytes); }
  void receive_piece(int from, void* data, int64_t bytes) override { group_.take(from, rank_, data, bytes); }
  void broadcast_piece(int root, void* data, int64_t bytes) override {
    if (rank_ != root) return group_.take(root, rank_, data, bytes);
    for (int to = 0; to < size(); ++to) {
      if (to != root) group_.put(root, to, data, bytes);
    }
  }

 private:
  LocalGroup& group_;
  const int rank_;
  const std::string& name_;
  int64_t steps_ = 0;
};

}  // namespace

void run_named_ranks(const std::vector<std::string>& names, const std::function<void(Communicator&)>& work,
                     const std::function<void()>& poll, int64_t piece_bytes) {
  const int size = static_cast<int>(names.size());
  LocalGroup group(size, poll);
  std::vector<std::thread> threads;
  threads.reserve(names.size());
  const auto run = [&](int rank) {
    try {
      LocalCommunicator communicator(group, rank, names[static_cast<size_t>(rank)], piece_bytes);
      work(communicator);
    } catch (...) {
      group.fail(std::current_exception());
    }
    group.end();
  };
  try {
    for (int rank = 1; rank < size; ++rank) threads.emplace_back(run, rank);
  } catch (...) {  // a thread that cannot start
    group.fail(std::current_exception());
  }
  run(0);
  group.await_end(static_cast<int>(threads.size()) + 1);
  for (std::thread& thread : threads) thread.join();
  if (group.failure() != nullptr) std::rethrow_exception(group.failure());
}

void run_ranks(int size, const std::function<void(Communicator&)>& work, int64_t piece_bytes) {
  if (size < 1) throw InvalidArgument(fmt::format("{} ranks; there must be at least one", size));
  run_named_ranks(std::vector<std::string>(static_cast<size_t>(size)), work, {}, piece_bytes);
}

}  // namespace kith
