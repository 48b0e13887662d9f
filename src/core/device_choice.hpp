// Whether a GPU would be done sooner: predictions from the amount of work, good enough that a small job is not sent to
// a GPU that must first wake up.
#pragma once

#include <kith/device.hpp>

#include <vector>

namespace kith {

struct Work {
  double flops = 0;
  double bytes = 0;      // that a GPU must copy first
  double gpu_flops = 0;  // per second
};

double cpu_seconds(const Work& work, int threads);
// With its start and copies.
double gpu_seconds(const Work& work);

// False where the CPU would be done before a GPU had started: then nobody need ask whether there is one.
bool worth_a_gpu(const Work& work, int threads);
// A GPU where it is predicted to take less time.
Device choose_device(const Work& work, int threads, const std::vector<DeviceInfo>& gpus);

}  // namespace kith
