#include "interrupt.hpp"

#include <csignal>

namespace kith::cli {
namespace {

// Made before a handler can run; storing to its lock-free flag is all that the handler does.
const CancelToken token;

void request_stop(int) { token.request(); }

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);  // a second signal meets the default: the end
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited = {};
    sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);  // nohup and background jobs stay ignorant
  }
  std::signal(SIGXFSZ, SIG_IGN);  // too large a file is then an error of the write
}

const CancelToken& interrupt_token() { return token; }

}  // namespace kith::cli
