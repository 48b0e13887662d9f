// The program: reads the command line, runs one command and prints what it reports. Results go to stdout, errors and
// progress to stderr; with --json stdout holds one JSON object, whether the command succeeded or not.
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

// Returns the exit code.
int run(int argc, const char* const* argv) {
  const CommandLine line = parse_command_line(argc, argv);
  if (!line.command) {
    print(line.answer);
    return 0;
  }
  const Report report = line.command();
  if (line.run.json) {
    print(report.json.dump() + "\n");
  } else if (!line.run.quiet) {
    print(report.text);
  }
  for (const std::exception_ptr& error : report.failures) {
    std::fprintf(stderr, "kith: %s\n", describe(error).message.c_str());
  }
  return report.failures.empty() ? 0 : describe(report.failures.front()).exit_code;
}

int fail(const Failure& failure, bool json) {
  std::fprintf(stderr, "kith: %s\n", failure.message.c_str());
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
}  // namespace kith::cli

int main(int argc, char** argv) {
  using namespace kith::cli;
  install_interrupt_handlers();
  try {
    return run(argc, argv);
  } catch (...) {
    return fail(describe(std::current_exception()), wants_json(argc, argv));
  }
}
