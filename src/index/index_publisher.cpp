#include "index/index_publisher.hpp"

#include <kith/error.hpp>

#include <chrono>

namespace kith {

class IndexPublisher::Turn {
 public:
  Turn(IndexPublisher& publisher, const Resources& resources) : publisher_(publisher) {
    constexpr std::chrono::milliseconds kAskEvery(50);
    std::unique_lock lock(publisher_.mutex_);
    if (publisher_.writer_ == std::this_thread::get_id()) {
      throw InvalidState("the index is being changed by a call that this one was made from; a sink may search it only");
    }
    while (publisher_.writer_ != std::thread::id()) {
      if (publisher_.turn_over_.wait_for(lock, kAskEvery) == std::cv_status::no_timeout) continue;
      lock.unlock();
      resources.check_cancelled();
      lock.lock();
    }
    publisher_.writer_ = std::this_thread::get_id();
  }

  ~Turn() {
    {
      const std::lock_guard lock(publisher_.mutex_);
      publisher_.writer_ = std::thread::id();
    }
    publisher_.turn_over_.notify_one();
  }

  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  IndexPublisher& publisher_;
};

std::shared_ptr<const IndexState> IndexPublisher::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void IndexPublisher::publish(const Next& next, const Resources& resources) {
  const Turn turn(*this, resources);
  const std::shared_ptr<const IndexState> before = state();
  std::shared_ptr<const IndexState> after = next(before.get());
  const std::lock_guard lock(mutex_);
  state_.swap(after);  // the old one lives until `before` goes, after the lock
}

}  // namespace kith
