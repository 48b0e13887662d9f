#include "progress_bar.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace kith::cli {
namespace {

constexpr int kWidth = 30;  // of the bar, where there is room
constexpr int kSmallestWidth = 5;
constexpr const char* kClearLine = "\r\033[K";

std::string format_rate(double per_second) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  int prefix = 0;
  while (per_second >= 1000 && prefix < 4) {
    per_second /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g}{}/s", per_second, kPrefixes[prefix]);
}

std::string format_duration(double seconds) {
  const long long whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

bool knows_no_control_sequences() {
  const char* const terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal).empty() || std::string_view(terminal) == "dumb";
}

// Queried for every line, since windows are resized.
int terminal_columns() {
  winsize size = {};
  constexpr int kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// Fits the line to `columns`: shortens the bar, drops the speed, drops the bar, then cuts the name.
std::string fitted_line(const std::string& stage, double share, const std::string& speed, int columns) {
  const std::string percent = fmt::format("{:3.0f} %", share * 100);
  for (const std::string& end : {percent + speed, percent}) {
    const int width = std::min(kWidth, columns - static_cast<int>(stage.size() + end.size()) - 4);
    if (width < kSmallestWidth) continue;
    const int filled = static_cast<int>(share * width);
    return fmt::format("{} [{}{}] {}", stage, std::string(static_cast<size_t>(filled), '#'),
                       std::string(static_cast<size_t>(width - filled), '.'), end);
  }
  return (percent + " " + stage).substr(0, static_cast<size_t>(std::max(columns, 0)));
}

}  // namespace

ProgressBar::ProgressBar(bool wanted)
    : enabled_(wanted && isatty(STDERR_FILENO) == 1), plain_(knows_no_control_sequences()) {}

void ProgressBar::show(const Progress& progress) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  const bool begins = stage_ != progress.stage;
  if (begins) {
    stage_ = progress.stage;
    begin_ = now;
    pace_ = {};
  }
  const double share =
      progress.total > 0
          ? std::clamp(static_cast<double>(progress.done) / static_cast<double>(progress.total), 0.0, 1.0)
          : 0.0;
  if (plain_) return show_plain(share, begins);
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  pace_.at(elapsed, share);
  std::string speed;
  if (progress.done > 0 && elapsed > 0) {
    speed = fmt::format("  {}", format_rate(static_cast<double>(progress.done) / elapsed));
    if (const auto left = pace_.seconds_left()) speed += fmt::format("  {} left", format_duration(*left));
  }
  std::fputs((kClearLine + fitted_line(stage_, share, speed, terminal_columns() - 1)).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::show_plain(double share, bool begins) {
  const int tenth = static_cast<int>(share * 10);
  if (!begins && tenth == tenth_) return;
  tenth_ = tenth;
  std::fputs(fmt::format("{}: {} %\n", stage_, tenth * 10).c_str(), stderr);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs(kClearLine, stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace kith::cli
