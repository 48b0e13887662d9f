// Scripts for shells that complete kith's commands, options and known values.
#include "command_help.hpp"
#include "exit_codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace kith::cli {
namespace {

// The possible values of an option, if that is a short list.
std::string_view choices_of(const OptionHelp& option) {
  const std::string& name = option.names.back();
  if (name == "--metric") return "l2 sqeuclidean inner_product cosine l1 linf chi_square hamming";
  if (name == "--device") return "auto cpu cuda:0";
  if (name == "--dtype") return "f32 f16 bf16 u8 i8";
  if (name == "--init") return "kmeans++ random given";
  if (name == "SHELL") return "bash zsh fish";
  return "";
}

// The last word of "index build" is "build".
std::string_view last_word(std::string_view path) {
  return path.substr(path.find_last_of(' ') == std::string_view::npos ? 0 : path.find_last_of(' ') + 1);
}

std::string_view group_of(std::string_view path) {
  const size_t space = path.find_last_of(' ');
  return space == std::string_view::npos ? "" : path.substr(0, space);
}

// Puts a text in single quotes, for any of the three shells.
std::string quoted(std::string_view text, std::string_view quote_inside) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      result += quote_inside;
    } else {
      result += letter;
    }
  }
  return result + "'";
}

std::string words_after(const std::string& path, const std::vector<CommandHelp>& commands) {
  std::string words;
  for (const CommandHelp& command : commands) {
    if (!command.path.empty() && group_of(command.path) == path) words += fmt::format("{} ", last_word(command.path));
    if (command.path != path) continue;
    for (const OptionHelp& option : command.options) {
      if (option.operand) {
        words += fmt::format("{} ", choices_of(option));
        continue;
      }
      for (const std::string& name : option.names) words += name + " ";
    }
  }
  while (words.ends_with(' ')) words.pop_back();
  return words;
}

std::string bash_script(const std::vector<CommandHelp>& commands) {
  std::string groups;
  std::string cases;
  std::string values;
  std::string files;
  std::vector<std::string> seen;
  for (const CommandHelp& command : commands) {
    if (command.group) groups += fmt::format("{}{}", groups.empty() ? "" : "|", command.path);
    cases +=
        fmt::format("    {}) words={} ;;\n", quoted(command.path, ""), quoted(words_after(command.path, commands), ""));
    for (const OptionHelp& option : command.options) {
      if (option.operand || option.value.empty()) continue;
      const std::string& name = option.names.back();
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      if (const std::string_view choices = choices_of(option); !choices.empty()) {
        values += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n", name, choices);
      } else if (option.value == "FILE") {
        files += fmt::format("{}{}", files.empty() ? "" : "|", name);
      }
    }
  }
  return fmt::format(R"(# Completion of kith's commands for bash, as `kith completion bash` prints it.
_kith() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= words=
  COMPREPLY=()
  (( COMP_CWORD > 1 )) && command=${{COMP_WORDS[1]}}
  case "$command" in
    {groups}) (( COMP_CWORD > 2 )) && command+=" ${{COMP_WORDS[2]}}" ;;
  esac
  case "$before" in
{values}    {files}) return ;;  # the name of a file, which bash completes itself
  esac
  case "$command" in
{cases}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _kith kith
)",
                     fmt::arg("groups", groups), fmt::arg("values", values), fmt::arg("files", files),
                     fmt::arg("cases", cases));
}

// Escapes a description for zsh's _arguments.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') result += '\\';
    if (letter == '\'') {
      result += "'\\''";
    } else {
      result += letter;
    }
  }
  return result;
}

std::string zsh_action(const OptionHelp& option) {
  if (const std::string_view choices = choices_of(option); !choices.empty()) return fmt::format("({})", choices);
  return option.value == "FILE" ? "_files" : " ";
}

std::string zsh_arguments(const CommandHelp& command) {
  std::string text;
  for (const OptionHelp& option : command.options) {
    if (option.operand) {
      text += fmt::format(" \\\n        '*:{}:{}'", zsh_text(option.names.front()), zsh_action(option));
      continue;
    }
    for (const std::string& name : option.names) {
      text += fmt::format(" \\\n        '{}[{}]", name, zsh_text(option.text));
      if (!option.value.empty()) text += fmt::format(":{}:{}", option.value, zsh_action(option));
      text += '\'';
    }
  }
  return text;
}

std::string zsh_script(const std::vector<CommandHelp>& commands) {
  std::string text =
      "#compdef kith\n# Completion of kith's commands for zsh, as `kith completion zsh` prints it.\n\n_kith() {\n";
  text += "  local command=$words[2]\n  case \"$command\" in\n";
  std::string groups;
  for (const CommandHelp& command : commands) {
    if (command.group) groups += fmt::format("{}{}", groups.empty() ? "" : "|", command.path);
  }
  text += fmt::format("    {}) (( CURRENT > 3 )) && command+=\" $words[3]\" ;;\n  esac\n", groups);
  text += "  (( CURRENT == 2 )) && command=\n  case \"$command\" in\n";
  for (const CommandHelp& command : commands) {
    text += fmt::format("    {})\n", quoted(command.path, ""));
    if (command.path.empty() || command.group) {
      text += "      local -a commands=(";
      for (const CommandHelp& other : commands) {
        if (!other.path.empty() && group_of(other.path) == command.path) {
          text += fmt::format("\n        '{}:{}'", last_word(other.path), zsh_text(other.text));
        }
      }
      text += ")\n      _describe command commands ;;\n";
    } else {
      text += fmt::format("      _arguments -s{} ;;\n", zsh_arguments(command));
    }
  }
  return text + "  esac\n}\n\n_kith \"$@\"\n";
}

std::string fish_script(const std::vector<CommandHelp>& commands) {
  std::string text = "# Completion of kith's commands for fish, as `kith completion fish` prints it.\n";
  const auto within = [](const std::string& path) -> std::string {
    if (path.empty()) return "__fish_use_subcommand";
    std::string condition;
    for (size_t at = 0; at < path.size();) {
      const size_t space = std::min(path.find(' ', at), path.size());
      condition +=
          fmt::format("{}__fish_seen_subcommand_from {}", at == 0 ? "" : "; and ", path.substr(at, space - at));
      at = space + 1;
    }
    return condition;
  };
  for (const CommandHelp& command : commands) {
    if (!command.path.empty()) {
      text += fmt::format("complete -c kith -f -n {} -a {} -d {}\n",
                          quoted(within(std::string(group_of(command.path))), ""), last_word(command.path),
                          quoted(command.text, "\\'"));
    }
    for (const OptionHelp& option : command.options) {
      const std::string_view choices = choices_of(option);
      text += fmt::format("complete -c kith -n {}", quoted(within(command.path), ""));
      for (const std::string& name : option.names) {
        if (!option.operand)
          text +=
              name.starts_with("--") ? fmt::format(" -l {}", name.substr(2)) : fmt::format(" -s {}", name.substr(1));
      }
      if (!choices.empty()) {
        text += fmt::format(" -x -a {}", quoted(choices, ""));
      } else if (option.operand || option.value == "FILE") {
        text += " -r -F";
      } else if (!option.value.empty()) {
        text += " -x";
      }
      text += fmt::format(" -d {}\n", quoted(option.text, "\\'"));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandHelp>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw UsageError(fmt::format("no completion for '{}'; known are: bash, zsh, fish", shell));
}

}  // namespace kith::cli
