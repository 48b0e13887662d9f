// Parses the program's arguments into a command with its options. Hides the argument parser from all other files.
#pragma once

#include "report.hpp"
#include "run_options.hpp"

#include <functional>
#include <string>

namespace kith::cli {

struct CommandLine {
  std::string answer;               // the text of --help or --version; empty: run `command`
  std::function<Report()> command;
  RunOptions run;
};

// UsageError for arguments that cannot be parsed, InvalidArgument for values that are not allowed. `begun`: what is
// known beforehand, such as the ranks of kith-mpi.
CommandLine parse_command_line(int argc, const char* const* argv, const RunOptions& begun = {});

// Whether to print errors as JSON too; works for arguments that are wrong otherwise.
bool wants_json(int argc, const char* const* argv);

}  // namespace kith::cli
