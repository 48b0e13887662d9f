#include "core/device_choice.hpp"

namespace kith {
namespace {

// Of products in f32 on a small CPU; faster CPUs and formats make the choice of a GPU come too early, by less than its
// start takes.
constexpr double kCpuFlopsPerThread = 30e9;
constexpr double kGpuStart = 0.4;    // seconds
constexpr double kCopyBytes = 2e10;  // per second

}  // namespace

double cpu_seconds(const Work& work, int threads) { return work.flops / (kCpuFlopsPerThread * threads); }

double gpu_seconds(const Work& work) { return kGpuStart + work.bytes / kCopyBytes + work.flops / work.gpu_flops; }

bool worth_a_gpu(const Work& work, int threads) { return cpu_seconds(work, threads) > kGpuStart; }

Device choose_device(const Work& work, int threads, const std::vector<DeviceInfo>& gpus) {
  return !gpus.empty() && gpu_seconds(work) < cpu_seconds(work, threads) ? gpus.front().device : Device::cpu();
}

}  // namespace kith
