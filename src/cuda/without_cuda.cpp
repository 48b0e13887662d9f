// What a build without CUDA says of its devices.
#include <kith/device.hpp>

#include "cuda/device_info.hpp"

namespace kith {

bool built_with_cuda() { return false; }
std::vector<DeviceInfo> cuda_devices() { return {}; }
DeviceInfo cuda_device(int) { return {}; }

}  // namespace kith
