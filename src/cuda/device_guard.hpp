// Makes a device this thread's current one, and puts back the one that was.
#pragma once

namespace kith {

class DeviceGuard {
 public:
  // InvalidArgument for a number that no device has.
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = -1;  // -1: nothing was changed
};

}  // namespace kith
