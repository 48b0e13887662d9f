#include "command_line.hpp"

#include <kith/device.hpp>
#include <kith/nearest_name.hpp>
#include <kith/version.hpp>

#include "collection_commands.hpp"
#include "command_help.hpp"
#include "commands.hpp"
#include "convert_command.hpp"
#include "dedup_command.hpp"
#include "eval_command.hpp"
#include "exit_codes.hpp"
#include "explore_command.hpp"
#include "graph_commands.hpp"
#include "head_command.hpp"
#include "index_commands.hpp"
#include "info_command.hpp"
#include "kmeans_command.hpp"
#include "knn_command.hpp"
#include "plan_command.hpp"
#include "quantizer_commands.hpp"
#include "range_command.hpp"
#include "sample_command.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kith::cli {
namespace {

std::vector<CommandHelp> describe_commands(const CLI::App& app, const std::string& path) {
  CommandHelp help{path, app.get_description(), {}, !path.empty() && !app.get_subcommands(nullptr).empty()};
  for (const CLI::Option* option : app.get_options()) {
    OptionHelp entry;
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
    entry.operand = entry.names.empty();
    if (entry.operand) entry.names.push_back(option->get_name());
    if (option->get_items_expected_max() > 0) entry.value = option->get_type_name();
    entry.text = option->get_description();
    entry.required = option->get_required();
    help.options.push_back(std::move(entry));
  }
  std::vector<CommandHelp> commands{std::move(help)};
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string below = path.empty() ? command->get_name() : path + " " + command->get_name();
    for (CommandHelp& found : describe_commands(*command, below)) commands.push_back(std::move(found));
  }
  return commands;
}

// Ends the help of every command with a working example.
void add_examples(CLI::App& app, const std::string& path) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string below = path.empty() ? command->get_name() : path + " " + command->get_name();
    if (const std::string example = example_of(below); !example.empty()) {
      command->footer(fmt::format("Example:\n  {}", example));
    }
    add_examples(*command, below);
  }
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::string_view nearest_of(std::string_view name, const std::vector<std::string>& known) {
  return nearest_name(name, std::vector<std::string_view>(known.begin(), known.end()));
}

// What other programs call a command of Kith's, where letters alone do not tell.
std::string_view command_meant(std::string_view name) {
  struct Meant {
    std::string_view name;
    std::string_view command;
  };
  static constexpr Meant kMeant[] = {
      {"search", "knn, or kith index search"},
      {"query", "knn, or kith index search"},
      {"nearest", "knn"},
      {"build", "index build, or kith graph build"},
      {"add", "index add, or kith collection add"},
      {"remove", "index remove, or kith collection remove"},
      {"delete", "index remove, or kith collection remove"},
      {"merge", "index merge, or kith graph merge"},
      {"tune", "index tune"},
      {"path", "graph path"},
      {"create", "collection create"},
      {"cluster", "kmeans"},
      {"clusters", "kmeans"},
      {"radius", "range"},
      {"duplicates", "dedup"},
      {"deduplicate", "dedup"},
      {"unique", "dedup"},
      {"recall", "eval"},
      {"evaluate", "eval"},
      {"inspect", "info"},
      {"describe", "info"},
      {"stat", "info"},
      {"stats", "info"},
      {"version", "--version"},
      {"cat", "head"},
      {"print", "head"},
      {"copy", "convert"},
      {"show", "explore"},
      {"view", "explore"},
      {"serve", "explore"},
      {"quantize", "train, then kith encode"},
      {"generate", "sample"},
      {"ui", "explore"},
      {"web", "explore"},
      {"browse", "explore"},
      {"open", "collection create, or kith explore"},
  };
  for (const Meant& meant : kMeant) {
    if (meant.name == name) return meant.command;
  }
  return {};
}

// The same for the commands of a group.
std::string_view command_meant(std::string_view group, std::string_view name) {
  struct Meant {
    std::string_view group;
    std::string_view names;  // with a space around each
    std::string_view command;
  };
  static constexpr Meant kMeant[] = {
      {"index", " info describe show stat stats ", "index inspect"},
      {"index", " train create make ", "index build"},
      {"index", " query knn find ", "index search"},
      {"index", " delete ", "index remove"},
      {"index", " export save ", "index convert"},
      {"graph", " search query ", "index build --factory Graph32, then kith index search"},
      {"graph", " inspect describe show stat stats ", "graph info"},
      {"graph", " create make knn ", "graph build"},
      {"graph", " cluster clusters linkage ", "graph labels"},
      {"graph", " export convert save ", "graph build --out-ids FILE --out-distances FILE"},
      {"collection", " list ls stat stats inspect describe ", "collection info"},
      {"collection", " insert upsert update ", "collection add"},
      {"collection", " delete ", "collection remove"},
      {"collection", " query find ", "collection search"},
      {"collection", " open new make init ", "collection create"},
      {"collection", " backup copy ", "collection snapshot"},
      {"collection", " dump save ", "collection export"},
      {"collection", " check fsck ", "collection verify"},
      {"collection", " optimize vacuum ", "collection compact"},
  };
  const std::string searched = fmt::format(" {} ", name);
  for (const Meant& meant : kMeant) {
    if (meant.group == group && meant.names.find(searched) != std::string_view::npos) return meant.command;
  }
  return {};
}

std::string unknown_command(const CLI::App& app, const std::string& name) {
  std::string known;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  const std::string under = app.get_parent() == nullptr ? "" : app.get_name() + " ";
  const std::vector<std::string> names = command_names(app);
  if (const std::string_view nearest = nearest_of(name, names); !nearest.empty()) {
    return fmt::format("unknown command '{}{}'; did you mean kith {}{}?", under, name, under, nearest);
  }
  if (name == "help") return fmt::format("unknown command '{0}help'; did you mean kith {0}--help?", under);
  if (const std::string_view meant = command_meant(app.get_name(), name); !under.empty() && !meant.empty()) {
    return fmt::format("unknown command '{}{}'; did you mean kith {}?", under, name, meant);
  }
  if (const std::string_view meant = command_meant(name); under.empty() && !meant.empty()) {
    return fmt::format("unknown command '{}'; did you mean kith {}?", name, meant);
  }
  return fmt::format("unknown command '{}{}'; known are: {}; see kith {}--help", under, name, known, under);
}

// The first option that the command does not have, or an empty text.
std::string unknown_option(const CLI::App& command, int first, int argc, const char* const* argv) {
  for (int i = first; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    const std::string name(argument.substr(0, argument.find('=')));
    const bool is_short =
        argument.size() > 1 && argument[0] == '-' && std::isalpha(static_cast<unsigned char>(argument[1]));
    if (is_short && command.get_option_no_throw(name.substr(0, 2)) == nullptr) return name.substr(0, 2);
    if (name.starts_with("--") && command.get_option_no_throw(name) == nullptr) return name;
  }
  return "";
}

// What other programs call an option: of those that Kith's commands call it by, the first that this command has.
std::string option_meant(const CLI::App& command, std::string_view word) {
  struct Meant {
    std::string_view words;  // with a space around each
    std::vector<std::string_view> options;
  };
  static const std::vector<Meant> kMeant = {
      {" top-k topk limit neighbors neighbours n-neighbors knn ", {"-k"}},
      {" threshold thresh eps epsilon max-distance distance-threshold ", {"--radius", "--height"}},
      {" jobs j n-jobs num-threads workers cores cpus ", {"--threads"}},
      {" gpu cuda use-gpu ", {"--device"}},
      {" memory ram max-memory mem ", {"--memory-limit"}},
      {" random-state random-seed ", {"--seed"}},
      {" niter max-iter n-iter epochs ", {"--iterations"}},
      {" nlist n-lists lists type kind index-type ", {"--factory"}},
      {" ef ef-search efsearch ", {"--beam"}},
      {" space distance metric-type ", {"--metric"}},
      {" i ", {"--index", "--data", "--vectors", "--queries"}},
      {" input in vectors x file ", {"--data", "--vectors", "--queries"}},
      {" n lines count num-rows nrows ", {"--rows"}},
      {" output o dest ", {"--out", "--out-ids"}},
      {" query q ", {"--queries"}},
      {" index-file ", {"--index", "--quantizer"}},
      {" folder dir directory ", {"--graph", "--out"}},
      {" limit-to where ", {"--filter", "--where"}},
      {" dim dims dimension columns d ", {"--cols", "--dimension"}},
      {" gt ground-truth groundtruth ", {"--truth"}},
      {" M m efconstruction ef-construction ", {"--factory"}},
      {" V ", {"--version"}},
  };
  const std::string searched = fmt::format(" {} ", word);
  for (const Meant& meant : kMeant) {
    if (meant.words.find(searched) == std::string_view::npos) continue;
    for (const std::string_view option : meant.options) {
      if (command.get_option_no_throw(std::string(option)) != nullptr) return std::string(option);
    }
  }
  return {};
}

std::string unknown_option_text(const CLI::App& command, const std::string& name, const std::string& path) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
  }
  const std::string_view word = std::string_view(name).substr(name.starts_with("--") ? 2 : 1);
  std::string nearest = option_meant(command, word);
  if (nearest.empty()) nearest = nearest_of(name, known);
  // "--k" for -k, "-t" for --threads, "--out" for --out-ids.
  if (word.size() == 1 && command.get_option_no_throw(fmt::format("-{}", word)) != nullptr) {
    nearest = fmt::format("-{}", word);
  } else if (nearest.empty()) {
    for (const std::string& long_name : known) {
      if (long_name.starts_with(fmt::format("--{}", word)) && long_name != "--help") {
        nearest += (nearest.empty() ? "" : " or ") + long_name;
      }
    }
  }
  if (nearest.empty()) return fmt::format("kith {}has no option {}; see kith {}--help", path, name, path);
  return fmt::format("kith {}has no option {}; did you mean {}? See kith {}--help", path, name, nearest, path);
}

CLI::Validator not_empty() {
  return {[](const std::string& text) -> std::string { return text.empty() ? "an empty value" : ""; }, "", "not empty"};
}

// Refuses empty values, such as unset shell variables, rather than using the default.
void refuse_empty_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() > 0 && option->get_type_size_max() > 0) option->check(not_empty());
    }
    refuse_empty_values(*command);
  }
}

// The command that a line names, as far as it was understood.
struct Reached {
  const CLI::App* command;
  std::string path;  // with a space behind each name
  int depth = 1;     // of the next argument, which may name a command

  bool has_commands() const { return !command->get_subcommands(nullptr).empty(); }
};

Reached reached_by(const CLI::App& app) {
  Reached reached{&app, ""};
  while (!reached.command->get_subcommands().empty()) {
    reached.command = reached.command->get_subcommands()[0];
    reached.path += reached.command->get_name() + " ";
    ++reached.depth;
  }
  return reached;
}

// How files without options are given: each to the next option that the command wants and has not got, "--base b.fbin".
std::string by_options(const CLI::App& command, const std::vector<std::string>& files) {
  static constexpr std::string_view kUsual[] = {"--index", "--base", "--data", "--vectors", "--queries"};
  std::vector<std::string> wanted;
  const CLI::Option* const graph = command.get_option_no_throw("--graph");  // two files may stand for it
  if (graph != nullptr && graph->count() == 0) wanted.emplace_back("--graph");
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && !option->get_positional() && option->count() == 0)
      wanted.push_back("--" + option->get_lnames()[0]);
  }
  for (const std::string_view name : kUsual) {
    if (!wanted.empty()) break;
    const CLI::Option* option = command.get_option_no_throw(std::string(name));
    if (option != nullptr && option->count() == 0) wanted.emplace_back(name);
  }
  std::string given;
  for (size_t i = 0; i < std::min(wanted.size(), files.size()); ++i)
    given += fmt::format(" {} {}", wanted[i], files[i]);
  return given;
}

void refuse_unknown_command(const Reached& reached, int argc, const char* const* argv) {
  if (reached.has_commands() && reached.depth < argc && argv[reached.depth][0] != '-') {
    throw UsageError(unknown_command(*reached.command, argv[reached.depth]));
  }
}

// Throws the error for a wrong command line, with a hint where to find help.
[[noreturn]] void refuse_line(const CLI::App& app, int argc, const char* const* argv, const CLI::ParseError& error) {
  const Reached reached = reached_by(app);
  const auto& [at, path, depth] = reached;
  refuse_unknown_command(reached, argc, argv);
  if (reached.has_commands() && depth > 1) {
    std::string known;
    for (const std::string& name : command_names(*at)) known += (known.empty() ? "" : ", ") + name;
    throw UsageError(fmt::format("kith {}needs one of its commands: {}; see kith {}--help", path, known, path));
  }
  if (const std::string name = unknown_option(*at, depth, argc, argv); !name.empty()) {
    throw UsageError(unknown_option_text(*at, name, path));
  }
  const std::vector<std::string> left = at->remaining();
  if (!left.empty() && !left.front().starts_with('-')) {
    if (const std::string given = by_options(*at, left); !given.empty()) {
      throw UsageError(fmt::format("kith {}takes no argument '{}'; did you mean{}? See kith {}--help", path,
                                   left.front(), given, path));
    }
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && depth < argc) {
    const std::string first = left.empty() ? std::string(argv[argc - 1]) : left.front();
    throw UsageError(fmt::format("kith {}takes no argument '{}'; see kith {}--help", path, first, path));
  }
  throw UsageError(fmt::format("{}; see kith {}--help", error.what(), path));
}

// Offers all commands, in the order of the program's help.
void offer_commands(Commands& commands) {
  offer_info(commands);
  offer_head(commands);
  offer_knn(commands);
  offer_range(commands);
  offer_dedup(commands);
  offer_kmeans(commands);
  offer_convert(commands);
  offer_eval(commands);
  offer_index(commands);
  offer_graph(commands);
  offer_collection(commands);
  offer_quantizers(commands);
  offer_plan(commands);
  offer_explore(commands);
  offer_sample(commands);
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv, const RunOptions& begun) {
  // Options lie where commands were offered, and the command that is run holds on to them.
  const auto offered = std::make_shared<OfferedCommands>();
  offered->run = begun;
  CLI::App app("Kith finds nearest neighbours.", "kith");
  app.set_version_flag("--version", fmt::format("kith {}", version()));
  app.option_defaults()->always_capture_default();
  app.require_subcommand(0, 1);
  app.footer(
      fmt::format("Exit codes: 0 done, 1 other errors, 2 wrong usage, 3 files, 4 memory, 5 devices, 75 parts that wait "
                  "for others, 130 interrupted.\n\n"
                  "Example:\n  {}",
                  example_of("")));
  Commands commands(app, *offered);
  offer_commands(commands);
  std::string shell;
  CLI::App* const completion =
      app.add_subcommand("completion", "Print a script that lets a shell complete commands and options");
  completion->add_option("SHELL", shell, "bash, zsh or fish")->required()->type_name("NAME");
  const CLI::App* const manual = app.add_subcommand("manual", "Print the manual page, for man");
  refuse_empty_values(app);
  add_examples(app, "");

  CommandLine line;
  std::vector<const char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "help") {  // kith help knn is kith knn --help
    words.erase(words.begin() + 1);
    words.push_back("--help");
    argv = words.data();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& request) {
    line.answer = fmt::format("{}\n", request.what());
    return line;
  } catch (const CLI::CallForHelp&) {
    refuse_unknown_command(reached_by(app), argc, argv);
    line.answer = app.help();
    return line;
  } catch (const CLI::ParseError& error) {
    refuse_line(app, argc, argv, error);
  }
  if (app.get_subcommands().empty()) throw UsageError(fmt::format("no command was given\n\n{}", app.help()));
  if (completion->parsed() || manual->parsed()) {
    const std::vector<CommandHelp> help = describe_commands(app, "");
    line.answer = manual->parsed() ? manual_page(help, std::string(version())) : completion_script(shell, help);
    return line;
  }
  for (const OfferedCommands::Entry& command : offered->commands) {
    if (!command.app->parsed()) continue;
    for (const auto& understand : command.understand) understand();
    // The others copy and count: no GPU need wake for them.
    if (!command.computes) offered->run.devices = {{Device::cpu()}};
    if (begun.ranks != nullptr && !command.on_ranks) {
      throw UsageError(
          fmt::format("kith-mpi shares knn, kmeans, graph build, index build and index search among its ranks; "
                      "run {} with kith alone",
                      command.app->get_name()));
    }
    line.run = offered->run;
    line.command = [run_command = command.run, run = offered->run] { return run_command(run); };
  }
  return line;
}

bool wants_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") return false;
    if (argument == "--json" || argument.starts_with("--json=")) return true;
  }
  return false;
}

}  // namespace kith::cli
