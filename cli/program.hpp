// The program: reads the command line, runs one command and prints what it reports. Results go to stdout, errors and
// progress to stderr; with --json stdout holds one JSON object, whether the command succeeded or not.
#pragma once

namespace kith {
class Communicator;
}

namespace kith::cli {

// Returns the exit code. All ranks call it, but only the first one prints.
int run_program(int argc, const char* const* argv, Communicator* ranks = nullptr);

}  // namespace kith::cli
