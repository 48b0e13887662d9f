// The machine model (machine_model.hpp) of a CPU with some instruction set, for predictions. Choices of a device use
// that of any small CPU, cpu_model(threads), so that they do not change with the processor.
#pragma once

#include "core/machine_model.hpp"

#include <string_view>

namespace kith {

// `instruction_set`: a name of cpu_target.hpp; empty, or one without rates of its own: any small CPU.
MachineModel cpu_model(int threads, std::string_view instruction_set);
// Whether some processor's instruction set has this name.
bool is_instruction_set(std::string_view name);

}  // namespace kith
