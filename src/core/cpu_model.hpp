// The machine model (machine_model.hpp) of a CPU with the extensions that it has, for predictions. Choices of a device use
// that of any small CPU, cpu_model(threads), so that they do not change with the processor.
#pragma once

#include "core/cpu_extensions.hpp"
#include "core/machine_model.hpp"

namespace kith {

MachineModel cpu_model(int threads, const CpuExtensions& cpu);

}  // namespace kith
