// The manual page, from the texts of --help.
#include "command_help.hpp"

#include <fmt/format.h>

#include <string_view>

namespace kith::cli {
namespace {

// Escapes a text for roff: backslashes, hyphens, and dots at the beginning of a line.
std::string plain(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string option_entry(const OptionHelp& option) {
  std::string head;
  for (const std::string& name : option.names) {
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", plain(name));
  }
  if (!option.value.empty() && !option.operand) head += fmt::format(" \\fI{}\\fR", plain(option.value));
  return fmt::format(".TP\n{}\n{}{}\n", head, plain(option.text), option.required ? " (required)" : "");
}

}  // namespace

std::string manual_page(const std::vector<CommandHelp>& commands, const std::string& version) {
  std::string text = fmt::format(
      ".TH KITH 1 \"\" \"kith {}\" \"User Commands\"\n"
      ".SH NAME\nkith \\- find nearest neighbours in files of vectors\n"
      ".SH SYNOPSIS\n.B kith\n.I COMMAND\n.RI [ OPTIONS ]\n"
      ".SH DESCRIPTION\n"
      "Kith finds nearest neighbours in collections of vectors, on CPUs and GPUs: exactly, or by an index. Results go "
      "to\n"
      "files, a summary to the standard output, errors and progress to the standard error. With \\fB\\-\\-json\\fR "
      "the\n"
      "summary, or the error, is one JSON object. The file extension determines a file's format.\n"
      ".SH COMMANDS\n",
      version);
  for (const CommandHelp& command : commands) {
    if (command.path.empty()) continue;
    text += fmt::format(".SS \"kith {}\"\n{}.\n", plain(command.path), plain(command.text));
    for (const OptionHelp& option : command.options) {
      if (option.names.back() != "--help") text += option_entry(option);
    }
    if (const std::string example = example_of(command.path); !example.empty()) {
      text += fmt::format(".PP\nExample:\n.PP\n.RS\n{}\n.RE\n", plain(example));
    }
  }
  text +=
      ".SH EXIT STATUS\n"
      "0 done, 1 other errors, 2 wrong usage, 3 files, 4 memory, 5 devices, 75 parts that wait for others, 130 interrupted.\n"
      ".SH ENVIRONMENT\n.TP\n.B KITH_CPU_TARGET\n"
      "The instruction set to use instead of the best one that the processor has.\n"
      ".TP\n.B KITH_PYTHON\n"
      "The Python that \\fBkith explore\\fR starts, which has the package kithnn; python3 if not set.\n";
  return text;
}

}  // namespace kith::cli
