// Turns the arguments of the program into one command with its options. Hides the argument parser from all other files.
#pragma once

#include "report.hpp"
#include "run_options.hpp"

#include <functional>
#include <string>

namespace kith::cli {

struct CommandLine {
  std::string answer;               // the text of --help or --version: nothing is to be run
  std::function<Report()> command;  // else what is
  RunOptions run;
};

// Throws UsageError for arguments that cannot be read and InvalidArgument for values that are not allowed.
// `begun` has what is known before: the ranks of kith-mpi.
CommandLine parse_command_line(int argc, const char* const* argv, const RunOptions& begun = {});

// Whether errors, too, are to be printed as JSON: asked before the arguments are known to be right.
bool wants_json(int argc, const char* const* argv);

}  // namespace kith::cli
