#include "program.hpp"

#include <kith/communicator.hpp>

#include "command_line.hpp"
#include "exit_codes.hpp"
#include "interrupt.hpp"

#include <cstdio>
#include <stdexcept>
#include <string>

namespace kith::cli {
namespace {

// A full disk or a closed pipe must not look like success.
void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) == EOF || std::fflush(stdout) != 0) {
    throw std::runtime_error("the result could not be written to stdout");
  }
}

// Runs the command; all ranks end together, with their reports or with the error of one.
Report run_command(const CommandLine& line) {
  if (line.run.ranks == nullptr) return line.command();
  Report report;
  in_lockstep(*line.run.ranks, [&] { report = line.command(); });
  return report;
}

const char* name_of_program(const Communicator* ranks) { return ranks == nullptr ? "kith" : "kith-mpi"; }

// Returns the exit code.
int run(int argc, const char* const* argv, Communicator* ranks) {
  RunOptions begun;
  if (ranks != nullptr) {
    const HostPlace place = place_on_host(*ranks);
    begun.ranks = ranks;
    begun.rank_on_host = place.place;
    begun.ranks_on_host = place.count;
  }
  const CommandLine line = parse_command_line(argc, argv, begun);
  const bool prints = begun.first_rank();
  if (!line.command) {
    if (prints) print(line.answer);
    return 0;
  }
  const Report report = run_command(line);
  if (!prints) return 0;
  if (line.run.json) {
    print(report.json.dump() + "\n");
  } else if (!line.run.quiet) {
    print(report.text);
  }
  for (const std::exception_ptr& error : report.failures) {
    std::fprintf(stderr, "%s: %s\n", name_of_program(ranks), describe(error).message.c_str());
  }
  return report.failures.empty() ? 0 : describe(report.failures.front()).exit_code;
}

int fail(const Failure& failure, bool json, const Communicator* ranks) {
  if (ranks != nullptr && ranks->rank() != 0) return failure.exit_code;  // rank 0 has the same error
  std::fprintf(stderr, "%s: %s\n", name_of_program(ranks), failure.message.c_str());
  if (json) {
    JsonObject error;
    error.text("type", failure.type).text("message", failure.message);
    JsonObject object;
    object.object("error", std::move(error));
    std::printf("%s\n", object.dump().c_str());
  }
  return failure.exit_code;
}

}  // namespace

int run_program(int argc, const char* const* argv, Communicator* ranks) {
  install_interrupt_handlers();
  try {
    return run(argc, argv, ranks);
  } catch (...) {
    return fail(describe(std::current_exception()), wants_json(argc, argv), ranks);
  }
}

}  // namespace kith::cli
