// A trained or fitted value with many readers: one thread may replace it while others continue with the value that they
// began with.
#pragma once

#include <kith/error.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kith {

template <typename T>
class Published {
 public:
  // `missing`: the message of the InvalidState that get() throws before anything is published.
  explicit Published(std::string missing) : missing_(std::move(missing)) {}

  void publish(T value) { publish(std::make_shared<const T>(std::move(value))); }
  // The former value is freed outside the lock, unless a reader still holds it.
  void publish(std::shared_ptr<const T> next) {
    const std::lock_guard lock(mutex_);
    value_.swap(next);
  }

  // Null before anything is published.
  std::shared_ptr<const T> find() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  std::shared_ptr<const T> get() const {
    std::shared_ptr<const T> value = find();
    if (value == nullptr) throw InvalidState(missing_);
    return value;
  }

 private:
  const std::string missing_;
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace kith
