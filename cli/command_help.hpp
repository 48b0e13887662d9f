// The program's commands as plain data, for completion scripts and the manual page.
#pragma once

#include <string>
#include <vector>

namespace kith::cli {

struct OptionHelp {
  std::vector<std::string> names;  // "-k", "--clusters"; of an operand its name alone
  std::string value;               // "FILE", "N", "NAME"; empty for a flag
  std::string text;
  bool operand = false;
  bool required = false;
};

struct CommandHelp {
  std::string path;  // "knn", "index build"; empty for the program itself
  std::string text;
  std::vector<OptionHelp> options;
  bool group = false;  // of other commands, such as "index"
};

// A working example for the end of a command's help; may be empty.
std::string example_of(const std::string& path);

// For bash, zsh or fish. UsageError for another shell.
std::string completion_script(const std::string& shell, const std::vector<CommandHelp>& commands);

// In the man macros of roff.
std::string manual_page(const std::vector<CommandHelp>& commands, const std::string& version);

}  // namespace kith::cli
