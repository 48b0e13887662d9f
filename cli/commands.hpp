// How commands define their options, of a few kinds. The parser itself is hidden in commands.cpp and command_line.cpp.
// A command defines only options that have an effect, so that none is silently ignored.
#pragma once

#include <kith/metric.hpp>

#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kith::cli {

using RunCommand = std::function<Report(const RunOptions&)>;

// The state that all commands share while they are defined and parsed. Options write to their variables during parsing;
// words are parsed after the whole line.
struct OfferedCommands {
  struct Entry {
    CLI::App* app = nullptr;
    RunCommand run;
    std::vector<std::function<void()>> understand;  // parses the words of this command
    bool computes = false;                          // on a device
    bool on_ranks = false;                          // kith-mpi runs it too
  };
  std::deque<Entry> commands;
  std::deque<std::string> words;
  RunOptions run;
};

// An option that was just defined.
class OfferedOption {
 public:
  explicit OfferedOption(CLI::Option* option) : option_(option) {}

  const OfferedOption& required() const;
  // Hides the default in the help: its text mentions it, or there is none.
  const OfferedOption& without_default() const;

 private:
  CLI::Option* option_;
};

class OfferedCommand {
 public:
  OfferedCommand(OfferedCommands::Entry& entry, OfferedCommands& all) : entry_(&entry), all_(&all) {}

  OfferedOption text(const char* name, std::string& value, const char* help, const char* kind);
  OfferedOption file(const char* name, std::string& value, const char* help) { return text(name, value, help, "FILE"); }
  OfferedOption files(const char* name, std::vector<std::string>& value, const char* help) {
    return texts(name, value, help, "FILE");
  }
  OfferedOption texts(const char* name, std::vector<std::string>& value, const char* help, const char* kind);

  OfferedOption number(const char* name, int64_t& value, const char* help);
  OfferedOption number(const char* name, std::optional<int64_t>& value, const char* help);
  OfferedOption numbers(const char* name, std::vector<int64_t>& value, const char* help);  // with commas between
  // Refuses negative numbers.
  OfferedOption count(const char* name, int64_t& value, const char* help, const char* kind = "N");
  OfferedOption count(const char* name, uint64_t& value, const char* help);

  OfferedOption real(const char* name, float& value, const char* help);
  OfferedOption real(const char* name, double& value, const char* help);
  OfferedOption real(const char* name, std::optional<double>& value, const char* help);

  void flag(const char* name, bool& value, const char* help);
  void no_flag(const char* name, bool& value, const char* help);  // sets it to false

  // A word that is parsed: `value = parse(word)`. An empty default is not parsed.
  template <typename Value, typename Parse>
  OfferedOption word(const char* name, Value& value, Parse parse, const char* default_word, const char* help) {
    return word_then(name, "NAME", default_word, help,
                     [&value, parse](const std::string& word) { value = parse(word); });
  }

  // Options that are the same in all commands.
  void metric(Metric& value);
  void check_finite(bool& value);
  void filter(std::string& value);
  void threads();
  void memory_limit();
  void device_memory_limit();
  void output();       // --json and --quiet
  void run_options();  // all options of commands that compute on a device
  void on_ranks() { entry_->on_ranks = true; }

 private:
  OfferedOption word_then(const char* name, const char* kind, const char* default_word, const char* help,
                          std::function<void(const std::string&)> understand);
  void device();
  CLI::App& app() { return *entry_->app; }

  OfferedCommands::Entry* entry_;
  OfferedCommands* all_;
};

// The parent of commands: the program, or a command with subcommands.
class Commands {
 public:
  Commands(CLI::App& app, OfferedCommands& all) : app_(&app), all_(&all) {}

  OfferedCommand offer(const char* name, const char* help, RunCommand run);
  Commands group(const char* name, const char* help);

 private:
  CLI::App* app_;
  OfferedCommands* all_;
};

}  // namespace kith::cli
