#include "commands.hpp"

#include <kith/device.hpp>

#include "byte_size.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

namespace kith::cli {
namespace {

// Stricter than CLI11, which reads 010 as eight, and a number that is too large as the largest one.
CLI::Validator decimal() {
  const auto check = [](const std::string& text) -> std::string {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
    const bool plain = digits.size() == 1 || !digits.starts_with('0');
    if (error == std::errc::result_out_of_range && stopped == end) {
      return fmt::format("{} is too large; numbers go up to {}", text, std::numeric_limits<int64_t>::max());
    }
    return error == std::errc{} && stopped == end && plain ? ""
                                                           : fmt::format("'{}' is not a decimal whole number", text);
  };
  return {check, "", "decimal"};
}

// For options that are stored in an int.
CLI::Validator in_32_bits() {
  const auto check = [](const std::string& text) -> std::string {
    int value = 0;
    const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc::result_out_of_range ? fmt::format("{} is too large", text) : "";
  };
  return {check, "", "32 bits"};
}

CLI::Validator from_0_on() {
  const auto check = [](const std::string& text) -> std::string {
    return text.starts_with('-') ? fmt::format("'{}' is negative", text) : "";
  };
  return {check, "", "from 0 on"};
}

CLI::Validator plain_real() {
  const auto check = [](const std::string& text) -> std::string {
    if (text.empty()) return "";  // which is refused for every option
    double value = 0;
    const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range && stopped == end) {
      return fmt::format("{} is beyond what a number can be here", text);
    }
    return error == std::errc{} && stopped == end ? "" : fmt::format("'{}' is not a number such as 0.5 or 1e-4", text);
  };
  return {check, "", "number"};
}

template <typename Value>
OfferedOption add_number(CLI::App& app, const char* name, Value& value, const char* help) {
  return OfferedOption(app.add_option(name, value, help)->check(decimal())->type_name("N"));
}

template <typename Value>
OfferedOption add_count(CLI::App& app, const char* name, Value& value, const char* help, const char* kind) {
  return OfferedOption(app.add_option(name, value, help)->check(decimal())->check(from_0_on())->type_name(kind));
}

template <typename Value>
OfferedOption add_real(CLI::App& app, const char* name, Value& value, const char* help) {
  return OfferedOption(app.add_option(name, value, help)->check(plain_real())->type_name("X"));
}

}  // namespace

const OfferedOption& OfferedOption::required() const {
  option_->required()->default_str("");
  return *this;
}

const OfferedOption& OfferedOption::without_default() const {
  option_->default_str("");
  return *this;
}

OfferedOption OfferedCommand::text(const char* name, std::string& value, const char* help, const char* kind) {
  return OfferedOption(app().add_option(name, value, help)->type_name(kind));
}

OfferedOption OfferedCommand::texts(const char* name, std::vector<std::string>& value, const char* help,
                                    const char* kind) {
  return OfferedOption(app().add_option(name, value, help)->type_name(kind)->default_str(""));
}

OfferedOption OfferedCommand::number(const char* name, int64_t& value, const char* help) {
  return add_number(app(), name, value, help);
}

OfferedOption OfferedCommand::number(const char* name, std::optional<int64_t>& value, const char* help) {
  return add_number(app(), name, value, help);
}

OfferedOption OfferedCommand::numbers(const char* name, std::vector<int64_t>& value, const char* help) {
  return OfferedOption(app().add_option(name, value, help)->delimiter(',')->check(decimal())->type_name("N,N,..."));
}

OfferedOption OfferedCommand::count(const char* name, int64_t& value, const char* help, const char* kind) {
  return add_count(app(), name, value, help, kind);
}

OfferedOption OfferedCommand::count(const char* name, uint64_t& value, const char* help) {
  return add_count(app(), name, value, help, "N");
}

OfferedOption OfferedCommand::real(const char* name, float& value, const char* help) {
  return add_real(app(), name, value, help);
}

OfferedOption OfferedCommand::real(const char* name, double& value, const char* help) {
  return add_real(app(), name, value, help);
}

OfferedOption OfferedCommand::real(const char* name, std::optional<double>& value, const char* help) {
  return add_real(app(), name, value, help);
}

void OfferedCommand::flag(const char* name, bool& value, const char* help) { app().add_flag(name, value, help); }

void OfferedCommand::no_flag(const char* name, bool& value, const char* help) {
  app().add_flag_callback(name, [&value] { value = false; }, help);
}

OfferedOption OfferedCommand::word_then(const char* name, const char* kind, const char* default_word,
                                        const char* help,
                                        std::function<void(const std::string&)> understand) {
  std::string& word = all_->words.emplace_back(default_word);
  entry_->understand.push_back([&word, understand = std::move(understand)] {
    if (!word.empty()) understand(word);
  });
  return text(name, word, help, kind);
}

void OfferedCommand::metric(Metric& value) {
  word("--metric", value, parse_metric, "l2",
       "l2, sqeuclidean, inner_product, cosine, l1, linf, chi_square or hamming");
}

void OfferedCommand::check_finite(bool& value) {
  no_flag("--no-check-finite", value, "Accept NaN and infinities instead of refusing them");
}

void OfferedCommand::filter(std::string& value) {
  file("--filter", value,
       "Which base rows may be found: their numbers (.ibin, .ivecs, .npy), or one byte or bool for each row, 0 for "
       "those "
       "left out (.u8bin, .npy)");
}

void OfferedCommand::threads() {
  app()
      .add_option("--threads", all_->run.threads, "CPU threads; 0 is one per hardware thread")
      ->check(decimal())
      ->check(in_32_bits())
      ->type_name("N");
}

void OfferedCommand::memory_limit() {
  word_then(
      "--memory-limit", "SIZE", "", "Largest resident memory of this process: 512M, 1.5G, 100000 (default: no limit)",
      [run = &all_->run](const std::string& word) { run->memory_limit = parse_byte_size(word, "--memory-limit"); });
}

void OfferedCommand::output() {
  app()
      .add_flag("--json", all_->run.json, "Print one JSON object on stdout, errors included")
      ->disable_flag_override();
  app().add_flag("--quiet", all_->run.quiet, "Print nothing but errors")->disable_flag_override();
}

void OfferedCommand::device() {
  entry_->computes = true;
  word("--device", all_->run.devices, parse_devices, "auto",
       "auto, cpu or cuda:N; several share the work: cuda:0,cuda:1, cuda:all, parts of one: cpu/4; auto stays on the "
       "CPU under a memory limit below 1G");
  device_memory_limit();
}

void OfferedCommand::device_memory_limit() {
  word_then("--device-memory-limit", "SIZE", "",
            "Largest memory to take on each GPU, or one for each device, divided by commas (default: no limit)",
            [run = &all_->run](const std::string& word) {
              run->device_memory_limits.clear();
              for (size_t begin = 0; begin <= word.size();) {
                const size_t end = std::min(word.find(',', begin), word.size());
                run->device_memory_limits.push_back(
                    parse_byte_size(word.substr(begin, end - begin), "--device-memory-limit"));
                begin = end + 1;
              }
            });
}

void OfferedCommand::run_options() {
  device();
  threads();
  memory_limit();
  output();
}

OfferedCommand Commands::offer(const char* name, const char* help, RunCommand run) {
  OfferedCommands::Entry& entry = all_->commands.emplace_back();
  entry.app = app_->add_subcommand(name, help);
  entry.run = std::move(run);
  return {entry, *all_};
}

Commands Commands::group(const char* name, const char* help) {
  CLI::App* const app = app_->add_subcommand(name, help);
  app->require_subcommand(1);
  return {*app, *all_};
}

}  // namespace kith::cli
