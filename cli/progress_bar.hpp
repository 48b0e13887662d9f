// One line on the terminal with a command's progress, speed and remaining time. It is drawn on stderr, so that stdout
// has only results, fits the current width of the terminal, and disappears when the command ends. A terminal without
// control sequences (TERM=dumb) gets a plain line for every tenth instead.
#pragma once

#include <kith/progress.hpp>

#include "pace.hpp"

#include <chrono>
#include <string>

namespace kith::cli {

class ProgressBar {
 public:
  // Draws nothing if `wanted` is false or stderr is not a terminal.
  explicit ProgressBar(bool wanted);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool enabled() const { return enabled_; }
  void show(const Progress& progress);
  void clear();

 private:
  void show_plain(double share, bool begins);

  bool enabled_;
  bool plain_;
  bool drawn_ = false;
  int tenth_ = 0;  // the last that was told
  std::string stage_;
  std::chrono::steady_clock::time_point begin_;
  Pace pace_;
};

}  // namespace kith::cli
