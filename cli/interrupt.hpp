// Ctrl-C and SIGTERM: the first asks the running command to stop and tidy up, the second ends the program at once.
#pragma once

#include <kith/progress.hpp>

namespace kith::cli {

void install_interrupt_handlers();

// Requested by the handlers.
const CancelToken& interrupt_token();

}  // namespace kith::cli
