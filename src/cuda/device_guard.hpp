// Makes a device this thread's current one, and restores the former one.
#pragma once

namespace kith {

class DeviceGuard {
 public:
  // Throws InvalidArgument if there is no such device.
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = -1;  // -1: nothing was changed
};

}  // namespace kith
