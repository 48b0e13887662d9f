// Ctrl-C and SIGTERM: the first one asks the running command to stop and clean up, a second one ends the program at
// once.
#pragma once

#include <kith/progress.hpp>

namespace kith::cli {

void install_interrupt_handlers();

// The token that the signal handlers set.
const CancelToken& interrupt_token();

}  // namespace kith::cli
