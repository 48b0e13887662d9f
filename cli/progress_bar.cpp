#include "progress_bar.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kith::cli {
namespace {

constexpr int kWidth = 30;
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

}  // namespace

ProgressBar::ProgressBar(bool wanted) : enabled_(wanted && isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show(const Progress& progress) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (stage_ != progress.stage) {
    stage_ = progress.stage;
    begin_ = now;
  }
  const double share =
      progress.total > 0
          ? std::clamp(static_cast<double>(progress.done) / static_cast<double>(progress.total), 0.0, 1.0)
          : 0.0;
  const int filled = static_cast<int>(share * kWidth);
  std::string line =
      fmt::format("{}{} [{}{}] {:3.0f} %", kClearLine, stage_, std::string(static_cast<size_t>(filled), '#'),
                  std::string(static_cast<size_t>(kWidth - filled), '.'), share * 100);
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  if (progress.done > 0 && elapsed > 0) {
    line += fmt::format("  {}  {} left", format_rate(static_cast<double>(progress.done) / elapsed),
                        format_duration(elapsed * (1 - share) / std::max(share, 1e-9)));
  }
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs(kClearLine, stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace kith::cli
