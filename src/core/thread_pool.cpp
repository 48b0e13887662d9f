#include "core/thread_pool.hpp"

#include "core/float_mode.hpp"
#include "core/reused_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

thread_local bool inside_task = false;

}  // namespace

struct ThreadPool::Crew {
  struct Job {
    Job(int64_t task_count, const ThreadPool::Body& body_) : tasks(task_count), body(body_) {}

    const int64_t tasks;
    const ThreadPool::Body& body;
    std::atomic<int64_t> next{0};
    std::atomic<int> slots_taken{0};
    std::mutex mutex;
    std::condition_variable idle;
    int active = 0;  // threads inside work(); guarded by mutex
    std::exception_ptr error;

    bool has_work() const { return next.load(std::memory_order_relaxed) < tasks; }

    void stop(std::exception_ptr e) {
      std::lock_guard lock(mutex);
      if (!error) error = std::move(e);
      next.store(tasks, std::memory_order_relaxed);
    }

    void work(const ThreadPool::Poll* poll) {
      const int slot = slots_taken.fetch_add(1, std::memory_order_relaxed);
      const bool nested = std::exchange(inside_task, true);
      const DefaultFloatMode mode;
      try {
        for (;;) {
          const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
          if (task >= tasks) break;
          body(task, slot);
          if (poll != nullptr && *poll) (*poll)();
        }
      } catch (...) {
        stop(std::current_exception());
      }
      inside_task = nested;
    }
  };

  // Starts as many threads as the system allows. None is enough, since the caller works too.
  explicit Crew(int count) : owner(getpid()) {
    threads.reserve(static_cast<size_t>(count));
    try {
      for (int i = 0; i < count; ++i) threads.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
    }
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return stopping || !jobs.empty(); });
      if (stopping) return;
      std::shared_ptr<Job> job = jobs.front();
      if (!job->has_work()) {
        jobs.pop_front();
        continue;
      }
      {
        std::lock_guard job_lock(job->mutex);
        ++job->active;
      }
      lock.unlock();
      job->work(nullptr);
      {
        std::lock_guard job_lock(job->mutex);
        --job->active;
      }
      job->idle.notify_all();
      lock.lock();
      // This worker has drained the job: no other need look at it.
      if (const auto it = std::find(jobs.begin(), jobs.end(), job); it != jobs.end()) jobs.erase(it);
    }
  }

  void stop() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  const pid_t owner;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::shared_ptr<Job>, ReusedAllocator<std::shared_ptr<Job>>> jobs;
  bool stopping = false;
  std::vector<std::thread> threads;
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)) {}

ThreadPool::~ThreadPool() {
  Crew* crew = crew_.load(std::memory_order_acquire);
  if (crew == nullptr || crew->owner != getpid()) return;  // a forked child cannot join what it does not have
  crew->stop();
  delete crew;
}

// Lock-free on purpose: a fork can copy a mutex in its locked state.
ThreadPool::Crew& ThreadPool::crew() {
  Crew* current = crew_.load(std::memory_order_acquire);
  if (current != nullptr && current->owner == getpid()) return *current;
  auto* fresh = new Crew(threads_ - 1);
  if (crew_.compare_exchange_strong(current, fresh, std::memory_order_acq_rel)) return *fresh;
  fresh->stop();
  delete fresh;
  return *current;
}

void ThreadPool::run(int64_t tasks, const Body& body, const Poll& poll) {
  if (tasks <= 0) return;
  if (threads_ == 1 || tasks == 1 || inside_task) {
    Crew::Job job(tasks, body);
    job.work(&poll);
    if (job.error) std::rethrow_exception(job.error);
    return;
  }

  Crew& workers = crew();
  auto job = std::allocate_shared<Crew::Job>(ReusedAllocator<Crew::Job>(), tasks, body);
  {
    std::lock_guard lock(workers.mutex);
    workers.jobs.push_back(job);
  }
  workers.wake.notify_all();
  job->work(&poll);

  // No worker can join once the job has left the queue. Wait for those that are working on it.
  {
    std::lock_guard lock(workers.mutex);
    if (const auto it = std::find(workers.jobs.begin(), workers.jobs.end(), job); it != workers.jobs.end()) {
      workers.jobs.erase(it);
    }
  }
  std::unique_lock lock(job->mutex);
  while (!job->idle.wait_for(lock, kPollInterval, [&] { return job->active == 0; })) {
    if (!poll) continue;
    lock.unlock();
    try {
      poll();
    } catch (...) {
      job->stop(std::current_exception());
    }
    lock.lock();
  }
  if (job->error) std::rethrow_exception(job->error);
}

}  // namespace kith
