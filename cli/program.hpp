// The program: reads the command line, runs one command and prints what it reports. Results go to stdout, errors and
// progress to stderr; with --json stdout holds one JSON object, whether the command succeeded or not.
#pragma once

namespace kith {
class Communicator;
}

namespace kith::cli {

// Returns the exit code. With ranks, all of which call it, the first alone prints.
int run_program(int argc, const char* const* argv, Communicator* ranks = nullptr);

}  // namespace kith::cli
