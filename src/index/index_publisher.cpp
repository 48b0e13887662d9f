#include "index/index_publisher.hpp"

#include <kith/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace kith {

IndexPublisher::Writer::Writer(IndexPublisher& publisher) : publisher_(publisher) {
  const std::lock_guard lock(publisher_.mutex_);
  std::vector<std::thread::id>& writers = publisher_.writers_;
  if (std::find(writers.begin(), writers.end(), std::this_thread::get_id()) != writers.end()) {
    throw InvalidState("the index is being changed by a call that this one was made from; a sink may search it only");
  }
  writers.push_back(std::this_thread::get_id());
}

IndexPublisher::Writer::~Writer() {
  const std::lock_guard lock(publisher_.mutex_);
  std::erase(publisher_.writers_, std::this_thread::get_id());
}

class IndexPublisher::Turn {
 public:
  Turn(IndexPublisher& publisher, const Resources& resources) : publisher_(publisher) {
    constexpr std::chrono::milliseconds kAskEvery(50);
    std::unique_lock lock(publisher_.mutex_);
    while (publisher_.turn_of_ == getpid()) {
      if (publisher_.turn_over_.wait_for(lock, kAskEvery) == std::cv_status::no_timeout) continue;
      lock.unlock();
      resources.check_cancelled();
      lock.lock();
    }
    publisher_.turn_of_ = getpid();
  }

  ~Turn() {
    {
      const std::lock_guard lock(publisher_.mutex_);
      publisher_.turn_of_ = 0;
    }
    publisher_.turn_over_.notify_one();
  }

  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  IndexPublisher& publisher_;
};

std::shared_ptr<const IndexVersion> IndexPublisher::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void IndexPublisher::publish(const Writer&, const Next& next, const Resources& resources) {
  const Turn turn(*this, resources);
  const std::shared_ptr<const IndexVersion> before = current();
  auto after = std::make_shared<const IndexVersion>(next(before.get()));
  resources.check_cancelled();  // also by a sink in its last report
  const std::lock_guard lock(mutex_);
  current_.swap(after);  // `before` frees the old version after the lock is released
}

}  // namespace kith
