// Kith's own threads. A job is a number of tasks; the calling thread works on it too, so a pool of one thread starts
// none. Threads start with the first job that can use them. After a fork the child may use the pool: threads do not
// survive a fork, so the child starts its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace kith {

class ThreadPool {
 public:
  // body(task, slot): slot is below threads() and no two running bodies of a job have the same one.
  using Body = std::function<void(int64_t task, int slot)>;
  // Called by the calling thread between its tasks and while it waits; what it throws ends the job.
  using Poll = std::function<void()>;

  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Runs every task and returns. After an exception no further task starts, and the first one thrown is rethrown here.
  // Called from inside a task it runs the new tasks on this thread alone.
  void run(int64_t tasks, const Body& body, const Poll& poll);

 private:
  struct Crew;  // the running threads and their jobs
  Crew& crew();

  int threads_;
  std::atomic<Crew*> crew_{nullptr};
};

}  // namespace kith
