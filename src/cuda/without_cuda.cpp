// What a build without CUDA says of its devices.
#include <kith/device.hpp>

namespace kith {

bool built_with_cuda() { return false; }
std::vector<DeviceInfo> cuda_devices() { return {}; }

}  // namespace kith
